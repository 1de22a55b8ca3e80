"""The embedded index's own folder: how a space is made."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from windrow.errors import IndexUnavailable
from windrow.index.edge import MAKING, PARTS, EdgeIndex
from windrow.index.home import Filter, Labels, Point, Query, Space

SPACE = Space("words-1", 3)
LABELS = Labels("docs", "s1", "a.md")


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


async def test_space_is_not_there_before_its_fields_are_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was left without these would be searched by reading all of it, for ever."""
    index = EdgeIndex(tmp_path / "spaces")
    with monkeypatch.context() as patched:
        patched.setattr(EdgeIndex, "_index_fields", _die)
        with pytest.raises(IndexUnavailable):
            await index.write(SPACE, [point(1)])
    assert await index.spaces() == []
    assert not (tmp_path / "spaces" / SPACE.name).exists()

    await index.write(SPACE, [point(1)])

    assert await index.spaces() == [SPACE.name]
    assert await index.count(SPACE, Filter(collections=("docs",))) == 1
    await index.close()


def _die(*given: object) -> None:
    raise OSError("killed here")
