"""What BullMQ takes of a parcel: see `queue/copying.py`. It has no place for groups, schedules,
limits and jobs that are paused or follow another; one whose unique key is held it would drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from redis.asyncio.client import Pipeline

from windrow.queue.admitting import Admission
from windrow.queue.bullmq.connection import Links, is_queue
from windrow.queue.bullmq.looking import read_places
from windrow.queue.bullmq.rows import unique_id
from windrow.queue.copying import CopiedJob, CopiedSchedule, Parcel
from windrow.queue.job import FINAL, JobState

_TAKEN: Final = frozenset({JobState.READY, JobState.SCHEDULED, JobState.HELD, *FINAL})


def unique_keys(links: Links, parcel: Parcel) -> dict[str, str]:
    """Of jobs with a unique key, by id: the key in Redis that says which job has it."""
    named = {
        job.id: (job.queue, unique_id(job.tenant, job.unique))
        for job in parcel.jobs
        if job.state not in FINAL and job.unique is not None
    }
    return {
        job_id: f"{links.scripts(queue).keys['de']}:{name}"
        for job_id, (queue, name) in named.items()
    }


async def admit(
    links: Links, parcel: Parcel, unique: Mapping[str, str], ids: Mapping[str, str]
) -> Admission:
    """Decide what is taken of a parcel whose jobs have these `unique` keys, and are to have these
    ids in BullMQ; the caller watches them for changes until it is written."""
    places = {(job.queue, ids[job.id]): job.id for job in parcel.jobs}
    there = {places[one.queue, one.bullmq_id] for one in await read_places(links, list(places))}
    queues = {unique[job.id]: job.queue for job in parcel.jobs if job.id in unique}
    holders = await _holders(links, queues)
    refused: dict[str, str] = {}
    jobs: list[CopiedJob] = []
    for item in parcel.items:
        if isinstance(item, CopiedSchedule):
            refused[item.name] = "BullMQ keeps no schedules of Windrow's"
        elif not isinstance(item, CopiedJob):
            refused[item.id] = "BullMQ has no groups"
        elif (reason := refusal_of(item)) is not None:
            refused[item.id] = reason
        elif item.id in there:
            continue
        elif (key := unique.get(item.id)) is not None and key in holders:
            # BullMQ would drop it and say nothing.
            refused[item.id] = f"its unique key is held in the target by job {holders[key]}"
        else:
            jobs.append(item)
            if key is not None:
                holders[key] = item.id
    return Admission(jobs=jobs, known=tuple(sorted(there)), refused=refused)


async def _holders(links: Links, keys: Mapping[str, str]) -> dict[str, str]:
    """Who has these unique keys, each of a queue; BullMQ itself takes no notice of one that is kept
    without a time to live for a job that is gone."""

    async def ask(pipe: Pipeline) -> None:
        for key in keys:
            pipe.get(key)
            pipe.pttl(key)

    answers = await links.together(ask) if keys else []
    held = {key: (answers[2 * n], answers[2 * n + 1]) for n, key in enumerate(keys)}
    named = {key: str(holder) for key, (holder, _) in held.items() if holder is not None}

    async def look(pipe: Pipeline) -> None:
        for key, holder in named.items():
            pipe.exists(links.job_key(keys[key], holder))

    there = await links.together(look) if named else []
    return {
        key: holder
        for (key, holder), is_there in zip(named.items(), there, strict=True)
        if is_there or held[key][1] >= 0
    }


def refusal_of(job: CopiedJob) -> str | None:
    if job.group is not None or job.root_of is not None:
        return "BullMQ has no groups"
    if job.state not in _TAKEN:
        return f"BullMQ has no place for a job that is {job.state.value}"
    if job.state not in FINAL and job.limits:
        return "BullMQ has no limits per key"
    if job.is_follower:
        return "BullMQ has no jobs that follow another"
    if not is_queue(job.queue):
        return "BullMQ takes no colon in the name of a queue"
    return None
