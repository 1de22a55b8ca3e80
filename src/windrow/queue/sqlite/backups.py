"""A copy of the whole file as it is at one moment, made while others work on it, and the way back.

The copy is taken in one read transaction, so it has what was committed before it began and nothing
of what comes later; in WAL mode neither side waits for the other. It is examined, and takes its
name only when it is whole and on the disk.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow.db.migrations import check_upgradable
from windrow.db.sqlite.failures import translate
from windrow.db.sqlite.location import Location
from windrow.errors import StoreError
from windrow.queue.sqlite.schema import read_history
from windrow.queue.sqlite.work import PACKAGE, Work

# What SQLite keeps beside a database. A log that is left behind there would be played into
# whatever file takes the database's name.
COMPANIONS: Final = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy that was made: `path` is the file written, of so many bytes."""

    path: str
    bytes: int
    version: int  # of the tables in it


def back_up(location: Location, target: Path) -> Backup:
    """Copy the database to a file that is not there yet. Takes time."""
    source = Path(location.path)
    if not source.is_file():
        raise StoreError(f"there is no database at {source}")
    _refuse_taken(target)
    return _copy(source, target, mode="rw")  # a log beside it must be read, and may be gone then


def restore(source: Path, location: Location) -> Backup:
    """Make the database anew from a copy. Takes time."""
    if not source.is_file():
        raise StoreError(f"there is no backup at {source}")
    target = Path(location.path)
    _refuse_taken(target)
    return _copy(source, target, mode="ro")


def _refuse_taken(target: Path) -> None:
    for path in (target, *(target.with_name(target.name + end) for end in COMPANIONS)):
        if path.exists():
            raise StoreError(f"{path} is there already, and nothing is overwritten: move it away")


def _copy(source: Path, target: Path, *, mode: str) -> Backup:
    partial = target.with_name(f"{target.name}.partial")
    try:
        with _opened(source, mode) as original, _new(partial) as copy:
            original.backup(copy)
            version = _examine(copy, source)
            # One file by itself, which can also be read where nothing can be written.
            copy.execute("PRAGMA journal_mode = delete")
        _sync(partial)
        os.replace(partial, target)
        _sync(target.parent)
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, sqlite3.Error):
            raise translate(error, str(source)) from error
        raise StoreError(f"cannot write {target}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return Backup(str(target), target.stat().st_size, version)


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        yield connection


@contextmanager
def _new(path: Path) -> Iterator[sqlite3.Connection]:
    """An empty file, of the owner alone: what is in the database may be nobody else's business."""
    path.unlink(missing_ok=True)  # of a copy that was killed
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with _opened(path, "rw") as connection:
        yield connection


def _examine(copy: sqlite3.Connection, source: Path) -> int:
    """Whether it is sound, and a database of ours. The version of its tables."""
    [(found,), *_] = copy.execute("PRAGMA integrity_check").fetchall()
    if found != "ok":
        raise StoreError(f"{source} is damaged: {found}")
    history = read_history(Work(copy, 0))
    if history.version == 0:
        raise StoreError(f"{source} has no tables of Windrow")
    check_upgradable(history, PACKAGE)
    return history.version


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
