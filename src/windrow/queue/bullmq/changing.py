"""Changing jobs from outside: each in a transaction that is void if the job changed meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from redis.asyncio.client import Pipeline

from windrow.queue.bullmq import ended, rows
from windrow.queue.bullmq.connection import Fill, Links, now_ms
from windrow.queue.bullmq.finishing import (
    WAITS,
    FindEnd,
    bring_home,
    cancelled,
    expiry_of_cancelled,
    read_retention,
)
from windrow.queue.bullmq.inserting import add_job
from windrow.queue.bullmq.looking import Found, find_jobs, read_places
from windrow.queue.job import FINAL, JobError, JobState
from windrow.queue.records import Change, Finish, JobRow

# What is to be written for a job that was found; None: its state does not allow it.
Decide = Callable[[Found], Awaitable[tuple[JobState | None, Fill] | Change]]


async def cancel_jobs(
    links: Links, ids: Sequence[str], reason: str, find_end: FindEnd | None = None
) -> dict[str, Change]:
    retention = await read_retention(links)

    async def decide(found: Found) -> tuple[JobState | None, Fill] | Change:
        job, fields = found.job, found.fields or {}
        if job.state in FINAL or (job.state in WAITS and _is_repeating(found)):
            return Change(job.id, job.state, job.state, is_refused=True)
        key = links.job_key(found.queue, found.bullmq_id)
        if job.state is JobState.ACTIVE:

            async def tell(pipe: Pipeline) -> None:
                pipe.hset(key, mapping={rows.STOP: "cancelled", rows.STOP_REASON: reason})

            return JobState.ACTIVE, tell
        job.errors = [*job.errors, JobError(rows.from_ms(now_ms()), "cancel", reason)]
        expires = expiry_of_cancelled(fields, retention.get(found.queue, {}))
        kept = cancelled(job, fields, expires, fields.get(rows.TOKEN))

        async def end(pipe: Pipeline) -> None:
            await remove(pipe, links, found)
            ended.keep(pipe, links, kept)

        return JobState.CANCELLED, end

    return await _change(links, ids, decide, find_end)


async def retry_jobs(links: Links, ids: Sequence[str], *, from_start: bool) -> dict[str, Change]:
    async def decide(found: Found) -> tuple[JobState | None, Fill] | Change:
        job = found.job
        if job.state is JobState.SCHEDULED:
            return JobState.READY, _promoting(links, found, from_start)
        if job.state not in (JobState.FAILED, JobState.CANCELLED):
            return Change(job.id, job.state, job.state, is_refused=True)
        key = rows.unique_id(job.tenant, job.unique)
        if key is not None and (holder := await _holder(links, found.queue, key)):
            return Change(job.id, job.state, job.state, is_refused=True, blocked_by=holder)
        again = _reviving if found.kept is not None else _reprocessing
        return JobState.READY, again(links, found, key, from_start)

    return await _change(links, ids, decide)


async def delete_jobs(
    links: Links, ids: Sequence[str], find_end: FindEnd | None = None
) -> dict[str, Change]:
    async def decide(found: Found) -> tuple[JobState | None, Fill] | Change:
        job = found.job
        is_held = job.state in WAITS and _is_repeating(found)
        if job.state in (JobState.ACTIVE, JobState.WAITING) or is_held:
            return Change(job.id, job.state, job.state, is_refused=True)

        async def delete(pipe: Pipeline) -> None:
            await remove(pipe, links, found)
            ended.forget(pipe, links, found.queue, found.bullmq_id)

        return None, delete

    return await _change(links, ids, decide, find_end)


async def _change(
    links: Links, ids: Sequence[str], decide: Decide, find_end: FindEnd | None = None
) -> dict[str, Change]:
    """Change jobs as is decided for each. `find_end`: those that have ended without BullMQ's
    knowledge end there first, and are changed as what they are then."""
    found = await find_jobs(links, ids)
    changes = {}
    for job_id in ids:
        if job_id in found:
            changes[job_id] = await _change_one(links, found[job_id], decide, find_end)
        else:
            changes[job_id] = Change(job_id, None, None)
    return changes


async def _change_one(
    links: Links, place: Found, decide: Decide, find_end: FindEnd | None
) -> Change:
    queue, bullmq_id = place.queue, place.bullmq_id
    change = Change(place.job.id, None, None)
    over: tuple[Found, Finish] | None = None

    async def look(pipe: Pipeline) -> Fill | None:
        nonlocal change, over
        # Read beside the transaction: what is watched tells it if this has changed since.
        now = await read_places(links, [(queue, bullmq_id)])
        if not now:
            change = Change(place.job.id, None, None)
            return None
        if find_end is not None and (end := await find_end(now[0])) is not None:
            over = now[0], end
            return None
        before = now[0].job.state
        decided = await decide(now[0])
        if isinstance(decided, Change):
            change = decided
            return None
        after, fill = decided
        change = Change(place.job.id, before, after)
        return fill

    watched = [links.job_key(queue, bullmq_id), links.lock_key(queue, bullmq_id)]
    watched += [links.key("ended", state.value, queue) for state in ended.ENDS if place.kept]
    await links.guarded(watched, look)
    if over is None:
        return change
    await bring_home(links, *over)
    return await _change_one(links, place, decide, find_end)


def _is_repeating(found: Found) -> bool:
    """Whether a scheduler of BullMQ's made this job: the next one of each cannot be removed."""
    return bool(found.fields and found.fields.get("rjk"))


