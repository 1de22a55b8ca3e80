"""What is in a folder: every file with its size and time, and why others were left out.

`compare` says what has changed since the last walk, by size and time. Nothing is opened. What is
skipped is named with its reason; what rules, links and special files leave out is only counted. A
folder that cannot be read is named in `unread` too: what was known to be in it is not gone. A file
that goes while we look is simply not there.
"""

from __future__ import annotations

import os
import stat
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from windrow.errors import FileGone
from windrow.ingest.files.content import SizeLimits, cannot_read, reason_too_large
from windrow.ingest.files.detect import is_binary_name
from windrow.ingest.files.ignore import FILES, NEVER, Ignore, Rules, check_rules, start
from windrow.redaction import is_secret_file

BINARY: Final = "binary file"
SECRET_NAME: Final = "secret: its name says that it holds secrets"  # noqa: S105 - no password


class WalkOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which files of a folder are wanted."""

    patterns: tuple[str, ...] = ()  # as in .gitignore; none: all files
    ignore_patterns: tuple[str, ...] = ()
    recursive: bool = True
    max_depth: int | None = None  # folders below the top; None: all
    follow_symlinks: bool = False
    max_bytes: int | None = None
    max_bytes_by_extension: Mapping[str, int] = {}
    include_secrets: bool = False

    def limits(self) -> SizeLimits:
        return SizeLimits.of(self.max_bytes, self.max_bytes_by_extension)


@dataclass(frozen=True, slots=True)
class FoundFile:
    path: str  # from the top, with slashes
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file, or a folder with all that is in it, that is wanted and not taken."""

    path: str
    size: int
    mtime_ns: int
    reason: str


@dataclass(slots=True)
class Walk:
    files: list[FoundFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # folders, as "docs/secret/"
    left_out: Counter[str] = field(default_factory=Counter)  # how many, by why


def walk(
    top: Path,
    options: WalkOptions | None = None,
    *,
    ignore_files: Sequence[Path] = (),
    root: Path | None = None,
) -> Walk:
    """Everything below a folder that is wanted. `ignore_files` are rules that hold everywhere; the
    rules of the folders above it hold too, up to its repository or to `root`.

    Raises FileGone if there is no such folder, FileRefused if it may not be read, and
    FileUnavailable if it cannot be just now.
    """
    return _Walker(top, options or WalkOptions(), *start(top, ignore_files, root=root)).run()


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str  # on the disk
    name: str  # from the top, with a slash at its end; "" for the top
    depth: int
    ignore: Ignore


class _Walker:
    def __init__(self, top: Path, options: WalkOptions, ignore: Ignore, way: str) -> None:
        self._options = options
        self._limits = options.limits()
        check_rules(options.patterns, "patterns")
        check_rules(options.ignore_patterns, "ignore_patterns")
        self._wanted = Rules(options.patterns)
        self._unwanted = Rules(options.ignore_patterns)
        self._way = way
        self._top = _Folder(os.fspath(top), "", 0, ignore)
        self._entered: set[tuple[int, int]] = set()
        self._found = Walk()

    def run(self) -> Walk:
        folders = [self._top]
        while folders:
            folder = folders.pop()
            entries = self._entries(folder)
            if entries is None:
                continue
            names = [entry.name for entry in entries if entry.name in FILES]
            if names:
                inside = folder.ignore.enter(
                    Path(folder.path), len(self._way) + len(folder.name), sorted(names)
                )
                folder = _Folder(folder.path, folder.name, folder.depth, inside)
            folders.extend(self._look(folder, entries))
        self._found.files.sort(key=lambda file: file.path)
        return self._found

    def _entries(self, folder: _Folder) -> list[os.DirEntry[str]] | None:
        try:
            if self._options.follow_symlinks and not self._is_new(folder.path):
                self._found.left_out["symlink loop"] += 1
                return None
            with os.scandir(folder.path) as entries:
                return list(entries)
        except (FileNotFoundError, NotADirectoryError) as error:
            if folder is self._top:
                raise FileGone(folder.path) from error
        except OSError as error:
            if folder is self._top:
                raise cannot_read(folder.path, error) from error
            self._found.unread.append(folder.name)
            self._skip(folder.name.removesuffix("/"), f"unreadable folder: {error.strerror}")
        return None

    def _look(self, folder: _Folder, entries: list[os.DirEntry[str]]) -> Iterator[_Folder]:
        for entry in entries:
            name = folder.name + entry.name
            try:
                is_folder = entry.is_dir(follow_symlinks=self._options.follow_symlinks)
                if self._is_left_out(folder, entry.name, name, is_folder):
                    self._found.left_out["ignored"] += 1
                elif is_folder:
                    if self._may_enter(folder, name):
                        yield _Folder(entry.path, f"{name}/", folder.depth + 1, folder.ignore)
                else:
                    self._take(entry, name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._skip(name, f"unreadable: {error.strerror}")

    def _skip(self, name: str, reason: str, found: os.stat_result | None = None) -> None:
        size, mtime_ns = (found.st_size, found.st_mtime_ns) if found is not None else (0, 0)
        self._found.skipped.append(SkippedFile(name, size, mtime_ns, reason))

    def _is_left_out(self, folder: _Folder, base: str, name: str, is_folder: bool) -> bool:
        if base in NEVER:
            return True
        if self._unwanted and self._unwanted.decide(name, is_folder=is_folder):
            return True
        if not is_folder and self._wanted and not self._wanted.decide(name, is_folder=False):
            return True
        return folder.ignore.leaves_out(self._way + name, is_folder=is_folder)

    def _may_enter(self, folder: _Folder, name: str) -> bool:
        if not self._options.recursive:
            return False
        deepest = self._options.max_depth
        if deepest is not None and folder.depth >= deepest:
            self._skip(name, f"folder too deep: at most {deepest} below the top")
            return False
        return True

    def _take(self, entry: os.DirEntry[str], name: str) -> None:
        if entry.is_symlink() and not self._options.follow_symlinks:
            self._found.left_out["symlink"] += 1
            return
        found = entry.stat(follow_symlinks=self._options.follow_symlinks)
        if not stat.S_ISREG(found.st_mode):
            self._found.left_out["no regular file"] += 1
        elif not self._options.include_secrets and is_secret_file(entry.name):
            self._skip(name, SECRET_NAME, found)
        elif is_binary_name(entry.name):
            self._skip(name, BINARY, found)
        elif found.st_size > (most := self._limits.of_name(entry.name)):
            self._skip(name, reason_too_large(found.st_size, most), found)
        else:
            self._found.files.append(FoundFile(name, found.st_size, found.st_mtime_ns))

    def _is_new(self, path: str) -> bool:
        """Whether this folder was not entered yet, by whatever name."""
        found = os.stat(path)
        key = (found.st_dev, found.st_ino)
        if key in self._entered:
            return False
        self._entered.add(key)
        return True


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
