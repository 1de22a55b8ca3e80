"""The part of `Queue` that is about how long finished jobs are kept."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from windrow.errors import ArchiveFailed, ConfigError, InvalidJob, StoreError
from windrow.queue.archive import JsonlArchive
from windrow.queue.checks import check_name, check_retention, check_seconds
from windrow.queue.job import FINAL, JobState
from windrow.queue.policy import RETENTION_PRESETS
from windrow.queue.records import Archive, DiskUsage, JobFilter, Pruned, Retention
from windrow.queue.store import Store

logger = logging.getLogger(__name__)

# The role of the worker that looks after the whole database, and that of the queue which removes
# old jobs where no worker does. Two, because the second is held from one prune to the next, and a
# worker that starts meanwhile must not wait for it.
MAINTENANCE: Final = "maintenance"
PRUNING: Final = "pruning"
PRUNE_SECONDS: Final = 60.0
# Longer than it takes until the next prune, so that the role stays where it is.
LEAD_SECONDS: Final = 1.5 * PRUNE_SECONDS
PRUNE_BATCH: Final = 5000
TEND_BATCH: Final = 1000
CLEAN_PAGE: Final = 500
EVENT_SECONDS: Final = 86_400.0
# A week: on Postgres events lie in leaves by their time, which are used again after eight days.
MOST_EVENT_SECONDS: Final = 7 * 86_400.0
# What pages of earlier scrapes may take, all together.
PAGE_BYTES: Final = 1024 * 1024 * 1024
PAGES_AT_ONCE: Final = 1000

# A group that never had a member ends after so long: whoever made it is gone. Longer if it is held.
EMPTY_GROUP_SECONDS: Final = 86_400.0
HELD_GROUP_SECONDS: Final = 7 * 86_400.0

_UNSET: Final[Any] = object()
_FINAL_STATES: Final = tuple(state for state in JobState if state in FINAL)

Kept = float | timedelta | None


class Upkeep(msgspec.Struct, frozen=True):
    """What is done to old jobs without being asked: where they are archived (nowhere: None), how
    long events are kept, and how many bytes of earlier web pages."""

    archive_dir: str | os.PathLike[str] | None = None
    event_seconds: float = EVENT_SECONDS
    max_page_bytes: int = PAGE_BYTES


class Retaining:
    store: Store
    _upkeep: Upkeep
    _holder: str  # the name under which this queue leads
    _is_leader: bool = False
    _limits_after: str = ""  # where the next look at limit keys begins
    _pruned_at: float = float("-inf")  # by us, or found to be done by somebody else

    async def set_retention(
        self,
        queue: str,
        *,
        preset: str | None = None,
        completed: Kept = _UNSET,
        failed: Kept = _UNSET,
        cancelled: Kept = _UNSET,
    ) -> Retention:
        """Keep the jobs of a queue that finish from now on for so long after their finish: seconds
        or a timedelta by state, `math.inf` for ever, None for the default (a day; a week if they
        failed). A preset names all three: `"nuq"` 1 h, failed 6 h; `"unified"` a day; `"archive"`
        for ever. What is not named stays as it was."""
        name = check_name(queue, "queue")
        given = {"completed": completed, "failed": failed, "cancelled": cancelled}
        seconds = _preset(preset)
        seconds |= {
            state: check_retention(kept) for state, kept in given.items() if kept is not _UNSET
        }
        if not seconds:
            raise InvalidJob("name a preset, or at least one of completed, failed and cancelled")
        await self.store.set_retention(name, seconds)
        return (await self.store.list_retention()).get(name, Retention())

    async def retention(self) -> dict[str, Retention]:
        """The queues for which a retention was set, with their seconds by state."""
        return await self.store.list_retention()

    async def prune(self, *, archive: str | os.PathLike[str] | Archive | None = None) -> Pruned:
        """Remove jobs and groups that are past their time, and limit keys that nobody uses, and
        end groups that never had a member; `tend` does it about once a minute.

        With `archive`, a folder, each job is written there first, one line of JSON.
        """
        write = _archive(self._upkeep.archive_dir if archive is None else archive)
        jobs = groups = 0
        while True:
            pruned = await self.store.prune_jobs(PRUNE_BATCH, archive=write)
            jobs, groups = jobs + pruned.jobs, groups + pruned.groups
            if pruned.is_done:
                break
        while await self._end_empty_groups(PRUNE_BATCH) == PRUNE_BATCH:
            pass
        while await self._prune_limits(PRUNE_BATCH):
            pass
        while not await self.store.prune_events(self._upkeep.event_seconds):
            pass
        while await self._prune_pages():
            pass
        return Pruned(jobs, groups)

    async def disk_usage(self) -> DiskUsage:
        """What the database takes on the disk, in bytes."""
        return await self.store.measure_disk()

    async def clean(
        self,
        *,
        queue: str | None = None,
        state: JobState | str | Sequence[JobState | str] | None = None,
        older_than: float | timedelta = 0.0,
        dry_run: bool = False,
    ) -> dict[str, dict[JobState, int]]:
        """Delete finished jobs by hand: those of a queue, in these states, that finished longer ago
        than `older_than`. With `dry_run` they are only counted. How many, by queue and state."""
        wanted = JobFilter(
            queue=None if queue is None else check_name(queue, "queue"), states=_finals(state)
        )
        now = self.store.clock.now() or datetime.now(UTC)
        before = now - timedelta(seconds=check_seconds(older_than, "older_than") or 0.0)
        counts: dict[str, dict[JobState, int]] = {}
        after = None
        while page := await self.store.list_jobs(wanted, after=after, limit=CLEAN_PAGE):
            after = page[-1].id
            old = [job for job in page if job.finished_at and job.finished_at <= before]
            if not dry_run:
                changes = await self.store.delete_jobs([job.id for job in old])
                old = [job for job in old if changes[job.id].before in FINAL]
            for job in old:
                of_queue = counts.setdefault(job.queue, {})
                of_queue[job.state] = of_queue.get(job.state, 0) + 1
        return counts

    async def _prune_if_due(self) -> None:
        """Some of what `prune` does, so that nobody waits long; the rest is done the next time. Of
        all who tend a database one does it, and another one when that one is gone. An archive that
        cannot be written keeps the jobs and stops nothing else."""
        now = self.store.clock.now()
        seconds = time.monotonic() if now is None else now.timestamp()
        if seconds - self._pruned_at < PRUNE_SECONDS:
            return
        if not await self._elect():
            self._pruned_at = seconds
            return
        write = _archive(self._upkeep.archive_dir)
        try:
            pruned = await self.store.prune_jobs(TEND_BATCH, archive=write)
            if not pruned.is_done:
                return
            await self.store.prune_events(self._upkeep.event_seconds)
            self._pruned_at = seconds
            await self._end_empty_groups(TEND_BATCH)
            await self._prune_limits(TEND_BATCH)
            await self._prune_pages()
        except ArchiveFailed as error:
            self._pruned_at = seconds
            logger.error("old jobs are kept, because they cannot be archived: %s", error)

    async def _end_empty_groups(self, limit: int) -> int:
        return await self.store.end_empty_groups(EMPTY_GROUP_SECONDS, HELD_GROUP_SECONDS, limit)

    async def _prune_limits(self, limit: int) -> bool:
        """Forget some of the limit keys that nobody uses; whether there are more to look at."""
        _, self._limits_after = await self.store.prune_limits(self._limits_after, limit)
        return bool(self._limits_after)

    async def _prune_pages(self) -> bool:
        """Delete some of the cached pages beyond `max_page_bytes`; whether there may be more."""
        if not self.store.capabilities.documents:
            return False
        values = {"most": self._upkeep.max_page_bytes, "limit": PAGES_AT_ONCE}
        return bool(await self.store.database.rows("prune_pages", **values))

    async def _elect(self) -> bool:
        """Take the lead in pruning, if no worker has the whole maintenance and no queue has this.
        For 0 seconds a role is only had if it is free, and is kept from nobody."""
        is_free = await self.store.elect_leader(MAINTENANCE, self._holder, 0.0)
        self._is_leader = is_free and await self.store.elect_leader(
            PRUNING, self._holder, LEAD_SECONDS
        )
        return self._is_leader

    async def _resign(self) -> None:
        """Leave the lead to others now, rather than when its time is over."""
        if not self._is_leader:
            return
        self._is_leader = False
        try:
            await self.store.resign_leader(PRUNING, self._holder)
        except StoreError as error:
            logger.info("the lead is left to its time: %s", error)


def check_event_retention(kept: float | timedelta) -> float:
    """Seconds."""
    seconds = check_seconds(kept, "event_retention") or 0.0
    if seconds > MOST_EVENT_SECONDS:
        raise ConfigError(f"events are kept for a week at the most, not for {seconds:g} seconds")
    return seconds


def _preset(name: str | None) -> dict[str, int | None]:
    if name is None:
        return {}
    if name not in RETENTION_PRESETS:
        known = ", ".join(sorted(RETENTION_PRESETS))
        raise InvalidJob(f"no retention preset named {name!r}; there are: {known}")
    return {state: check_retention(kept) for state, kept in RETENTION_PRESETS[name].items()}


def _archive(given: str | os.PathLike[str] | Archive | None) -> Archive | None:
    """A folder is written to as JSON lines; anything else does its own writing."""
    if isinstance(given, str | os.PathLike):
        return JsonlArchive(given) if given else None
    return given


def _finals(state: JobState | str | Sequence[JobState | str] | None) -> tuple[JobState, ...]:
    """The states to clean; only finished jobs can be."""
    if state is None:
        return _FINAL_STATES
    listed = (state,) if isinstance(state, str) else tuple(state)
    for one in listed:
        if one not in _FINAL_STATES:
            raise InvalidJob(f"only finished jobs are cleaned: {', '.join(_FINAL_STATES)}")
    return tuple(JobState(one) for one in listed)
