"""Why a job is not running: the question people ask most, answered by its state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from shlex import quote
from typing import Any, Unpack, assert_never

from windrow.queue.job import LIVE, EnqueueOptions, Job, JobState
from windrow.queue.limits import WINDOW
from windrow.queue.queue import Queue
from windrow.queue.records import QueueInfo, ReadyKind, WorkerInfo
from windrow.services.examination import LOOK_AHEAD
from windrow.services.health import Finding, worker_for
from windrow.services.jobs import find_job, open_queue
from windrow.services.queues import describe_places, describe_ready
from windrow.settings import Settings


async def explain_job(settings: Settings, job_id: str) -> tuple[Job, list[Finding]]:
    """A job, and why it is not running. Raises JobNotFound."""
    async with open_queue(settings) as queue:
        job = await queue.get(await find_job(queue, job_id))
        return job, await explain(queue, job)


async def add_job(
    settings: Settings, kind: str, /, payload: Any = None, **options: Unpack[EnqueueOptions]
) -> tuple[Job, list[Finding]]:
    """Enqueue a job, by the options of `Queue.enqueue`; the job, and what keeps it from running."""
    async with open_queue(settings, migrate=None) as queue:
        job = await queue.enqueue(kind, payload, **options)
        return job, await explain(queue, job)


async def explain(queue: Queue, job: Job) -> list[Finding]:
    """Why a job is not running, or what it does; every reason there is, the first one first."""
    return [finding async for finding in _reasons(queue, job)]


async def _reasons(queue: Queue, job: Job) -> AsyncIterator[Finding]:
    match job.state:
        case JobState.COMPLETED | JobState.FAILED | JobState.CANCELLED:
            yield _ended(job)
        case JobState.ACTIVE:
            yield _running(job, queue.store.clock.now() or datetime.now(UTC))
        case JobState.WAITING:
            yield await _waiting(queue, job)
        case JobState.SCHEDULED:
            yield _scheduled(job)
            async for finding in _obstacles(queue, job):
                yield finding
        case JobState.PAUSED:
            yield Finding("warning", "it is paused", "somebody paused this job", "resume the job")
        case JobState.HELD:
            async for finding in _held(queue, job):
                yield finding
        case JobState.READY:
            async for finding in _obstacles(queue, job):
                yield finding
        case _:
            assert_never(job.state)


def _ended(job: Job) -> Finding:
    when = f"{job.finished_at:%Y-%m-%d %H:%M:%S} UTC" if job.finished_at else "some time ago"
    if job.state == JobState.COMPLETED:
        return Finding("note", "it has completed", f"it ended at {when}", "")
    if job.state == JobState.CANCELLED:
        cause = f"{job.error or 'somebody cancelled it'}, at {when}"
        return Finding("note", "it was cancelled", cause, f"run it after all: {_retry(job)}")
    # Not of how many: its handler may have allowed fewer attempts than the job.
    cause = (
        f"{job.error or 'no reason was given'} "
        f"(runs: {job.attempts} failed, {job.crashes} crashed; it ended at {when})"
    )
    fix = f"correct the cause or its payload, then run it again: {_retry(job)}"
    return Finding("error", "it has failed", cause, fix)


def _retry(job: Job) -> str:
    return f"`windrow jobs retry {job.id} --yes`"


def _running(job: Job, now: datetime) -> Finding:
    until = job.lease_expires_at
    worker = job.worker or "a worker"
    if until is None or until <= now:
        return Finding(
            "error",
            "the lease of its run has run out",
            f"{worker} did not renew it; the job comes back when a worker looks for such jobs",
            "start a worker if there is none: `windrow worker`",
        )
    if job.stop_as is not None:
        what = f"it is running, and was told to stop ({job.stop_as})"
        return Finding("note", what, f"{worker} has not ended it yet", "wait until the run ends")
    cause = f"{worker} holds the lease until {until:%Y-%m-%d %H:%M:%S} UTC and may renew it"
    return Finding("note", "it is running", cause, "wait until the run ends, or cancel the job")


async def _waiting(queue: Queue, job: Job) -> Finding:
    group = await queue.store.get_group(job.root_of) if job.root_of else None
    if group is None:
        return Finding("error", "it waits for a group", "the group is not there", "cancel the job")
    held = " and is held open" if group.is_open else ""
    paused = "; the group is paused" if group.is_paused else ""
    return Finding(
        "warning" if group.is_paused else "note",
        "it has run and waits for its group",
        f"{group.pending} jobs of group {group.id} have not ended{held}{paused}",
        f"resume the group: `windrow groups resume {group.id}`"
        if group.is_paused
        else "wait until they end, or cancel the group",
    )


def _scheduled(job: Job) -> Finding:
    tried = (
        f"it failed {'once' if job.attempts == 1 else f'{job.attempts} times'} and is tried again"
        if job.attempts
        else "it is for later"
    )
    last = f": {job.error}" if job.error else ""
    return Finding(
        "note",
        f"it is scheduled for {job.run_at:%Y-%m-%d %H:%M:%S} UTC",
        f"{tried}{last}",
        f"wait, or run it at once: {_retry(job)}",
    )


async def _held(queue: Queue, job: Job) -> AsyncIterator[Finding]:
    """By a running job with its unique key, or by its limits."""
    if job.unique is not None:
        same = await queue.list(unique=job.unique, tenant=job.tenant, state=[*LIVE], limit=10)
        for other in same:
            if other.id != job.id and other.tenant == job.tenant:
                yield Finding(
                    "note",
                    f"it follows job {other.id}",
                    f"that job has the unique key `{job.unique}` and is {other.state}",
                    "wait until that job ends, or cancel it",
                )
    is_explained = False
    async for finding in _obstacles(queue, job):
        is_explained = True
        yield finding
    if not is_explained and job.limits:
        cause = "its limits have room; workers make such jobs ready about once a second"
        yield Finding("note", "it is held until a worker looks for room", cause, "wait")


async def _obstacles(queue: Queue, job: Job) -> AsyncIterator[Finding]:
    """What keeps a job from being claimed even when it is due."""
    if await _is_paused(queue, job.queue):
        what = f"its queue `{job.queue}` is paused"
        fix = f"resume the queue: `windrow queues resume {quote(job.queue)}`"
        yield Finding("warning", what, "somebody paused the queue", fix)
    if job.group is not None:
        group = await queue.store.get_group(job.group)
        if group is not None and group.is_paused:
            what = f"its group {job.group} is paused"
            fix = f"resume the group: `windrow groups resume {job.group}`"
            yield Finding("warning", what, "somebody paused the group", fix)
    async for finding in _full_limits(queue, job):
        yield finding
    missing = _without_worker(job, await queue.workers())
    if missing is not None:
        yield missing
    elif job.state == JobState.READY:
        what = "it is ready and will be claimed"
        cause = f"jobs of higher priority, or that came before it in `{job.queue}`, go first"
        yield Finding("note", what, cause, "wait, start more workers, or raise its priority")


async def _is_paused(queue: Queue, name: str) -> bool:
    return any(info.name == name and info.is_paused for info in await queue.queues())


async def _full_limits(queue: Queue, job: Job) -> AsyncIterator[Finding]:
    if not job.limits:
        return
    limits = {limit.key: limit for limit in await queue.store.list_limits(counts_held=False)}
    for key in job.limits:
        limit = limits.get(key)
        if limit is None:
            continue
        if limit.parked_until is not None:
            until = f"{limit.parked_until:%Y-%m-%d %H:%M:%S} UTC"
            cause = "somebody asked to start nothing with this key until then"
            fix = f"wait, or end it: `windrow limits park {quote(key)} --off`"
            yield Finding("note", f"its key `{key}` is parked until {until}", cause, fix)
        elif (
            job.state == JobState.HELD and limit.active is not None and limit.taken >= limit.active
        ):
            places = describe_places(limit, *await _look_at_ready(queue))
            cause = f"held: limit {key} is full; {places}"
            set_ = f"`windrow limits set {quote(key)} --active N`"
            fix = f"wait until one ends, or set a higher limit: {set_}"
            yield Finding("note", f"its limit `{key}` is reached", cause, fix)
        elif job.state == JobState.HELD and limit.per_second is not None:
            cause = f"at most {limit.per_second:g} jobs with this key start each second"
            yield Finding(
                "note", f"its limit `{key}` has a rate", cause, "wait, or set a higher rate"
            )
        elif (
            job.state == JobState.HELD
            and key == job.limits[0]
            and limit.active is None
            and limit.ready >= WINDOW
        ):
            ready = describe_ready(limit, *await _look_at_ready(queue))
            yield Finding(
                "note",
                f"others with its key `{key}` go first",
                f"{limit.ready} {ready} have the key, as many as may wait in the line at a time",
                f"wait, or let more of them in: `windrow limits set {quote(key)} --active N`",
            )


async def _look_at_ready(
    queue: Queue,
) -> tuple[Sequence[QueueInfo], Sequence[WorkerInfo], Sequence[ReadyKind]]:
    kinds = await queue.store.list_ready_kinds(LOOK_AHEAD)
    return await queue.queues(), await queue.workers(), kinds


def _without_worker(job: Job, workers: list[WorkerInfo]) -> Finding | None:
    if any(worker.takes(job.queue, job.kind) for worker in workers):
        return None
    if not workers:
        cause = "no worker has said lately that it is there"
    elif any(worker.queues is None or job.queue in worker.queues for worker in workers):
        cause = f"workers look at the queue `{job.queue}`, but none has a handler for `{job.kind}`"
    else:
        cause = f"no worker looks at the queue `{job.queue}`"
    fix = f"start a worker that has a handler for `{job.kind}`: {worker_for(job.queue)}"
    return Finding("error", "no worker takes it", cause, fix)
