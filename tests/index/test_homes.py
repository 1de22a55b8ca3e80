"""The contract of an index, on every home (U10, N13)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.index.words import embed
from windrow.index import pgvector
from windrow.index.edge import EdgeIndex
from windrow.index.home import (
    RRF_K,
    WEIGHTS,
    Filter,
    Index,
    Labels,
    Mode,
    Point,
    Query,
    Space,
    point_id,
)
from windrow.index.pgvector import PgvectorIndex
from windrow.index.qdrant_terms import Weights, weigh


def content(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def labels(**fields: Any) -> Labels:
    return Labels(**({"collection": "docs", "source": "s1", "uri": "a.md"} | fields))


def point(name: str, text: str, ordinal: int = 0, **fields: Any) -> Point:
    return Point(
        content(name),
        ordinal,
        embed(text),
        text,
        labels(**fields),
        headings=("Guide", "Part"),
        start=3,
        end=3 + len(text),
    )


def query(text: str, mode: Mode = "hybrid", limit: int = 10, **filters: Any) -> Query:
    return Query(text, embed(text), mode, limit, Filter(**filters))


async def found(index: Index, space: Space, asked: Query) -> list[str]:
    return [hit.text for hit in await index.search(space, asked)]


async def test_point_comes_back_with_all_that_was_written(index: Index, space: Space) -> None:
    written = point(
        "a",
        "Grüße aus 東京 🎉: naïve café",
        2,
        tenant="acme",
        uri="ü/ñ.md",
        branches=("main", "dev"),
        language="markdown",
        tags=("x", "y"),
        date=12.5,
        title="Títle",
    )
    await index.write(space, [written])

    for mode in ("hybrid", "semantic", "keyword"):
        [hit] = await index.search(space, query("Grüße café", mode))
        assert hit.id == point_id(content("a"), 2)
        assert (hit.content, hit.text, hit.headings) == (
            content("a"),
            written.text,
            ("Guide", "Part"),
        )
        assert (hit.start, hit.end, hit.labels) == (3, 3 + len(written.text), written.labels)


async def test_words_that_were_weighed_elsewhere_are_found_as_those_weighed_here(
    tmp_path: Path, space: Space
) -> None:
    asked: list[str] = []

    async def elsewhere(texts: Sequence[str]) -> list[Weights]:
        asked.extend(texts)
        return weigh(texts)

    hits = []
    for name, by in (("here", None), ("elsewhere", elsewhere)):
        index = EdgeIndex(tmp_path / name, by)
        await index.write(space, [point("a", "a kettle"), point("b", "kettle_lid and kettle")])
        hits.append(await index.search(space, query("kettle", "keyword")))
        await index.close()

    assert len(asked) == 2
    assert hits[0] == hits[1]
    assert {hit.content for hit in hits[0]} == {content("a"), content("b")}


async def test_same_ids_are_written_over(index: Index, space: Space) -> None:
    await index.write(space, [point("a", "old words here"), point("b", "other things")])
    await index.write(space, [point("a", "new text there")])
    await index.write(space, [point("a", "new text there")])

    assert await index.count(space) == 2
    assert await found(index, space, query("old", "keyword")) == []
    assert await found(index, space, query("new", "keyword")) == ["new text there"]


async def test_all_chunks_of_removed_contents_go(index: Index, space: Space) -> None:
    await index.write(space, [point("a", f"word {n}", n) for n in range(5)])
    await index.write(space, [point("b", "word of b"), point("c", "word of c")])

    await index.remove(space, [content("a"), content("c"), content("never")])
    await index.remove(space, [])

    assert await found(index, space, query("word")) == ["word of b"]
    assert await index.count(space) == 1


async def test_relabelled_chunks_are_found_under_the_new_labels_only(
    index: Index, space: Space
) -> None:
    await index.write(space, [point("a", f"word {n}", n, branches=("main",)) for n in range(3)])
    await index.write(space, [point("b", "word b", branches=("main",))])

    await index.relabel(space, {content("a"): labels(uri="new/b.md", branches=("main", "dev"))})

    assert len(await found(index, space, query("word", branch="dev"))) == 3
    assert len(await found(index, space, query("word", branch="main"))) == 4
    assert len(await found(index, space, query("word", path="new/*.md"))) == 3
    assert await found(index, space, query("word", path="a.md")) == ["word b"]


async def test_content_of_several_documents_is_found_by_what_any_of_them_says(
    index: Index, space: Space
) -> None:
    moved: dict[str, Any] = {
        "uri": "docs/x.md",
        "language": "markdown",
        "date": 10.0,
        "branches": ("main", "feature"),
        "other_uris": ("lib/y.md", "lib/z.rst"),
        "other_languages": ("rst",),
        "other_dates": (30.0,),
    }
    await index.write(space, [point("a", "word a", **moved)])
    await index.write(space, [point("b", "word b", uri="docs/b.md"), point("c", "word c", uri="c")])
    await index.relabel(space, {content("c"): labels(uri="c.md", other_uris=("lib/c.md",))})

    asked: list[tuple[dict[str, Any], set[str]]] = [
        ({"path": "docs/**"}, {"a", "b"}),
        ({"path": "lib/**"}, {"a", "c"}),
        ({"path": "**/*.rst"}, {"a"}),
        ({"path": "lib/y.md"}, {"a"}),
        ({"path": "lib/b.md"}, set()),
        ({"languages": ("rst",)}, {"a"}),
        ({"languages": ("markdown",)}, {"a"}),
        ({"until": 15.0}, {"a"}),
        ({"since": 15.0}, {"a"}),
        ({"since": 15.0, "until": 20.0}, set()),
    ]
    for mode in ("hybrid", "keyword"):
        for filters, expected in asked:
            texts = await found(index, space, query("word", mode, **filters))
            assert {text.split()[1] for text in texts} == expected, (mode, filters)
    [hit] = await index.search(space, query("word", path="**/*.rst"))
    assert hit.labels == labels(**moved)


async def test_table_of_an_older_version_gets_the_columns_it_lacks(
    vector_database: str, space: Space
) -> None:
    older = PgvectorIndex(vector_database)
    await older.write(space, [point("a", "word a", uri="docs/a.md")])
    await older.close()
    with psycopg.connect(vector_database, autocommit=True) as connection:
        for name in ("other_uris", "other_languages", "other_dates"):
            connection.execute(
                f'ALTER TABLE windrow_index."{space.name}" DROP COLUMN {name}'.encode()
            )

    newer = PgvectorIndex(vector_database)
    assert await found(newer, space, query("word", path="docs/*")) == ["word a"]
    await newer.relabel(space, {content("a"): labels(uri="b.md", other_uris=("c/d.md",))})
    assert await found(newer, space, query("word", path="c/*")) == ["word a"]
    await newer.close()


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"a", "b", "c"}),
    ({"tenant": "acme"}, {"a", "b"}),
    ({"tenant": ""}, {"c"}),
    ({"tenant": "nobody"}, set()),
    ({"collections": ("docs",)}, {"a", "b"}),
    ({"collections": ("docs", "code")}, {"a", "b", "c"}),
    ({"sources": ("s1",)}, {"a", "c"}),
    ({"path": "src/*.py"}, {"a"}),
    ({"path": "src/**/*.py"}, {"a", "b"}),
    ({"path": "**/*.py"}, {"a", "b"}),
    ({"path": "**"}, {"a", "b", "c"}),
    ({"path": "src/[ab].p?"}, {"a"}),
    ({"path": "src"}, set()),
    ({"path": "READ*.md"}, {"c"}),
    ({"languages": ("python", "go")}, {"a", "b"}),
    ({"branch": "dev"}, {"b"}),
    ({"tags": ("x",)}, {"a", "b"}),
    ({"tags": ("x", "y")}, {"b"}),
    ({"since": 20.0}, {"b", "c"}),
    ({"until": 20.0}, {"a", "b"}),
    ({"since": 15.0, "until": 25.0}, {"b"}),
    ({"tenant": "acme", "path": "**/*.py", "tags": ("y",), "since": 1.0}, {"b"}),
]


async def test_filters(index: Index, space: Space) -> None:
    py: dict[str, Any] = {"tenant": "acme", "language": "python"}
    await index.write(
        space,
        [
            point("a", "word a", uri="src/a.py", branches=("main",), tags=("x",), date=10.0, **py),
            point(
                "b",
                "word b",
                uri="src/deep/er/b.py",
                source="s2",
                branches=("main", "dev"),
                tags=("x", "y"),
                date=20.0,
                **py,
            ),
            point("c", "word c", uri="README (1).md", collection="code", date=30.0),
        ],
    )
    modes: tuple[Mode, ...] = ("hybrid", "keyword", "exact")
    for filters, expected in FILTERS:
        for mode in modes:
            texts = await found(index, space, query("word", mode, **filters))
            assert {text.split()[1] for text in texts} == expected, (mode, filters)
    assert await index.count(space, Filter(tenant="acme")) == 2


async def test_texts_as_written_are_found_wherever_their_words_begin_and_end(
    index: Index, space: Space
) -> None:
    texts = [
        "unties the knot intoxicated",
        "ties the knot into a bow",
        "ties the  knot into a bow",
        "Ties the knot into a bow",
        "the knot ties into",
        "<b class=x ties the knot into>",
    ]
    await index.write(space, [point(text, text) for text in texts])

    asked = [
        await found(index, space, query(text, "exact"))
        for text in ("ties the knot into", "ties  the", "e knot i", "knot into a bow")
    ]

    assert [sorted(one) for one in asked] == [
        sorted([texts[0], texts[1], texts[5]]),
        [],
        sorted([texts[0], texts[1], texts[3], texts[5]]),
        sorted([texts[1], texts[2], texts[3]]),
    ]
    assert await found(index, space, query("ties the knot into", "exact", tags=("x",))) == []


async def test_modes_find_by_meaning_by_words_and_as_written(index: Index, space: Space) -> None:
    await index.write(
        space,
        [
            point("a", "def parseUrl(text): return text.split('://')"),
            point("b", "The parser reads an URL from a text"),
            point("c", "Bananas are yellow and sweet"),
        ],
    )
    near = await found(index, space, query("parser reads an url", "semantic"))
    assert near[0].startswith("The parser")
    assert len(near) == 3, "by meaning everything is more or less near"
    assert (await found(index, space, query("parse", "keyword")))[0].startswith("def parseUrl")
    assert await found(index, space, query("banana", "keyword")) == ["Bananas are yellow and sweet"]
    assert await found(index, space, query("split('://')", "exact")) == [
        "def parseUrl(text): return text.split('://')"
    ]
    assert await found(index, space, query("SPLIT('://')", "exact")) == []
    assert await found(index, space, query("100%_", "exact")) == []
    assert await found(index, space, query("zebra", "keyword")) == []
    assert await found(index, space, query("the", "keyword")) == [], "a word like that says nothing"


async def test_hybrid_is_the_sum_of_reciprocal_ranks_and_says_why(
    index: Index, space: Space
) -> None:
    await index.write(
        space, [point("a", "apple pear"), point("b", "apple apple"), point("c", "plum grape")]
    )
    hits = await index.search(space, query("apple"))

    for hit in hits:
        assert set(hit.ranks) <= {"semantic", "keyword"}
        expected = sum(WEIGHTS[name] / (RRF_K + rank) for name, rank in hit.ranks.items())
        assert hit.score == pytest.approx(expected)
    assert {hit.text for hit in hits[:2]} == {"apple pear", "apple apple"}
    assert set(hits[0].ranks) == {"semantic", "keyword"}
    assert set(hits[2].ranks) == {"semantic"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    [only] = await index.search(space, query("plum", "keyword"))
    assert only.ranks == {"keyword": 1}


async def test_hits_of_enough_contents_are_the_best_ones_of_all(index: Index, space: Space) -> None:
    """What may be left out comes behind them, however many chunks each content has."""
    await index.write(
        space,
        [
            # None scores as another does: which of two equal ones comes first, nobody promises.
            point(f"c{number // 3}", f"lease number {number} {'lease ' * number}", number % 3)
            for number in range(18)
        ],
    )
    for mode in ("hybrid", "semantic", "keyword"):
        whole = await index.search(space, query("lease number", mode, 18))
        asked = Query("lease number", embed("lease number"), mode, 18, enough=4)
        some = await index.search(space, asked)

        assert some == whole[: len(some)]
        assert len({hit.content for hit in some}) >= 4


async def test_a_rare_word_counts_more_than_one_that_most_chunks_have(
    index: Index, space: Space
) -> None:
    texts = [f"lease {'lease ' * (number % 5)}chunk{number}" for number in range(60)]
    await index.write(space, [point(f"c{n}", text) for n, text in enumerate(texts)])
    await index.write(space, [point("rare", "other words and one heartbeat among them")])
    await index.optimize(space)

    texts_found = await found(index, space, query("lease heartbeat", "keyword", 5))

    assert texts_found[0] == "other words and one heartbeat among them"
    assert len(texts_found) == 5


async def test_common_words_are_looked_for_where_rare_ones_find_too_few(
    vector_database: str, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector, "MANY_CHUNKS", 3)
    index = PgvectorIndex(vector_database)
    await index.write(space, [point(f"c{number}", f"lease c{number}") for number in range(60)])
    await index.write(space, [point(f"r{number}", f"it's heartbeat {number}") for number in (1, 2)])
    await index.optimize(space)

    few = await found(index, space, query("lease 'heartbeat\\'", "keyword", 2))
    many = await found(index, space, query("lease 'heartbeat\\'", "keyword", 100))

    assert set(few) == {"it's heartbeat 1", "it's heartbeat 2"} == set(many[:2])
    assert len(many) == 62
    await index.close()


async def test_nothing_is_found_where_nothing_is(index: Index, space: Space) -> None:
    assert await index.search(space, query("word")) == []
    assert await index.count(space) == 0
    assert await index.spaces() == []
    await index.remove(space, [content("a")])
    await index.relabel(space, {content("a"): labels()})
    await index.optimize(space)
    await index.write(space, [])
    await index.write(space, [point("a", "word")])
    assert await index.search(space, query("word", limit=0)) == []
    assert len(await index.search(space, query("", "keyword"))) == 0
    assert len(await index.search(space, query("🎉 -> \x00"[:4], "keyword"))) == 0


async def test_spaces_are_apart_and_are_dropped_as_one(index: Index, space: Space) -> None:
    other = Space("other model-2", 3)
    await index.write(space, [point("a", "word")])
    await index.write(other, [Point(content("a"), 0, [1.0, 0.0, 0.0], "word", labels())])
    assert await index.spaces() == ["other model-2", "words-1"]

    await index.drop(space)

    assert await index.spaces() == ["other model-2"]
    assert await index.search(space, query("word")) == []
    assert await index.count(other) == 1
    await index.write(space, [point("a", "word again")])
    assert await index.count(space) == 1


@pytest.mark.parametrize("many", [2_000, pytest.param(10_000, marks=pytest.mark.chaos)])
async def test_many_points(index: Index, space: Space, many: int) -> None:
    points = [
        point(f"c{n // 4}", f"row{n} common {n % 97} text", n % 4, uri=f"d{n % 10}/{n}.md")
        for n in range(many)
    ]
    for start in range(0, many, 2500):
        await index.write(space, points[start : start + 2500])
    await index.optimize(space)
    assert await index.count(space) == many

    assert (await found(index, space, query("row1234", "keyword")))[0].startswith("row1234 ")
    rare = await found(index, space, query("row1777 common", path="**/1777.md"))
    assert rare == ["row1777 common 31 text"]
    fifth = await found(index, space, query("common", limit=50, path="d5/*"))
    assert len(fifth) == 50
    await index.remove(space, [content(f"c{n}") for n in range(many // 8)])
    assert await index.count(space) == many // 2
