"""Jobs that others made, on their way through databases whose ids are UUIDs.

Such a job has an id that is its queue's own (`images:17`). It leaves under a UUID that is made of
that, the same whenever it leaves, and says in a header which job of BullMQ's it was; when it comes
back to its queue it is that one again, unless its id has become another job's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from redis.asyncio.client import Pipeline

from windrow.queue.bullmq.connection import Links
from windrow.queue.bullmq.looking import read_places
from windrow.queue.bullmq.rows import dated_id, is_own_id, our_id, their_id, to_ms
from windrow.queue.copying import CopiedJob, Parcel
from windrow.queue.job import Job

HEADER: Final = "windrow.bullmq_id"


def as_it_leaves(links: Links, job: CopiedJob) -> CopiedJob:
    if is_own_id(job.id):
        return job
    named = f"{links.prefix}:{job.id}"
    return msgspec.structs.replace(
        job, id=_travel_id(job, named), headers=_encode({**_headers(job), HEADER: named})
    )


def as_it_was(job: CopiedJob, bullmq_id: str) -> CopiedJob:
    """A job that is to have this id in BullMQ."""
    if bullmq_id == job.id:
        return job
    headers = {name: value for name, value in _headers(job).items() if name != HEADER}
    return msgspec.structs.replace(
        job, id=our_id(job.queue, bullmq_id), headers=_encode(headers) if headers else None
    )


def former_ids(links: Links, parcel: Parcel) -> dict[str, str]:
    """Of jobs that come back, by id: what BullMQ called them."""
    former = {job.id: _former_id(links, job) for job in parcel.jobs}
    return {job_id: theirs for job_id, theirs in former.items() if theirs is not None}


def _former_id(links: Links, job: CopiedJob) -> str | None:
    named = _headers(job).get(HEADER)
    # Anybody may write a header: this one is true if it gives the id.
    if not isinstance(named, str) or _travel_id(job, named) != job.id:
        return None
    prefix, _, rest = named.partition(":")
    queue, theirs = their_id(rest)
    return theirs if (prefix, queue) == (links.prefix, job.queue) else None


async def choose_ids(links: Links, parcel: Parcel, former: Mapping[str, str]) -> dict[str, str]:
    """The ids in BullMQ of the jobs of a parcel, by theirs. The caller watches the `former` ones
    for changes until the jobs are written."""
    jobs = [job for job in parcel.jobs if job.id in former]

    async def fill(pipe: Pipeline) -> None:
        for job in jobs:
            pipe.get(links.scripts(job.queue).keys["id"])

    given = await links.together(fill) if jobs else []
    found = await read_places(links, [(job.queue, former[job.id]) for job in jobs])
    there = {(one.queue, one.bullmq_id): one.job for one in found}
    ids = {job.id: job.id for job in parcel.jobs}
    for job, last in zip(jobs, given, strict=True):
        theirs = former[job.id]
        holder = there.get((job.queue, theirs))
        if _is_same(job, holder) if holder is not None else _was_given(theirs, last):
            ids[job.id] = theirs
    return ids


def _is_same(job: CopiedJob, holder: Job) -> bool:
    return (job.kind, job.created_at) == (holder.kind, holder.created_at)


def _was_given(theirs: str, last: str | None) -> bool:
    """Whether BullMQ will not give the id to another job: it counts."""
    return not theirs.isdecimal() or int(theirs) <= int(last or 0)


def _travel_id(job: CopiedJob, named: str) -> str:
    return dated_id(to_ms(job.created_at), named)


def _headers(job: CopiedJob) -> dict[str, Any]:
    return msgspec.json.decode(job.headers) if job.headers else {}


def _encode(headers: dict[str, Any]) -> str:
    return msgspec.json.encode(headers).decode()
