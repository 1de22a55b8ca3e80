"""Short ways to say what a test is about: rows, claims and the ends of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from windrow.ids import new_id
from windrow.queue.job import Job, JobError, JobState
from windrow.queue.records import (
    Claim,
    Finish,
    Finished,
    Group,
    GroupRow,
    Inserted,
    JobFilter,
    JobRow,
    QueueInfo,
)
from windrow.queue.store import Store

EVERYTHING = JobFilter()
# Well formed and nobody's; fixed, so that xdist's workers name parametrised tests alike.
UNKNOWN_ID = "0190a0b0-0000-7000-8000-000000000000"


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def row(kind: str = "work", payload: Any = None, *, headers: Any = None, **fields: Any) -> JobRow:
    """A new job with the usual defaults."""
    defaults: dict[str, Any] = {
        "id": new_id(),
        "queue": "default",
        "priority": 5,
        "max_attempts": 5,
        "max_crashes": 5,
    }
    return JobRow(
        kind=kind,
        payload=raw(payload),
        headers=None if headers is None else raw(headers),
        **(defaults | fields),
    )


async def insert(store: Store, kind: str = "work", payload: Any = None, **fields: Any) -> Inserted:
    [inserted] = await store.insert_jobs([row(kind, payload, **fields)])
    return inserted


async def add(store: Store, kind: str = "work", payload: Any = None, **fields: Any) -> str:
    """Insert one job, which must be new, and return its id."""
    inserted = await insert(store, kind, payload, **fields)
    assert inserted.outcome == "inserted"
    return inserted.id


async def add_many(store: Store, count: int, **fields: Any) -> list[str]:
    inserted = await store.insert_jobs([row(**fields) for _ in range(count)])
    assert {one.outcome for one in inserted} <= {"inserted"}
    return [one.id for one in inserted]


def wish(limit: int = 1, *queues: str, **fields: Any) -> Claim:
    defaults: dict[str, Any] = {"seconds": 60, "worker": "worker-1"}
    return Claim(queues=queues or None, limit=limit, **(defaults | fields))


async def claim(store: Store, limit: int = 1, *queues: str, **fields: Any) -> list[Job]:
    return await store.claim_jobs(wish(limit, *queues, **fields))


async def claim_one(store: Store, *queues: str, **fields: Any) -> Job:
    [job] = await claim(store, 1, *queues, **fields)
    return job


async def add_and_claim(
    store: Store, kind: str = "work", payload: Any = None, **fields: Any
) -> Job:
    """A running job. The queue must be empty, or another job may be claimed."""
    job_id = await add(store, kind, payload, **fields)
    job = await claim_one(store)
    assert job.id == job_id
    return job


def ids(jobs: Sequence[Job]) -> list[str]:
    return [job.id for job in jobs]


def boom(message: str = "boom", **fields: Any) -> JobError:
    return JobError(None, "attempt", message, **fields)


def completion(job: Job, result: Any = None, **fields: Any) -> Finish:
    encoded = None if result is None else msgspec.json.encode(result)
    return finish_of(job, JobState.COMPLETED, result=encoded, **fields)


def failure(job: Job, message: str = "boom", **fields: Any) -> Finish:
    fields = {"error": boom(message), "uses_attempt": True} | fields
    return finish_of(job, JobState.FAILED, **fields)


def cancellation(job: Job, reason: str = "not wanted", **fields: Any) -> Finish:
    return finish_of(job, JobState.CANCELLED, error=JobError(None, "cancel", reason), **fields)


def attempt(job: Job, delay: float = 0.0, message: str = "boom") -> Finish:
    """A failed run that may be tried again."""
    return finish_of(job, JobState.READY, delay=delay, error=boom(message), uses_attempt=True)


def snooze(job: Job, delay: float = 0.0, **fields: Any) -> Finish:
    return finish_of(job, JobState.READY, delay=delay, **fields)


def finish_of(job: Job, state: JobState, **fields: Any) -> Finish:
    assert job.lease_token is not None
    return Finish(job.id, job.lease_token, state, **fields)


async def accept(store: Store, *finishes: Finish) -> Finished:
    """Finish runs, none of which may be refused."""
    finished = await store.finish_jobs(finishes)
    assert finished.lost == ()
    return finished


async def complete(store: Store, job: Job, result: Any = None, **fields: Any) -> Finished:
    return await accept(store, completion(job, result, **fields))


async def fail(store: Store, job: Job, message: str = "boom", **fields: Any) -> Finished:
    return await accept(store, failure(job, message, **fields))


async def add_completed(store: Store, **fields: Any) -> str:
    job = await add_and_claim(store, **fields)
    await complete(store, job)
    return job.id


async def add_failed(store: Store, message: str = "boom", **fields: Any) -> str:
    job = await add_and_claim(store, **fields)
    await fail(store, job, message)
    return job.id


async def get(store: Store, job_id: str) -> Job:
    return (await store.get_jobs([job_id]))[job_id]


async def exists(store: Store, job_id: str) -> bool:
    return job_id in await store.get_jobs([job_id])


async def state(store: Store, job_id: str) -> JobState:
    return (await get(store, job_id)).state


async def states(store: Store, job_ids: Sequence[str]) -> list[JobState]:
    found = await store.get_jobs(job_ids)
    return [found[job_id].state for job_id in job_ids]


async def make_group(store: Store, **fields: Any) -> Group:
    return await store.create_group(GroupRow(**({"id": new_id()} | fields)))


async def get_group(store: Store, group_id: str) -> Group:
    found = await store.get_group(group_id)
    assert found is not None
    return found


async def queue(store: Store, name: str = "default") -> QueueInfo:
    return {info.name: info for info in await store.list_queues()}[name]


async def counts(store: Store, name: str = "default") -> dict[JobState, int]:
    """Jobs of a queue by state, as the tally has them."""
    found = {info.name: info for info in await store.list_queues()}
    return dict(found[name].counts) if name in found else {}


async def counted(store: Store) -> dict[str, dict[JobState, int]]:
    """Jobs by queue and state, counted one by one."""
    found: dict[str, dict[JobState, int]] = {}
    for job in await store.list_jobs(EVERYTHING, limit=1_000_000):
        tally = found.setdefault(job.queue, {})
        tally[job.state] = tally.get(job.state, 0) + 1
    return found


async def tallied(store: Store) -> dict[str, dict[JobState, int]]:
    """Jobs by queue and state, as the store keeps count of them."""
    return {info.name: dict(info.counts) for info in await store.list_queues() if info.counts}
