"""What changes in a folder, as change sets: many small events become a few sets of work.

A set names single files only when these are few and were written or made. Whatever else there may
be (files that are gone or moved, folders, rules, another branch, bursts that were too many to be
told apart or even to be told) is a look at the whole folder, which misses nothing.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from windrow.errors import FileGone, FileRefused
from windrow.ingest.files.detect import is_binary_name
from windrow.ingest.files.ignore import FILES, Judge
from windrow.ingest.project import find_repository

MOST_FILES: Final = 100  # of a set that names them
DEBOUNCE_SECONDS: Final = 1.0
RECONCILE_SECONDS: Final = 600.0  # a look without any event: some may have been lost
LOCK_SECONDS: Final = 60.0  # for a git command that is at work
LOCK_LOOK_SECONDS: Final = 0.1
GIT: Final = ".git"
HEAD: Final = "HEAD"
ANOTHER_BRANCH: Final = "another branch or commit"


class Health(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"  # one or two errors in a row
    BACKOFF = "backoff"  # three to five
    DISABLED = "disabled"  # six: nobody watches any more


@dataclass(slots=True)
class WatchHealth:
    """How a watch fares, by the errors since it last did what it should."""

    errors: int = 0
    last_error: str | None = None

    @property
    def state(self) -> Health:
        if self.errors >= 6:
            return Health.DISABLED
        if self.errors >= 3:
            return Health.BACKOFF
        return Health.DEGRADED if self.errors else Health.HEALTHY

    def succeeded(self) -> None:
        self.errors = 0
        self.last_error = None

    def failed(self, error: str) -> float:
        """Note an error; the seconds to wait before the next try."""
        self.errors += 1
        self.last_error = error
        spread: float = random.uniform(0.9, 1.1)  # noqa: S311 - spreads waits
        return min(300.0, 2.0 ** (self.errors - 1)) * spread


@dataclass(frozen=True, slots=True)
class ChangeSet:
    files: tuple[str, ...] = ()  # from the top, that were made or written
    is_scan: bool = False
    events: int = 0
    why: str = ""  # of a scan

    def __bool__(self) -> bool:
        return self.is_scan or bool(self.files)


@dataclass(slots=True)
class Planner:
    """Turns events into change sets."""

    top: Path
    ignore_files: tuple[Path, ...] = ()
    git: Path | None = None  # where its repository keeps its state, if that is elsewhere
    _judge: Judge | None = field(default=None, repr=False)

    def plan(self, events: Iterable[tuple[bool, str]]) -> ChangeSet:
        """What to do about events: for each, whether something is gone, and its path."""
        listed = list(events)
        count = len(listed)
        names: set[str] = set()
        for is_gone, path in listed:
            if self.git is not None and self.git in Path(path).parents:
                if Path(path) == self.git / HEAD:
                    return ChangeSet(is_scan=True, events=count, why=ANOTHER_BRANCH)
                continue
            name = os.path.relpath(path, self.top)
            parts = name.split(os.sep)
            if GIT in parts:
                if parts[-1] == HEAD and parts[-2] == GIT:
                    return ChangeSet(is_scan=True, events=count, why=ANOTHER_BRANCH)
                continue
            if parts[-1] in FILES:
                self._judge = None
                return ChangeSet(is_scan=True, events=count, why="other rules")
            if len(listed) > MOST_FILES:
                return ChangeSet(is_scan=True, events=count, why="many changes")
            if self._leaves_out(name):
                continue
            if is_gone or not os.path.isfile(path):
                return ChangeSet(is_scan=True, events=count, why="something is gone or moved")
            if not os.path.islink(path):
                names.add(name)
        return ChangeSet(tuple(sorted(names)), events=count)

    def _leaves_out(self, name: str) -> bool:
        if is_binary_name(name):
            return True
        if self._judge is None:
            self._judge = Judge(self.top, self.ignore_files)
        return self._judge.leaves_out(name)


async def watch_folder(
    top: Path,
    *,
    stop: asyncio.Event,
    ignore_files: tuple[Path, ...] = (),
    debounce: float = DEBOUNCE_SECONDS,
    reconcile: float = RECONCILE_SECONDS,
) -> AsyncIterator[ChangeSet]:
    """Change sets of a folder until told to stop; the first is a look at all of it, when the watch
    has begun. Raises FileGone and FileRefused."""
    from watchfiles import Change, awatch

    if not await asyncio.to_thread(top.is_dir):
        raise FileGone(os.fspath(top))
    git = await asyncio.to_thread(_state_elsewhere, top)
    planner = Planner(top, ignore_files, git)
    loop = asyncio.get_running_loop()
    looked_at: float | None = None
    events: Any = awatch(
        *([top] if git is None else [top, git]),
        watch_filter=None,
        debounce=round(debounce * 1000),
        step=50,
        stop_event=stop,
        rust_timeout=200,
        yield_on_timeout=True,
    )
    try:
        async with aclosing(events):
            async for changes in events:
                if not await asyncio.to_thread(top.is_dir):
                    raise FileGone(os.fspath(top))
                if looked_at is None or loop.time() - looked_at > reconcile:
                    looked_at = loop.time()
                    yield ChangeSet(is_scan=True, events=len(changes), why="to see what is there")
                    continue
                if not changes:
                    continue
                await _git_is_done(git or top / GIT)
                plan = await asyncio.to_thread(
                    planner.plan, [(change == Change.deleted, path) for change, path in changes]
                )
                if plan.is_scan and plan.events > MOST_FILES:
                    # The system drops events when too many come: look once more when it is quiet.
                    looked_at = loop.time() - reconcile + 2 * debounce
                if plan:
                    yield plan
    except OSError as error:
        raise FileRefused(os.fspath(top), str(error)) from error


def _state_elsewhere(top: Path) -> Path | None:
    """Where the repository of a folder keeps its state, if not in the folder: the folder is below
    the top of the repository, or a working tree of its own."""
    repository = find_repository(top)
    if repository is None or repository.folder == top / GIT:
        return None
    return Path(os.path.realpath(repository.folder))


async def _git_is_done(state: Path) -> None:
    """Wait for a checkout that is at work, so that it is one change set."""
    lock = state / "index.lock"
    for _ in range(round(LOCK_SECONDS / LOCK_LOOK_SECONDS)):
        if not await asyncio.to_thread(lock.exists):
            return
        await asyncio.sleep(LOCK_LOOK_SECONDS)
