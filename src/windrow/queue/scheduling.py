"""The part of `Queue` that is about schedules: it checks, and calls one store verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar, Unpack, overload

from windrow.errors import InvalidJob, InvalidSchedule
from windrow.queue.checks import SizeLimits, check_name, check_seconds, to_row
from windrow.queue.job import DEFAULT_PRIORITY, OnConflict, ScheduledJobOptions
from windrow.queue.kinds import HandlerLike, new_job
from windrow.queue.records import CatchUp, Schedule, ScheduleRow
from windrow.queue.schedule import check_catch_up, check_timing
from windrow.queue.store import Store
from windrow.queue.typed_kind import TypedKind

P = TypeVar("P")


class ScheduleOptions(ScheduledJobOptions, total=False):
    """The options of `Queue.schedule`."""

    every: float | timedelta | None
    cron: str | None
    timezone: str
    jitter: float | timedelta | None
    catch_up: CatchUp


class Scheduling:
    store: Store
    _limits: SizeLimits

    @overload
    async def schedule(
        self, name: str, kind: str, payload: Any = None, **options: Unpack[ScheduleOptions]
    ) -> Schedule: ...
    @overload
    async def schedule(
        self,
        name: str,
        kind: HandlerLike[None, Any],
        payload: None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule: ...
    @overload
    async def schedule(
        self, name: str, kind: HandlerLike[P, Any], payload: P, **options: Unpack[ScheduleOptions]
    ) -> Schedule: ...
    @overload
    async def schedule(
        self, kind: HandlerLike[None, Any], /, **options: Unpack[ScheduleOptions]
    ) -> Schedule: ...
    @overload
    async def schedule(
        self, kind: HandlerLike[P, Any], payload: P, /, **options: Unpack[ScheduleOptions]
    ) -> Schedule: ...
    async def schedule(
        self,
        name: str | HandlerLike[Any, Any],
        kind: Any = None,
        payload: Any = None,
        *,
        every: float | timedelta | None = None,
        cron: str | None = None,
        timezone: str = "UTC",
        jitter: float | timedelta | None = None,
        catch_up: CatchUp = "one",
        queue: str | None = None,
        priority: int = DEFAULT_PRIORITY,
        unique: str | None = None,
        on_conflict: OnConflict = "return",
        tenant: str | None = None,
        headers: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        max_attempts: int | None = None,
        max_crashes: int | None = None,
        lease: float | timedelta | None = None,
        retention: float | timedelta | None = None,
        limits: Sequence[str] | None = None,
        max_hold: float | timedelta | None = None,
    ) -> Schedule:
        """Enqueue such a job again and again: `every` so many seconds, or by a `cron` line in a
        time zone. Each slot is fired once, however many workers run.

        Call it whenever the application starts: the schedule of that name is made or changed, and
        one that is the same goes on as it was. Slots that nobody was there to fire are caught up
        by the latest of them (`catch_up="one"`), by `"all"`, or not at all (`"skip"`). `jitter`
        delays each job by up to so much. With a `unique` key, a job that still runs is not doubled.

        `kind` may be a handler, which checks the payload as `enqueue` does. Without a name,
        `schedule(handler, payload, …)`, the schedule has the name of the kind.
        """
        if isinstance(name, TypedKind):
            name, kind, payload = name.kind, name, payload if kind is None else kind
        job = new_job(
            kind,
            payload,
            queue=queue,
            priority=priority,
            unique=unique,
            on_conflict=on_conflict,
            tenant=tenant,
            headers=headers,
            tags=tags,
            max_attempts=max_attempts,
            max_crashes=max_crashes,
            lease=lease,
            retention=retention,
            limits=limits,
            max_hold=max_hold,
        )
        timing = check_timing(cron, timezone, _seconds(every, "every"))
        return await self.store.put_schedule(
            ScheduleRow(
                name=_name(name),
                cron=timing.cron,
                timezone=timing.timezone,
                every_seconds=timing.every_seconds,
                jitter_seconds=_seconds(jitter, "jitter") or 0.0,
                catch_up=check_catch_up(catch_up),
                job=to_row(job, self._limits),
            )
        )

    async def unschedule(self, name: str) -> bool:
        """Remove a schedule; whether it was there. Jobs it has fired stay."""
        return await self.store.delete_schedule(name)

    async def schedules(self) -> list[Schedule]:
        """All schedules by name, each with its next and its last slot."""
        return await self.store.list_schedules()

    async def pause_schedule(self, name: str) -> Schedule:
        """Fire no slots until it is resumed. Raises ScheduleNotFound."""
        return await self.store.pause_schedule(name)

    async def resume_schedule(self, name: str) -> Schedule:
        """Go on with the next slot from now; those of the pause are not caught up."""
        return await self.store.resume_schedule(name)


def _name(name: Any) -> str:
    try:
        return check_name(name, "name of the schedule")
    except InvalidJob as error:
        raise InvalidSchedule(str(error)) from error


def _seconds(value: Any, what: str) -> float | None:
    try:
        return check_seconds(value, what)
    except InvalidJob as error:
        raise InvalidSchedule(str(error)) from error
