"""The part of `Queue` that changes jobs and queues from outside: one, or all a filter finds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from windrow.db.codec import clean_text
from windrow.errors import DuplicateJob, IllegalTransition, InvalidJob, JobNotFound
from windrow.ids import plain_id
from windrow.queue.checks import SizeLimits, check_name, to_row
from windrow.queue.job import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_MAX_CRASHES,
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    Job,
    JobState,
    NewJob,
)
from windrow.queue.limits import make_room
from windrow.queue.looking import Looking
from windrow.queue.records import Change

BULK_PAGE: Final = 1000
_UNSET: Final[Any] = object()


class Changing(Looking):
    _limits: SizeLimits

    async def cancel(self, job_id: str, *, reason: str = "cancelled") -> Change:
        """Cancel a job in any state but a final one; a running one is told, through its lease."""
        changes = await self.store.cancel_jobs([plain_id(job_id)], clean_text(reason))
        return _accepted(changes, job_id, JobState.CANCELLED)

    async def retry(self, job_id: str, *, from_start: bool = False) -> Change:
        """Run a failed or cancelled job again, with all its attempts; a scheduled one at once. What
        its steps gave back is used again, unless it is to run `from_start`."""
        changes = await self.store.retry_jobs([plain_id(job_id)], from_start=from_start)
        return _accepted(changes, job_id, JobState.READY)

    async def delete(self, job_id: str) -> Change:
        """Remove a job without a trace. A running one must be cancelled first."""
        return _accepted(await self.store.delete_jobs([plain_id(job_id)]), job_id, "deleted")

    async def pause_job(self, job_id: str) -> Change:
        """Keep a job from running until it is resumed; a running one is told."""
        return _accepted(await self.store.pause_jobs([plain_id(job_id)]), job_id, JobState.PAUSED)

    async def resume_job(self, job_id: str) -> Change:
        """Let a paused job run again."""
        return _accepted(await self.store.resume_jobs([plain_id(job_id)]), job_id, "resumed")

    async def edit(
        self,
        job_id: str,
        *,
        payload: Any = _UNSET,
        kind: str = _UNSET,
        queue: str = _UNSET,
        priority: int = _UNSET,
        run_at: datetime = _UNSET,
        headers: Mapping[str, Any] | None = _UNSET,
        tags: Sequence[str] = _UNSET,
        max_attempts: int = _UNSET,
        max_crashes: int = _UNSET,
        lease: float | timedelta | None = _UNSET,
        retention: float | timedelta | None = _UNSET,
        limits: Sequence[str] = _UNSET,
        max_hold: float | timedelta | None = _UNSET,
    ) -> Job:
        """Change a job that is not running: fix a failed one's payload, then `retry` it. Steps it
        has taken stay (`retry(from_start=True)` forgets them). With other `limits` a ready job is
        held until these have room; with none (`[]`) it is held no more."""
        given = {
            name: value
            for name, value in {
                "payload": payload,
                "kind": kind,
                "queue": queue,
                "priority": priority,
                "run_at": run_at,
                "headers": headers,
                "tags": tags,
                "max_attempts": max_attempts,
                "max_crashes": max_crashes,
                "lease": lease,
                "retention": retention,
                "limits": limits,
                "max_hold": max_hold,
            }.items()
            if value is not _UNSET
        }
        if not given:
            raise InvalidJob("name at least one thing to change")
        changes = checked_changes(given, self._limits)
        change = await self.store.edit_job(plain_id(job_id), changes)
        _accepted({change.id: change}, change.id, "edited")
        await make_room(self.store, [changes.get("limits", ())[:1]])
        return await self.get(job_id)

    async def cancel_all(self, /, *, reason: str = "cancelled", **filters: Any) -> int:
        """Cancel every job that `list(**filters)` finds; how many were."""
        text = clean_text(reason)
        return await self._in_bulk(lambda ids: self.store.cancel_jobs(ids, text), filters)

    async def retry_all(self, /, *, from_start: bool = False, **filters: Any) -> int:
        """Retry every job that `list(**filters)` finds (failed ones, if no state is named)."""
        filters.setdefault("state", JobState.FAILED)
        return await self._in_bulk(
            lambda ids: self.store.retry_jobs(ids, from_start=from_start), filters
        )

    async def delete_all(self, /, **filters: Any) -> int:
        """Delete every job that `list(**filters)` finds; how many were."""
        return await self._in_bulk(self.store.delete_jobs, filters)

    async def pause(self, queue: str) -> None:
        """Stop claims from a queue. Its jobs are not touched; running ones go on."""
        await self.store.pause_queue(check_name(queue, "queue"))

    async def resume(self, queue: str) -> None:
        """Go on with a paused queue."""
        await self.store.resume_queue(check_name(queue, "queue"))

    async def _in_bulk(
        self,
        change: Callable[[Sequence[str]], Awaitable[dict[str, Change]]],
        filters: Mapping[str, Any],
    ) -> int:
        changed, after = 0, None
        while page := await self.list(**filters, after=after, limit=BULK_PAGE):
            after = page[-1].id
            changes = await change([job.id for job in page])
            changed += sum(1 for one in changes.values() if one.before and not one.is_refused)
        return changed


def checked_changes(given: Mapping[str, Any], limits: SizeLimits) -> dict[str, Any]:
    """The changes of `edit` in the form a store takes, by the same checks as a new job's."""
    row = to_row(
        NewJob(
            given.get("kind", "kind"),
            given.get("payload"),
            queue=given.get("queue", DEFAULT_QUEUE),
            priority=given.get("priority", DEFAULT_PRIORITY),
            run_at=given.get("run_at"),
            headers=given.get("headers"),
            tags=given.get("tags", ()),
            max_attempts=given.get("max_attempts", DEFAULT_MAX_ATTEMPTS),
            max_crashes=given.get("max_crashes", DEFAULT_MAX_CRASHES),
            lease=given.get("lease"),
            retention=given.get("retention"),
            # Whether a job has limits that are not being changed is known to the store alone.
            limits=given.get("limits", ("key",)),
            max_hold=given.get("max_hold"),
        ),
        limits,
    )
    stored_as = {
        "lease": "lease_seconds",
        "retention": "retention_seconds",
        "max_hold": "max_hold_seconds",
    }
    names = [stored_as.get(name, name) for name in given]
    return {name: getattr(row, name) for name in names}


def _accepted(changes: Mapping[str, Change], job_id: str, wanted: str) -> Change:
    """The change of the one job that was asked for, or the error that says why there is none."""
    change = changes.get(plain_id(job_id))
    if change is None or change.before is None:
        raise JobNotFound(job_id)
    if change.blocked_by is not None:
        raise DuplicateJob("of this job", change.blocked_by)
    if change.is_refused:
        raise IllegalTransition(job_id, change.before, wanted)
    return change
