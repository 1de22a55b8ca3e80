"""What has changed in a folder since it was looked at last: by size and time, without reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from windrow.ingest.files.walk import FoundFile


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as it was when it was read."""

    path: str
    size: int
    mtime_ns: int  # 0: read again
    is_settled: bool = True  # False: what was read has not arrived where it was to go


@dataclass(slots=True)
class Changes:
    new: list[FoundFile] = field(default_factory=list)
    changed: list[FoundFile] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    moved: list[tuple[str, FoundFile]] = field(default_factory=list)  # from where, to what
    unchanged: int = 0


def compare(
    found: Iterable[FoundFile], known: Mapping[str, KnownFile], *, unread: Iterable[str] = ()
) -> Changes:
    """What to do so that what is known is what was found. Of folders that could not be read
    (`unread`, as "docs/") nothing is said to be gone."""
    changes = Changes()
    seen: set[str] = set()
    for file in found:
        seen.add(file.path)
        before = known.get(file.path)
        if before is None:
            changes.new.append(file)
        elif not before.is_settled or (file.size, file.mtime_ns) != (before.size, before.mtime_ns):
            changes.changed.append(file)
        else:
            changes.unchanged += 1
    closed = tuple(unread)
    gone = [path for path in known if path not in seen and not path.startswith(closed)]
    _pair_moves(changes, [known[path] for path in gone])
    return changes


def _pair_moves(changes: Changes, gone: list[KnownFile]) -> None:
    """A file that is gone and a new one with its size and time are one that was moved, if there is
    no other that it could be."""
    old: dict[tuple[int, int], list[KnownFile]] = defaultdict(list)
    new: dict[tuple[int, int], list[FoundFile]] = defaultdict(list)
    for file in gone:
        old[file.size, file.mtime_ns].append(file)
    for found in changes.new:
        new[found.size, found.mtime_ns].append(found)
    moved = {
        before[0].path: new[key][0]
        for key, before in old.items()
        if len(before) == 1 and len(new.get(key, ())) == 1 and key[0] and key[1]
    }
    changes.moved = list(moved.items())
    changes.gone = [file.path for file in gone if file.path not in moved]
    targets = {file.path for file in moved.values()}
    changes.new = [file for file in changes.new if file.path not in targets]
