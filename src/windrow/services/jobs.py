"""What people ask of jobs and of groups: look at them, run them again, change them, stop them, wait
for them, follow what happens to them.

A job or group that a person means is found by its id or the beginning of it. Ids are ordered by the
time they were made, so the index of ids answers that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from windrow.errors import GroupNotFound, InvalidJob, JobNotFound, WaitTimeout
from windrow.ids import is_id, plain_id
from windrow.queue.events import OLDEST, Event
from windrow.queue.job import FINAL, Job, JobState
from windrow.queue.queue import Opening, Queue
from windrow.queue.records import Change, Group, Pruned
from windrow.redaction import restore
from windrow.settings import Settings

if TYPE_CHECKING:
    from windrow.services.failing import ErrorPattern

EXAMPLES: Final = 5
MOST_ERRORS: Final = 100_000  # different ones
MOST_COUNTED: Final = 10_000
PAGE: Final = 1_000
# Of the beginning of an id: it has at least so many digits, the time to about a minute.
SHORTEST: Final = 8
DIGITS: Final = 32
MOST_NAMED: Final = 5

Missing = type[JobNotFound] | type[GroupNotFound]


class Preview(msgspec.Struct, frozen=True):
    """What a change of many jobs would touch. Not all were counted if `has_more`."""

    jobs: int
    has_more: bool
    states: Mapping[JobState, int]
    examples: Sequence[Job]


def open_queue(settings: Settings, *, migrate: bool | None = False) -> Opening:
    """The queue the settings name. Unless asked to, nothing is made or upgraded here: `windrow db
    migrate` does."""
    return Queue.open(
        settings.database_url,
        migrate=migrate,
        max_payload=settings.max_payload_bytes,
        max_result=settings.max_result_bytes,
        archive_dir=settings.archive_dir or None,
        max_page_bytes=settings.max_page_bytes,
        event_retention=settings.event_retention_seconds,
        direct_url=settings.database_direct_url or None,
        notifier=settings.notifier or None,
    )


async def list_jobs(settings: Settings, /, **wanted: Any) -> list[Job]:
    """Jobs, newest first; the filters are those of `Queue.list`."""
    async with open_queue(settings) as queue:
        return await queue.list(**await with_group(queue, wanted))


async def list_errors(
    settings: Settings, queue: str | None = None, limit: int = 50
) -> list[ErrorPattern]:
    """Failed jobs by the pattern of their error, most frequent first."""
    from windrow.services.failing import group_errors  # not at the top: no listing needs it

    async with open_queue(settings) as opened:
        counted = await opened.errors(queue, limit=MOST_ERRORS)
        return (await group_errors(counted))[:limit]


async def get_job(settings: Settings, job_id: str) -> Job:
    """One job with everything it has. Raises JobNotFound."""
    async with open_queue(settings) as queue:
        return await queue.get(await find_job(queue, job_id))


async def preview_jobs(settings: Settings, /, **wanted: Any) -> Preview:
    """What a change of all jobs that `Queue.list` finds would touch."""
    async with open_queue(settings) as queue:
        wanted = await with_group(queue, wanted)
        states: Counter[JobState] = Counter()
        examples: list[Job] = []
        after = None
        while page := await queue.list(**wanted, after=after, limit=PAGE):
            after = page[-1].id
            states.update(job.state for job in page)
            examples += page[: EXAMPLES - len(examples)]
            if len(page) < PAGE:
                break
            if states.total() >= MOST_COUNTED:
                more = await queue.list(**wanted, after=after, limit=1)
                return Preview(states.total(), bool(more), states, examples)
        return Preview(states.total(), False, states, examples)


async def retry_jobs(
    settings: Settings, job_ids: Sequence[str], *, from_start: bool = False
) -> list[Change]:
    """Run these again. The first that cannot be is an error, and those before it have been."""
    async with open_queue(settings) as queue:
        found = [await find_job(queue, job_id) for job_id in job_ids]
        return [await queue.retry(job_id, from_start=from_start) for job_id in found]


async def retry_all(settings: Settings, /, **wanted: Any) -> int:
    """Run all again that `Queue.list` finds; how many."""
    async with open_queue(settings) as queue:
        return await queue.retry_all(**await with_group(queue, wanted))


async def cancel_jobs(settings: Settings, job_ids: Sequence[str], reason: str) -> list[Change]:
    """Cancel these. The first that cannot be is an error, and those before it have been."""
    async with open_queue(settings) as queue:
        found = [await find_job(queue, job_id) for job_id in job_ids]
        return [await queue.cancel(job_id, reason=reason) for job_id in found]


async def cancel_all(settings: Settings, reason: str, /, **wanted: Any) -> int:
    """Cancel all that `Queue.list` finds; how many."""
    async with open_queue(settings) as queue:
        return await queue.cancel_all(reason=reason, **await with_group(queue, wanted))


async def edit_job(
    settings: Settings, job_id: str, changes: Mapping[str, Any], *, is_retried: bool = False
) -> Job:
    """Change a job that is not running, those things that `Queue.edit` takes, and run it again if
    asked to."""
    async with open_queue(settings) as queue:
        found = await find_job(queue, job_id)
        job = await queue.get(found)
        if changes:
            job = await queue.edit(found, **_restored(changes, job))
        if not is_retried:
            return job
        await queue.retry(found)
        return await queue.get(found)


def _restored(changes: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """With what was hidden from whoever made them."""
    if "payload" not in changes:
        return dict(changes)
    return {**changes, "payload": restore(changes["payload"], job.payload)}


async def wait_for_jobs(
    settings: Settings, job_ids: Sequence[str], timeout: float | None = None
) -> list[Job]:
    """These jobs when all have ended, or as they are when the time is up."""
    async with open_queue(settings) as queue:
        wanted = list(dict.fromkeys([await find_job(queue, job_id) for job_id in job_ids]))
        try:
            found = await queue.wait_many(wanted, timeout=timeout)
        except WaitTimeout:
            found = await queue.get_many(wanted)
        return [found[job_id] for job_id in wanted if job_id in found]


async def clean_jobs(settings: Settings, /, **wanted: Any) -> dict[str, dict[JobState, int]]:
    """Delete finished jobs, or count them; the filters are those of `Queue.clean`."""
    async with open_queue(settings) as queue:
        return await queue.clean(**wanted)


async def count_expired(settings: Settings) -> int:
    """How many finished jobs are past their time, the most that `prune_jobs` removes: Postgres
    removes most of them by the hour."""
    async with open_queue(settings) as queue:
        now = queue.store.clock.now() or datetime.now(UTC)
        count, after = 0, None
        while page := await queue.list(state=list(FINAL), after=after, limit=PAGE):
            after = page[-1].id
            count += sum(job.expires_at is not None and job.expires_at <= now for job in page)
        return count


async def prune_jobs(settings: Settings, archive: str | None = None) -> Pruned:
    """Remove what is past its time."""
    async with open_queue(settings) as queue:
        return await queue.prune(archive=archive)


async def list_groups(settings: Settings, /, **wanted: Any) -> list[Group]:
    """Groups, newest first; the filters are those of `Queue.groups`."""
    async with open_queue(settings) as queue:
        return await queue.groups(**wanted)


async def get_group(settings: Settings, group_id: str) -> Group:
    """One group with its members by state. Raises GroupNotFound."""
    async with open_queue(settings) as queue:
        return await queue.group(await find_group(queue, group_id))


async def pause_group(settings: Settings, group_id: str) -> Group:
    """Start no more of its jobs. Raises GroupNotFound."""
    async with open_queue(settings) as queue:
        return await queue.pause_group(await find_group(queue, group_id))


async def resume_group(settings: Settings, group_id: str) -> Group:
    """Let it go on. Raises GroupNotFound."""
    async with open_queue(settings) as queue:
        return await queue.resume_group(await find_group(queue, group_id))


async def cancel_group(settings: Settings, group_id: str, reason: str) -> Group:
    """Cancel what waits, tell what runs. Raises GroupNotFound."""
    async with open_queue(settings) as queue:
        return await queue.cancel_group(await find_group(queue, group_id), reason=reason)


async def follow_events(
    settings: Settings, after: str | None, *, follow: bool, **wanted: Any
) -> AsyncGenerator[Event, None]:
    """What happened after a cursor (None: all that is kept), or with `follow` what happens (None:
    from now on). The filters are those of `Queue.events`."""
    start = OLDEST if after is None and not follow else after
    async with open_queue(settings) as queue:
        async for event in queue.events(start, follow=follow, **wanted):
            yield event


async def find_job(queue: Queue, text: str) -> str:
    """The id of the one job whose id begins like this. Raises JobNotFound, or InvalidJob if there
    are several."""
    if is_id(text):
        return plain_id(text)
    if queue.store.capabilities.foreign_ids and ":" in text:
        return text  # in full: such ids are short
    page = await queue.list(after=_end(text, JobNotFound), limit=MOST_NAMED)
    return _only_one(text, [job.id for job in page], JobNotFound)


async def find_group(queue: Queue, text: str) -> str:
    """The id of the one group whose id begins like this. Raises GroupNotFound, or InvalidJob if
    there are several."""
    if is_id(text):
        return plain_id(text)
    page = await queue.groups(after=_end(text, GroupNotFound), limit=MOST_NAMED)
    return _only_one(text, [group.id for group in page], GroupNotFound)


async def with_group(queue: Queue, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A filter of jobs whose group, if it names one, is named in full."""
    named = wanted.get("group")
    return {**wanted, "group": await find_group(queue, named)} if named else {**wanted}


def _end(text: str, missing: Missing) -> str:
    """The first id that does not begin like this any more: those below it, newest first, may."""
    digits = text.replace("-", "").lower()
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST},{DIGITS - 1}}}", digits):
        raise missing(text)
    following = min(int(digits, 16) + 1, 16 ** len(digits) - 1)
    return plain_id(f"{following:0{len(digits)}x}".ljust(DIGITS, "0"))


def _only_one(text: str, ids: Sequence[str], missing: Missing) -> str:
    digits = text.replace("-", "").lower()
    alike = [one for one in ids if one.replace("-", "").startswith(digits)]
    if not alike:
        raise missing(text)
    if len(alike) > 1:
        raise InvalidJob(
            f"{text} is the beginning of several ids: {', '.join(alike)}; write more of the one "
            "you mean"
        )
    return alike[0]
