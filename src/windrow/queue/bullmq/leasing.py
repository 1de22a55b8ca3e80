"""What a running job says while it runs: that it is alive, how far it is, what its steps gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from redis.asyncio.client import Pipeline

from windrow.errors import LeaseLost
from windrow.queue.bullmq import rows
from windrow.queue.bullmq.claiming import Leases, queue_of
from windrow.queue.bullmq.connection import Fill, Links, now_ms
from windrow.queue.bullmq.failures import wrapped_errors
from windrow.queue.job import JobState, Progress
from windrow.queue.records import ProgressReport, Renewal

UNKNOWN_SECONDS: Final = 30


async def extend_leases(
    links: Links, leases: Leases, tokens: Sequence[str], seconds: int | None
) -> Renewal:
    places = [await _place(links, leases, token) for token in tokens]
    asked = [(token, place) for token, place in zip(tokens, places, strict=True) if place]

    async def fill(pipe: Pipeline) -> None:
        for token, (job_id, length) in asked:
            scripts = links.scripts(queue_of(token))
            await scripts.extendLock(job_id, token, (seconds or length) * 1000, pipe)
            pipe.hget(scripts.toKey(job_id), rows.STOP)

    answers = await links.together(fill, transaction=False) if asked else []
    held: set[str] = set()
    stopping: dict[str, JobState] = {}
    soonest: int | None = None
    for number, (token, (job_id, length)) in enumerate(asked):
        is_ours, stop = answers[2 * number : 2 * number + 2]
        if not is_ours:
            leases.let_go(token)
            continue
        own_id = rows.our_id(queue_of(token), job_id)
        leases.held[token] = (job_id, seconds or length)
        held.add(own_id)
        soonest = min(soonest or seconds or length, seconds or length)
        if stop:
            stopping[own_id] = JobState(stop)
    expires = None if soonest is None else rows.from_ms(now_ms() + soonest * 1000)
    return Renewal(frozenset(held), stopping, expires)


async def _place(links: Links, leases: Leases, token: str) -> tuple[str, int] | None:
    """The job that a token is of, and the length of its lease. One that another process claimed, or
    this one before it was started again, is looked for among the active jobs of its queue."""
    if token in leases.held:
        return leases.held[token]
    queue = queue_of(token)
    with wrapped_errors():
        active = await links.client.lrange(links.scripts(queue).keys["active"], 0, -1)
        if not active:
            return None
        locks = await links.client.mget([links.lock_key(queue, one) for one in active])
    for job_id, lock in zip(active, locks, strict=True):
        if lock == token:
            return job_id, UNKNOWN_SECONDS
    return None


async def report_progress(links: Links, reports: Sequence[ProgressReport]) -> tuple[str, ...]:
    return tuple([one.id for one in reports if not await _report(links, one)])


async def _report(links: Links, report: ProgressReport) -> bool:
    queue, job_id = queue_of(report.token), rows.their_id(report.id)[1]
    scripts = links.scripts(queue)

    def fill_with(fields: dict[str, Any]) -> Fill:
        merged = _merged(rows.progress_of(fields), report)

        async def fill(pipe: Pipeline) -> None:
            keys = [scripts.toKey(job_id), scripts.keys["events"], scripts.keys["meta"]]
            await scripts.run(
                pipe, "updateProgress", keys, [job_id, msgspec.json.encode(merged).decode()]
            )

        return fill

    return await _if_held(links, queue, job_id, report.token, fill_with) is not None


def _merged(before: Progress | None, report: ProgressReport) -> Progress:
    known = before or Progress(0)
    return Progress(
        percent=max(known.percent, report.percent or 0),
        message=known.message if report.message is None else report.message,
        counters={**known.counters, **report.counters},
        updated_at=rows.from_ms(now_ms()),
    )


async def save_step(links: Links, job_id: str, token: str, name: str, result: str) -> str:
    queue, their_id = queue_of(token), rows.their_id(job_id)[1]
    key, step = links.job_key(queue, their_id), rows.STEP + name
    value = msgspec.json.encode((now_ms(), result)).decode()

    def fill_with(fields: dict[str, Any]) -> Fill:
        async def fill(pipe: Pipeline) -> None:
            pipe.hsetnx(key, step, value)
            pipe.hget(key, step)

        return fill

    answers = await _if_held(links, queue, their_id, token, fill_with)
    if answers is None:
        raise LeaseLost(job_id)
    return msgspec.json.decode(answers[1], type=tuple[int, str])[1]


async def _if_held(
    links: Links,
    queue: str,
    job_id: str,
    token: str,
    fill_with: Callable[[dict[str, Any]], Fill],
) -> list[Any] | None:
    """Write something of a job if this token still has it; None: it has not."""
    lock = links.lock_key(queue, job_id)

    async def look(pipe: Pipeline) -> Fill | None:
        if await pipe.get(lock) != token:
            return None
        fields: Any = await pipe.hgetall(links.job_key(queue, job_id))
        return fill_with(fields)

    return await links.guarded([lock], look)
