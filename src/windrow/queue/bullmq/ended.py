"""Jobs that have ended and that BullMQ has no state for: cancelled ones. Each is stored whole, as
JSON, in a hash by queue and state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from redis.asyncio.client import Pipeline

from windrow.queue.bullmq.connection import Links
from windrow.queue.bullmq.rows import their_id, to_ms
from windrow.queue.copying import CopiedJob, pack_job
from windrow.queue.job import FINAL, Job, JobState, Step

ENDS: Final = tuple(state for state in JobState if state in FINAL)


class Kept(msgspec.Struct, frozen=True):
    job: CopiedJob
    token: str | None = None  # of the run that ended it
    retries: int = 0  # by hand, up to then


def keep(pipe: Pipeline, links: Links, kept: Kept) -> None:
    """Add to a transaction: this job has ended."""
    job = kept.job
    bullmq_id = their_id(job.id)[1]
    pipe.hset(
        links.key("ended", job.state.value, job.queue),
        bullmq_id,
        msgspec.json.encode(kept).decode(),
    )
    if job.expires_at is not None:
        pipe.zadd(links.key("expiring"), {f"{job.queue}:{bullmq_id}": to_ms(job.expires_at)})


def forget(pipe: Pipeline, links: Links, queue: str, job_id: str) -> None:
    for state in ENDS:
        pipe.hdel(links.key("ended", state.value, queue), job_id)
    pipe.zrem(links.key("expiring"), f"{queue}:{job_id}")


def ask_for(pipe: Pipeline, links: Links, queue: str, job_id: str) -> None:
    """Adds one command for each state; `found` reads the answers."""
    for state in ENDS:
        pipe.hget(links.key("ended", state.value, queue), job_id)


def found(answers: Sequence[Any]) -> Kept | None:
    return next((decode(text) for text in answers if text), None)


def decode(text: str) -> Kept:
    return msgspec.json.decode(text, type=Kept)


def pack(job: Job, steps: Sequence[Step], token: str | None = None, retries: int = 0) -> Kept:
    return Kept(pack_job(job, steps, place=job.seq, unit=None), token, retries)


def to_job(kept: Kept) -> Job:
    """A kept job as `get` returns it."""
    copied = kept.job
    same = {
        name: getattr(copied, name)
        for name in CopiedJob.__struct_fields__
        if name in Job.__struct_fields__ and name not in ("errors", "headers")
    }
    return Job(
        **same,
        seq=copied.place,
        errors=list(copied.errors),
        headers=msgspec.json.decode(copied.headers) if copied.headers else {},
        payload_json=copied.payload,
        result_json=copied.result,
    )
