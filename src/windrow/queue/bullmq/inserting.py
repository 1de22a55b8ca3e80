"""New jobs: added by BullMQ's own scripts, all of a call in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from redis.asyncio.client import Pipeline

from windrow.errors import Unsupported
from windrow.queue.bullmq import ended
from windrow.queue.bullmq.connection import Links, check_queue, now_ms
from windrow.queue.bullmq.looking import read_places
from windrow.queue.bullmq.rows import Adding, extras_of, from_ms, to_bullmq
from windrow.queue.job import JobState
from windrow.queue.records import Inserted, JobRow

ANSWERS: Final = len(ended.ENDS) + 2  # of one job that is added


def check_row(row: JobRow) -> None:
    """Refuse, before anything is written, what BullMQ cannot do."""
    check_queue(row.queue)
    if row.group is not None or row.group_key is not None:
        raise Unsupported(
            "groups", "BullMQ has no groups: enqueue this job without, or use Postgres"
        )
    if row.limits:
        raise Unsupported(
            "limits",
            "BullMQ has no limits per key: give the job a queue of its own with fewer workers, or "
            "use Postgres",
        )
    if row.on_conflict == "replace" and row.unique is not None:
        raise Unsupported(
            "replaces",
            "BullMQ cannot replace the job that has a unique key: use "
            'on_conflict="return", "follow" or "reject", or Postgres',
        )


async def insert_jobs(links: Links, rows: Sequence[JobRow]) -> list[Inserted]:
    for row in rows:
        check_row(row)
    await links.know({row.queue for row in rows})
    now = now_ms()
    jobs = [to_bullmq(row, now) for row in rows]

    async def fill(pipe: Pipeline) -> None:
        for row, job in zip(rows, jobs, strict=True):
            await add_job(pipe, links, row.queue, job)

    inserted = read_answers(rows, jobs, await links.together(fill))
    return await _describe(links, rows, inserted)


async def _describe(
    links: Links, rows: Sequence[JobRow], inserted: Sequence[Inserted]
) -> list[Inserted]:
    """With the places of those that were there before."""
    places = [
        (row.queue, one.id)
        for row, one in zip(rows, inserted, strict=True)
        if one.outcome != "inserted"
    ]
    found = {(one.queue, one.bullmq_id): one.job for one in await read_places(links, places)}
    described = []
    for row, one in zip(rows, inserted, strict=True):
        if (job := found.get((row.queue, one.id))) is not None:
            one = Inserted(job.id, one.outcome, job.seq, job.state, job.run_at, job.created_at)
        described.append(one)
    return described


async def add_job(pipe: Pipeline, links: Links, queue: str, job: Adding) -> None:
    """Add to a transaction: whether the job has been there, and the job."""
    ended.ask_for(pipe, links, queue, job.id)
    pipe.exists(links.job_key(queue, job.id))
    await links.scripts(queue).addJob(job, pipe)


def read_answers(
    rows: Sequence[JobRow], jobs: Sequence[Adding], answers: Sequence[Any]
) -> list[Inserted]:
    return [
        _inserted(row, job, answers[start : start + ANSWERS])
        for row, job, start in zip(rows, jobs, range(0, len(answers), ANSWERS), strict=True)
    ]


def _inserted(row: JobRow, job: Adding, answers: Sequence[Any]) -> Inserted:
    *kept, is_there, job_id = answers
    if str(job_id) != row.id:  # BullMQ says who has the unique key
        return Inserted(str(job_id), "rejected" if row.on_conflict == "reject" else "existing")
    if is_there or any(kept):
        return Inserted(row.id, "existing")
    now = job.timestamp
    due = now + int(job.opts["delay"])
    return Inserted(
        row.id,
        "inserted",
        seq=extras_of(job.opts).seq or 0,
        state=JobState.SCHEDULED if due > now else JobState.READY,
        run_at=from_ms(due),
        created_at=from_ms(now),
    )
