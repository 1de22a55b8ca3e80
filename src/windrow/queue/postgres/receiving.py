"""Taking in jobs of another database: see `queue/copying.py`."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from windrow.queue.admitting import Admission, admit, blob_hash, confirm, groups_named
from windrow.queue.copying import (
    CopiedJob,
    Parcel,
    Receipt,
    unpack_keys,
)
from windrow.queue.postgres.looking import read_jobs
from windrow.queue.postgres.rows import as_json, columns
from windrow.queue.postgres.work import Work


async def take_in(work: Work, parcel: Parcel) -> Receipt:
    admission = await _admit(work, parcel)
    await work.run("import_groups", rows=as_json(admission.groups))
    for keys in admission.keys:
        hashes, job_ids = columns(unpack_keys(keys), 2)
        job_ids = [str(uuid.UUID(bytes=job_id)) for job_id in job_ids]
        await work.run("add_group_keys", group_id=keys.group, keys=hashes, job_ids=job_ids)
    await work.run("import_schedules", rows=as_json(admission.schedules))
    await _write_jobs(work, admission.jobs)
    found = await read_jobs(work.run, [job.id for job in admission.jobs])
    return confirm(parcel, admission, found.values())


async def _admit(work: Work, parcel: Parcel) -> Admission:
    keys = sorted({job.unique for job in parcel.jobs if job.unique is not None})
    holders: defaultdict[tuple[str | None, str], dict[bool, str]] = defaultdict(dict)
    for row in await work.run("find_keys", keys=keys):
        holders[row["tenant"], row["unique_key"]][row["is_follower"]] = str(row["id"])
    jobs = await work.run("get_states", ids=[job.id for job in parcel.jobs])
    groups = await work.run("find_groups", ids=groups_named(parcel))
    return admit(
        parcel,
        known={str(row["id"]) for row in jobs},
        groups={str(row["id"]) for row in groups},
        schedules={row["name"] for row in await work.run("list_schedules")},
        holders=holders,
    )


async def _write_jobs(work: Work, jobs: Sequence[CopiedJob]) -> None:
    if not jobs:
        return
    hashes = [blob_hash(job.result) for job in jobs]
    blobs = {
        name: (job.result or "").encode()
        for name, job in zip(hashes, jobs, strict=True)
        if name is not None
    }
    if blobs:
        await work.run("add_blobs", hashes=list(blobs), bodies=list(blobs.values()))
    rows = [
        msgspec.structs.replace(job, errors=(), steps=(), result=None if large else job.result)
        for job, large in zip(jobs, hashes, strict=True)
    ]
    await work.run("import_jobs", rows=as_json(rows), ids=[job.id for job in jobs], hashes=hashes)
    await work.add_errors([(job.id, error) for job in jobs for error in job.errors])
    steps = [(job.id, s.name, s.at, s.result_json) for job in jobs for s in job.steps]
    ids, names, times, results = columns(steps, 4)
    await work.run("add_steps", ids=ids, names=names, times=times, results=results)
    await work.run("raise_sequence", seq=max(job.place for job in jobs))
    work.ready_queues |= {job.queue for job in jobs}
