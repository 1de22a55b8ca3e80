"""The embedded index's own folder: how a space is made."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from windrow.errors import IndexUnavailable
from windrow.index.edge import FIELDS, MAKING, PARTS, EdgeIndex
from windrow.index.home import Filter, Labels, Point, Query, Space

SPACE = Space("words-1", 3)
LABELS = Labels(
    *("docs", "s1", "a.md"),
    tenant="acme",
    branches=("main",),
    language="en",
    tags=("new",),
    date=2.0,
)
STATUS = Path("/proc/self/status")
ASKED = Query("word", [1.0, 0.0, 0.0])
DOCS = Filter(collections=("docs",))
EVERYTHING = Filter(
    tenant="acme",
    collections=("docs",),
    sources=("s1",),
    path="a*",
    languages=("en",),
    branch="main",
    tags=("new",),
    since=1.0,
)


def point(number: int) -> Point:
    return Point(str(uuid.UUID(int=number)), 0, [1.0, 0.0, number / 100], f"word {number}", LABELS)


async def test_new_space_has_as_many_parts_as_threads_search_it(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path / "spaces")
    for number in range(1, 9):
        await index.write(SPACE, [point(number)])
    await index.optimize(SPACE)
    await index.close()

    again = EdgeIndex(tmp_path / "spaces")
    hits = await again.search(SPACE, Query("word", [1.0, 0.0, 0.0], limit=20))

    assert sorted(hit.text for hit in hits) == [f"word {number}" for number in range(1, 9)]
    assert len(list((tmp_path / "spaces" / SPACE.name / "segments").iterdir())) == PARTS
    assert await again.spaces() == [SPACE.name]
    await again.close()


@pytest.mark.skipif(not STATUS.exists(), reason="the system does not say what is in memory")
async def test_to_open_a_small_space_does_not_read_the_room_for_a_large_one(
    tmp_path: Path,
) -> None:
    """64 MB of each segment are there for vectors, however few there are."""
    index = EdgeIndex(tmp_path / "spaces")
    for number in range(PARTS):
        await index.write(SPACE, [point(number)])
    await index.close()

    before, again = _mapped_mb(), EdgeIndex(tmp_path / "spaces")
    assert await again.count(SPACE) == PARTS
    assert (_mapped_mb() - before) / PARTS < 64
    await again.close()


async def test_space_whose_making_was_cut_short_is_made_anew(tmp_path: Path) -> None:
    left = tmp_path / "spaces" / MAKING / "0" / "segments" / "half"
    left.mkdir(parents=True)
    index = EdgeIndex(tmp_path / "spaces")

    assert await index.spaces() == []
    await index.write(SPACE, [point(1)])

    assert await index.count(SPACE) == 1
    assert await index.spaces() == [SPACE.name]
    assert not left.exists()
    await index.close()


async def test_field_is_indexed_when_a_filter_first_names_it_in_a_space_that_has_grown(
    tmp_path: Path,
) -> None:
    """To open a space reads 5 MB of each index in each segment, whether filters name it or not."""
    index = EdgeIndex(tmp_path / "spaces", indexed_from=3)
    await index.write(SPACE, [point(1), point(2)])
    assert await index.count(SPACE, DOCS) == 2
    await index.write(SPACE, [point(3)])
    assert len(await index.search(SPACE, ASKED)) == 3
    assert await _indexed_fields(index) == set()

    assert await index.count(SPACE, DOCS) == 3
    assert await _indexed_fields(index) == {"collection"}
    assert len(await index.search(SPACE, replace(ASKED, filter=EVERYTHING))) == 3
    assert await _indexed_fields(index) == FIELDS - {"content"}
    await index.relabel(SPACE, {point(1).content: LABELS})
    assert await _indexed_fields(index) == FIELDS
    await index.close()

    again = EdgeIndex(tmp_path / "spaces", indexed_from=3)
    assert await _indexed_fields(again) == FIELDS
    await again.close()


async def test_indexed_fields_of_a_space_of_an_earlier_version_are_kept_up_to_date(
    tmp_path: Path,
) -> None:
    """It indexed all of them when a space had grown."""
    index = EdgeIndex(tmp_path / "spaces", indexed_from=1)
    await index.write(SPACE, [point(1)])
    await index._index_fields(await index._open(SPACE), FIELDS)
    await index.close()

    again = EdgeIndex(tmp_path / "spaces")
    await again.write(SPACE, [point(2)])
    assert await _indexed_fields(again) == FIELDS
    assert await again.count(SPACE, EVERYTHING) == 2
    await again.remove(SPACE, [point(1).content])
    assert [hit.text for hit in await again.search(SPACE, ASKED)] == ["word 2"]
    await again.close()


async def test_field_whose_indexing_was_cut_short_is_indexed_by_the_next_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large space without it would be searched by reading all of it."""
    index = EdgeIndex(tmp_path / "spaces", indexed_from=1)
    await index.write(SPACE, [point(1)])
    with monkeypatch.context() as patched:
        patched.setattr(EdgeIndex, "_make_indexes", _die)
        with pytest.raises(IndexUnavailable):
            await index.count(SPACE, DOCS)
    assert await _indexed_fields(index) == set()

    assert await index.count(SPACE, DOCS) == 1
    assert await _indexed_fields(index) == {"collection"}
    await index.close()


def _die(*given: object) -> None:
    raise OSError("killed here")


async def _indexed_fields(index: EdgeIndex) -> set[str]:
    return {*(await index._open(SPACE)).info().payload_schema}


def _mapped_mb() -> float:
    """What of files is in this process's memory, those of a file system in memory included."""
    lines = STATUS.read_text().splitlines()
    return sum(int(one.split()[1]) / 1024 for one in lines if one.startswith(("RssFile", "RssSh")))
