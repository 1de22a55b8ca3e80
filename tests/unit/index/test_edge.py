"""The embedded index's own folder: how a space is made."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from windrow.errors import IndexUnavailable
from windrow.index.edge import KEYWORDS, MAKING, PARTS, EdgeIndex
from windrow.index.home import Filter, Labels, Point, Query, Space

SPACE = Space("words-1", 3)
LABELS = Labels("docs", "s1", "a.md")
STATUS = Path("/proc/self/status")


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


async def test_fields_of_a_space_are_indexed_when_it_has_grown(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path / "spaces", indexed_from=3)
    await index.write(SPACE, [point(1), point(2)])
    assert await _indexed_fields(index) == set()
    await index.write(SPACE, [point(3)])
    fields = {*KEYWORDS, "tenant", "uri", "date"}
    assert await _indexed_fields(index) == fields
    assert await index.count(SPACE, Filter(collections=("docs",))) == 3
    await index.close()

    again = EdgeIndex(tmp_path / "spaces", indexed_from=3)
    assert await _indexed_fields(again) == fields
    await again.close()


async def test_fields_whose_indexing_was_cut_short_are_indexed_by_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large space without these would be searched by reading all of it."""
    index = EdgeIndex(tmp_path / "spaces", indexed_from=1)
    with monkeypatch.context() as patched:
        patched.setattr(EdgeIndex, "_index_fields", _die)
        with pytest.raises(IndexUnavailable):
            await index.write(SPACE, [point(1)])
    assert await _indexed_fields(index) == set()
    await index.write(SPACE, [point(1)])

    assert await _indexed_fields(index) >= {"tenant", "collection"}
    assert await index.count(SPACE, Filter(collections=("docs",))) == 1
    await index.close()


def _die(*given: object) -> None:
    raise OSError("killed here")


async def _indexed_fields(index: EdgeIndex) -> set[str]:
    return {*(await index._open(SPACE)).info().payload_schema}


def _mapped_mb() -> float:
    """What of files is in this process's memory, those of a file system in memory included."""
    lines = STATUS.read_text().splitlines()
    return sum(int(one.split()[1]) / 1024 for one in lines if one.startswith(("RssFile", "RssSh")))