async def remove(pipe: Pipeline, links: Links, found: Found) -> None:
    scripts = links.scripts(found.queue)
    job_id = found.bullmq_id
    keys = [scripts.toKey(job_id), scripts.keys["repeat"]]
    await scripts.run(pipe, "removeJob", keys, [job_id, 0, scripts.keys[""]])
    pipe.zrem(links.key("expiring"), f"{found.queue}:{job_id}")


def _promoting(links: Links, found: Found, from_start: bool) -> Fill:
    async def fill(pipe: Pipeline) -> None:
        scripts = links.scripts(found.queue)
        keys, args = scripts.promoteArgs(found.bullmq_id)
        await scripts.run(pipe, "promote", keys, args)
        if from_start and (steps := _step_fields(found)):
            pipe.hdel(scripts.toKey(found.bullmq_id), *steps)

    return fill


def _step_fields(found: Found) -> list[str]:
    return [name for name in found.fields or {} if name.startswith(rows.STEP)]


def _reprocessing(links: Links, found: Found, key: str | None, from_start: bool) -> Fill:
    """A job that failed in BullMQ goes back to wait there."""
    scripts = links.scripts(found.queue)
    job_id = found.bullmq_id

    async def fill(pipe: Pipeline) -> None:
        names = ("events", "failed", "wait", "meta", "active", "marker", "prioritized", "pc")
        keys = [scripts.toKey(job_id), *(scripts.keys[name] for name in names)]
        args = [job_id, "LPUSH", "failedReason", "failed", "1", "0"]
        await scripts.run(pipe, "reprocessJob", keys, args)
        forgotten = ["stc", "defa", rows.TOKEN, rows.EXPIRES, rows.STOP, rows.STOP_REASON]
        if from_start:
            forgotten += _step_fields(found)
        pipe.hdel(scripts.toKey(job_id), *forgotten)
        pipe.hincrby(scripts.toKey(job_id), rows.RETRIES, 1)
        pipe.zrem(links.key("expiring"), f"{found.queue}:{job_id}")
        if key is not None:
            pipe.set(f"{scripts.keys['de']}:{key}", job_id)

    return fill


def _reviving(links: Links, found: Found, key: str | None, from_start: bool) -> Fill:
    """A job that is kept by us goes back to BullMQ."""

    async def fill(pipe: Pipeline) -> None:
        ended.forget(pipe, links, found.queue, found.bullmq_id)
        await _put_back(pipe, links, found)
        if not from_start:
            _keep_steps(pipe, links, found)
        retries = 1 + (found.kept.retries if found.kept is not None else 0)
        pipe.hset(links.job_key(found.queue, found.bullmq_id), rows.RETRIES, str(retries))

    return fill


async def _put_back(pipe: Pipeline, links: Links, found: Found) -> None:
    """Add a job that is not in BullMQ, with its runs and errors and all its attempts before it."""
    job = found.job
    await add_job(pipe, links, job.queue, rows.to_bullmq(_row(found), now_ms()))
    counters: dict[Any, Any] = {"ats": job.runs}
    if job.errors:
        counters[rows.ERRORS] = msgspec.json.encode(job.errors).decode()
    if job.progress is not None:
        counters["progress"] = msgspec.json.encode(job.progress).decode()
    counters["timestamp"] = rows.to_ms(job.created_at)
    pipe.hset(links.job_key(found.queue, found.bullmq_id), mapping=counters)


def _keep_steps(pipe: Pipeline, links: Links, found: Found) -> None:
    steps: dict[Any, Any] = {
        rows.STEP + step.name: msgspec.json.encode((rows.to_ms(step.at), step.result_json)).decode()
        for step in found.steps
    }
    if steps:
        pipe.hset(links.job_key(found.queue, found.bullmq_id), mapping=steps)


def _row(found: Found) -> JobRow:
    job = found.job
    is_due = job.state in FINAL
    return JobRow(
        id=found.bullmq_id,
        queue=job.queue,
        kind=job.kind,
        payload=msgspec.Raw(_bytes(job.payload_json)),
        headers=msgspec.Raw(msgspec.json.encode(job.headers)) if job.headers else None,
        tags=job.tags,
        priority=job.priority,
        run_at=None if is_due else job.run_at,
        unique=job.unique,
        tenant=job.tenant,
        max_attempts=job.max_attempts,
        max_crashes=job.max_crashes,
        lease_seconds=job.lease_seconds,
        retention_seconds=job.retention_seconds,
        is_cleaned=job.is_cleaned,
    )


async def _holder(links: Links, queue: str, key: str) -> str | None:
    """The live job that has a unique key."""
    holder = await links.client.get(f"{links.scripts(queue).keys['de']}:{key}")
    if holder is None:
        return None
    found = await read_places(links, [(queue, str(holder))])
    return found[0].job.id if found and found[0].job.state not in FINAL else None


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


async def pause_queue(links: Links, name: str, is_paused: bool) -> None:
    """Pause or resume as BullMQ does: its flag, and where its waiting jobs lie."""
    scripts = links.scripts(name)
    source, target = ("wait", "paused") if is_paused else ("paused", "wait")
    keys = scripts.getKeys([source, target, "meta", "prioritized", "events", "delayed", "marker"])

    async def fill(pipe: Pipeline) -> None:
        await scripts.run(pipe, "pause", keys, ["paused" if is_paused else "resumed"])

    await links.together(fill)
