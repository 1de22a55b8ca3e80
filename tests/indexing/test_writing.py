"""From documents to what is found (N13, U10): written, switched, removed, shared, relabelled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from tests.indexing.helpers import Library, Words
from windrow.catalog import Catalog
from windrow.catalog.documents import Move
from windrow.errors import (
    EmbedderUnavailable,
    EmbeddingRefused,
    IndexUnavailable,
    InvalidSearch,
    RateLimited,
    StoreFull,
    StoreReadOnly,
)
from windrow.index.home import Point, Space
from windrow.pipelines.index.context import space_of
from windrow.pipelines.index.tidying import write_job
from windrow.queue.job import JobState


async def space(library: Library) -> Space:
    [collection] = await Catalog(library.queue.database).collections.find(None, "docs")
    return space_of(collection)


async def test_document_is_found_once_it_is_written_with_its_place_and_the_reason(
    library: Library,
) -> None:
    text = "Intro line\nThe quick brown fox jumps over the lazy dog\nEnd"
    doc_id, content = await library.put("a.md", text, title="Animals", tags=("x",))
    await library.put("b.md", "Something else entirely")
    assert await library.found("fox") == []

    await library.work()

    answer = await library.search("quick foxes")
    best = answer.results[0]
    assert (best.document, best.content, best.uri) == (doc_id, content, "a.md")
    assert (best.title, best.tags, best.headings) == ("Animals", ("x",), ("Top",))
    assert text[best.start : best.end] == best.text
    assert best.why == {"semantic": 1, "keyword": 1}
    assert [best.snippet[a:b] for a, b in best.highlights] == ["quick"]
    assert answer.warning is None
    jobs = await library.queue.list(kind="index.write")
    results = [(await library.queue.get(job.id)).result for job in jobs]
    assert {one["batch"] for one in results} == {2}, "both were embedded and written together"
    assert set(results[0]["seconds"]) >= {"chunk", "embed", "write", "switch"}


async def test_change_is_seen_whole_or_not_at_all_and_the_old_goes(library: Library) -> None:
    _, old = await library.put("a.md", "apple one\napple two\napple three")
    await library.work()
    _, new = await library.put("a.md", "pear one\npear two")

    assert await library.found("apple", mode="keyword") == ["a.md"]
    assert await library.found("pear", mode="keyword") == []
    await library.work()
    assert await library.found("apple", mode="keyword") == []
    assert await library.found("pear", mode="keyword") == ["a.md"]
    assert await library.index.count(await space(library)) == 5, "the old ones are still there"

    await library.tidy()
    assert await library.index.count(await space(library)) == 2
    assert [one.id for one in await Catalog(library.queue.database).contents.get([old, new])] == [
        new
    ]


async def test_unchanged_content_and_content_of_branches_is_embedded_once(library: Library) -> None:
    await library.put("a.py", "shared code", branch="main")
    await library.work()
    assert len(library.embedders["words"].texts) == 1

    await library.put("a.py", "shared code", branch="main")
    await library.put("a.py", "shared code", branch="dev")
    await library.work()

    assert len(library.embedders["words"].texts) == 1
    assert await library.index.count(await space(library)) == 1
    assert [one.branch for one in (await library.search("code", branch="dev")).results] == ["dev"]
    assert await library.found("code") == ["a.py"], "one of them is enough"
    assert await library.found("code", branch="other") == []


async def test_rename_rewrites_labels_and_embeds_nothing(library: Library) -> None:
    doc_id, _ = await library.put("old/a.py", "some code")
    await library.work()
    contents = await Catalog(library.queue.database).documents.move([Move(doc_id, "new/a.py")])
    await library.queue.enqueue_many([write_job(one, None) for one in contents])
    assert await library.found("code") == ["new/a.py"], "documents say where they are"

    await library.work()

    assert await library.found("code", path="new/*") == ["new/a.py"]
    assert await library.found("code", path="old/*") == []
    assert len(library.embedders["words"].texts) == 1


async def test_deleted_document_is_not_found_at_once_and_content_that_comes_back_is(
    library: Library,
) -> None:
    doc_id, _ = await library.put("a.md", "apple")
    await library.work()
    await Catalog(library.queue.database).documents.delete([doc_id])
    assert await library.found("apple") == []

    await library.put("a.md", "apple")
    await library.tidy()

    assert await library.found("apple") == ["a.md"]
    assert await library.index.count(await space(library)) == 1


async def test_failing_index_is_tried_again_and_the_old_content_stays(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    await library.put("a.md", "apple")
    await library.work()
    _, new = await library.put("a.md", "pear")

    async def away(*_: object) -> None:
        raise IndexUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(library.index, "write", away)
        await library.work()
    assert await library.found("apple", mode="keyword") == ["a.md"]
    [job] = await library.queue.list(kind="index.write", state=[JobState.SCHEDULED, JobState.READY])
    assert job.payload == {"content": new}
    await library.queue.retry(job.id)
    await library.work()
    assert await library.found("pear", mode="keyword") == ["a.md"]


@pytest.mark.parametrize("error", [IndexUnavailable(), RuntimeError()], ids=repr)
async def test_part_of_a_batch_that_fails_keeps_no_other_part_from_being_written(
    library: Library, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    write = library.index.write

    async def picky(space: Space, points: Sequence[Point]) -> None:
        if any("away" in point.text for point in points):
            raise error
        await write(space, points)

    for number in range(5):
        await library.put(f"{number}.md", f"apple {number}{' away' if number == 2 else ''}")
    with monkeypatch.context() as patched:
        patched.setattr("windrow.pipelines.index.handlers.PART", 2)
        patched.setattr(library.index, "write", picky)
        await library.work()

    found = set(await library.found("apple", mode="keyword"))
    assert {"0.md", "1.md", "4.md"} <= found < {f"{number}.md" for number in range(5)}
    for job in await library.queue.list(kind="index.write", state=[JobState.SCHEDULED]):
        await library.queue.retry(job.id)
    await library.work()
    assert len(await library.found("apple", mode="keyword")) == 5


@pytest.mark.parametrize(
    "error",
    [
        EmbedderUnavailable(),
        IndexUnavailable(),
        RateLimited("embedder", 30),
        StoreFull(),
        StoreReadOnly(),
    ],
    ids=str,
)
async def test_u7_what_is_away_or_asks_for_patience_parks_writes_and_uses_no_attempts(
    library: Library, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    for uri in ("a.md", "b.md"):
        await library.put(uri, f"apple {uri}")

    async def away(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Words, "embed", away)
        await library.work()
    parked = await library.queue.list(kind="index.write")
    assert [(job.state, job.attempts) for job in parked] == [(JobState.SCHEDULED, 0)] * 2
    for job in parked:
        await library.queue.retry(job.id)
    await library.work()
    assert sorted(await library.found("apple", mode="keyword")) == ["a.md", "b.md"]


async def test_results_are_one_per_document_unless_more_are_wanted(library: Library) -> None:
    await library.put("a.md", "\n".join(f"apple number {n}" for n in range(20)))
    await library.put("b.md", "one apple")
    await library.work()

    assert sorted(await library.found("apple", limit=5)) == ["a.md", "b.md"]
    assert len(await library.found("apple", limit=10, per_document=3)) == 4


async def test_search_asks_again_when_most_of_what_it_gets_is_not_shown(library: Library) -> None:
    for n in range(8):
        doc_id, _ = await library.put(f"{n}.md", "\n".join(["apple apple apple"] * 10))
        await library.work()
        await Catalog(library.queue.database).documents.delete([doc_id])
    await library.put("left.md", "an apple and many other words that make it less near")
    await library.work()

    assert await library.found("apple", limit=1) == ["left.md"]


async def test_tenants_find_their_own(library: Library) -> None:
    await library.put("a.md", "apple", tenant="acme")
    await library.put("b.md", "apple", tenant="globex")
    await library.put("c.md", "apple")
    await library.work()

    assert await library.found("apple", tenant="acme") == ["a.md"]
    assert await library.found("apple", tenant="") == ["c.md"]
    assert sorted(await library.found("apple")) == ["a.md", "b.md", "c.md"]


async def test_what_cannot_be_searched_for_is_refused(library: Library) -> None:
    for fields in ({"query": "  "}, {"query": "x", "limit": 0}, {"query": "x", "mode": "magic"}):
        with pytest.raises(InvalidSearch):
            await library.search(**fields)
    assert await library.found("anything") == [], "there is no collection yet"


async def test_reranker_puts_what_was_found_in_another_order(library: Library) -> None:
    await library.put("a.md", "apple apple")
    await library.put("b.md", "apple and a pear")
    await library.work()

    async def by_name(query: str, found: object) -> list[object]:
        return sorted(found, key=lambda one: one.uri, reverse=True)  # type: ignore[call-overload]

    library.searcher._rerank = by_name  # type: ignore[assignment]
    answer = await library.search("apple", rerank=True)
    assert [one.uri for one in answer.results] == ["b.md", "a.md"]
    assert answer.is_reranked


async def test_text_that_the_embedder_does_not_take_fails_its_own_job_only(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = library.embedders["words"]
    embed = words.embed

    async def picky(texts: Sequence[str], *, query: bool = False) -> object:
        if bad := [place for place, text in enumerate(texts) if "poison" in text]:
            raise EmbeddingRefused(bad, "too long")
        return await embed(texts, query=query)

    monkeypatch.setattr(words, "embed", picky)
    for number in range(5):
        await library.put(f"{number}.md", "poison" if number == 3 else f"apple {number}")

    await library.work()

    assert sorted(await library.found("apple", mode="keyword")) == ["0.md", "1.md", "2.md", "4.md"]
    jobs = await library.queue.list(kind="index.write")
    failed = [job for job in jobs if job.state is JobState.FAILED]
    assert len(failed) == 1
    assert "too long" in str((await library.queue.get(failed[0].id)).error)


async def test_file_that_was_moved_on_one_branch_is_found_at_its_place_on_each(
    library: Library,
) -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    await library.put("docs/x.md", "apple", branch="main", language="markdown", dated_at=noon)
    moved, content = await library.put(
        "docs/x.md", "apple", branch="feature", language="rst", tags=("new",)
    )
    await library.work()
    await Catalog(library.queue.database).documents.move([Move(moved, "lib/y.md")])
    await library.queue.enqueue_many([write_job(content, None)])
    await library.work()
    assert len(library.embedders["words"].texts) == 1, "it is embedded once"

    for fields, expected in (
        ({"path": "lib/**"}, ["lib/y.md"]),
        ({"path": "docs/**"}, ["docs/x.md"]),
        ({"path": "docs/**", "branch": "feature"}, []),
        ({"path": "lib/**", "branch": "feature"}, ["lib/y.md"]),
        ({"path": "lib/**", "branch": "main"}, []),
        ({"languages": ("rst",)}, ["lib/y.md"]),
        ({"languages": ("markdown",)}, ["docs/x.md"]),
        ({"languages": ("markdown",), "tags": ("new",)}, []),
        ({"tags": ("new",)}, ["lib/y.md"]),
        ({"since": noon.timestamp()}, ["docs/x.md"]),
        ({"since": noon.timestamp(), "branch": "feature"}, []),
    ):
        assert await library.found("apple", **fields) == expected, fields
