"""Watching folders: what changes there is enqueued, until told to stop.

Each folder has a watch of its own, which fails and recovers by itself. What could not be enqueued
is not lost: when the watch goes on it begins with a look at the whole folder.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from windrow.catalog import Catalog
from windrow.catalog.sources import SourceNote, SourceRow
from windrow.errors import InvalidOptions, WindrowError
from windrow.ingest.files.names import to_path, to_text
from windrow.ingest.files.watcher import (
    DEBOUNCE_SECONDS,
    ChangeSet,
    Health,
    WatchHealth,
    watch_folder,
)
from windrow.pipelines.knowledge.items import FilePayload, new_item
from windrow.pipelines.knowledge.refreshing import source_jobs
from windrow.queue.job import NewJob, Priority
from windrow.queue.queue import Queue
from windrow.services.attending import Attendance, Interrupted, attend
from windrow.services.knowledge import AddOptions, add, describe
from windrow.services.working import COMMAND_HANDLERS
from windrow.settings import Settings, data_folder

WATCHED = frozenset({"folder", "project"})


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that a watch has to say."""

    source: SourceRow
    changes: ChangeSet | None
    jobs: int
    health: WatchHealth


Tell = Callable[[Seen], None]


@dataclass(slots=True)
class Watch:
    """One folder that is watched."""

    queue: Queue
    source: SourceRow
    tell: Tell
    stop: asyncio.Event
    ignore_files: tuple[Path, ...] = ()
    debounce: float = DEBOUNCE_SECONDS
    health: WatchHealth = field(default_factory=WatchHealth)

    async def run(self) -> None:
        while not self.stop.is_set():
            try:
                await self._follow()
            except WindrowError as error:
                wait = self.health.failed(str(error))
                self.tell(Seen(self.source, None, 0, self.health))
                if self.health.state is Health.DISABLED:
                    await self._give_up()
                    return
                await self._sleep(wait)

    async def _follow(self) -> None:
        async for changes in watch_folder(
            to_path(self.source.uri),
            stop=self.stop,
            ignore_files=self.ignore_files,
            debounce=self.debounce,
        ):
            jobs = change_jobs(self.source, changes)
            await self.queue.enqueue_many(jobs)
            self.health.succeeded()
            self.tell(Seen(self.source, changes, len(jobs), self.health))

    async def _give_up(self) -> None:
        note = SourceNote(
            self.source.tenant, self.source.id, error=f"not watched: {self.health.last_error}"
        )
        await Catalog(self.queue.database).sources.put([note])

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.stop.wait()
        except TimeoutError:
            return


def change_jobs(source: SourceRow, changes: ChangeSet) -> list[NewJob]:
    """The items of a change set: each file, or one look at the whole folder."""
    if changes.is_scan:
        return source_jobs(source, priority=Priority.ACTIVE_PROJECT)
    top = to_path(source.uri)
    return [
        new_item(
            "file",
            "update",
            source.collection,
            FilePayload(source=source.id, file_path=to_text(os.path.join(top, name))),
            tenant=source.tenant,
            priority=Priority.ACTIVE_PROJECT,
        )
        for name in changes.files
    ]


async def run_watch(
    settings: Settings,
    paths: Sequence[str],
    options: AddOptions,
    tell: Tell,
    *,
    debounce: float = DEBOUNCE_SECONDS,
    concurrency: int = 10,
) -> None:
    """Add folders and watch them, with a worker here if there is no other, until interrupted or
    until no watch is left. Raises InvalidOptions and FileGone for what is no folder, and then
    none is added."""
    async with attend(settings, concurrency=concurrency, own=COMMAND_HANDLERS) as attendance:
        for source in [await describe(path, options) for path in paths]:
            if source.kind not in WATCHED:
                raise InvalidOptions(f"{source.uri} is a {source.kind}, and not to be watched")
        sources = [(await add(attendance.queue, path, options)).source for path in paths]
        everywhere = (data_folder(settings) / "ignore",)
        stop = asyncio.Event()
        watches = [
            Watch(attendance.queue, source, tell, stop, everywhere, debounce) for source in sources
        ]
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(watch.run()) for watch in watches]
            tasks.create_task(_until_interrupted(attendance, running, stop))


async def _until_interrupted(
    attendance: Attendance, running: Sequence[asyncio.Task[None]], stop: asyncio.Event
) -> None:
    try:
        while not all(task.done() for task in running):
            await attendance.pause()
    except Interrupted:
        pass  # which is how a watch ends
    finally:
        stop.set()
