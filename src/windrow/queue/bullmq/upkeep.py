"""What is done from time to time, and who does it: stalled jobs, old jobs, leaders, workers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from redis.asyncio.client import Pipeline

from windrow.queue.bullmq import ended
from windrow.queue.bullmq.connection import Fill, Links, now_ms
from windrow.queue.bullmq.failures import wrapped_errors
from windrow.queue.bullmq.finishing import read_retention
from windrow.queue.bullmq.looking import read_places
from windrow.queue.bullmq.rows import from_ms, our_id
from windrow.queue.job import FINAL, Job, JobState
from windrow.queue.records import (
    Archive,
    Change,
    DiskUsage,
    Pruned,
    Retention,
    Vitals,
    WorkerInfo,
    WorkerRow,
)

# BullMQ marks active jobs in one check and takes up in the next those that have lost their lock, so
# a crash is found within two of these after the lock ran out.
STALLED_CHECK_MS: Final = 500
# How often a job may crash is said by the job; BullMQ knows one number for all, so it gets none.
NO_STALLED_LIMIT: Final = 2**31 - 1


async def rescue_jobs(links: Links) -> list[Change]:
    """Have BullMQ look for jobs whose lock ran out, in every queue."""
    queues = await links.queues()

    async def fill(pipe: Pipeline) -> None:
        names = [
            "stalled",
            "wait",
            "active",
            "stalled-check",
            "meta",
            "paused",
            "marker",
            "events",
            "repeat",
        ]
        for queue in queues:
            scripts = links.scripts(queue)
            args = [NO_STALLED_LIMIT, scripts.keys[""], now_ms(), STALLED_CHECK_MS]
            await scripts.run(pipe, "moveStalledJobsToWait", scripts.getKeys(names), args)

    answers = await links.together(fill, transaction=False) if queues else []
    return [
        Change(our_id(queue, job_id), JobState.ACTIVE, JobState.READY)
        for queue, stalled in zip(queues, answers, strict=True)
        for job_id in stalled
    ]


async def set_retention(links: Links, queue: str, seconds: Mapping[str, int | None]) -> None:
    await links.know([queue])
    key = links.key("retention")

    async def look(pipe: Pipeline) -> Fill:
        kept = msgspec.json.decode(await pipe.hget(key, queue) or "{}")
        merged = {state: value for state, value in {**kept, **seconds}.items() if value is not None}

        async def fill(pipe: Pipeline) -> None:
            if merged:
                pipe.hset(key, queue, msgspec.json.encode(merged).decode())
            else:
                pipe.hdel(key, queue)

        return fill

    await links.guarded([key], look)


async def list_retention(links: Links) -> dict[str, Retention]:
    return {name: Retention(**kept) for name, kept in (await read_retention(links)).items()}


async def prune_jobs(links: Links, limit: int, archive: Archive | None) -> Pruned:
    """Remove jobs that are past their time. Those whose end Windrow did not see (a worker in Node
    ended them) are kept as long as BullMQ's own options say."""
    key = links.key("expiring")
    with wrapped_errors():
        due = await links.client.zrangebyscore(key, 0, now_ms(), start=0, num=limit)
    places = [(queue, job_id) for queue, _, job_id in (one.partition(":") for one in due)]
    found = [one for one in await read_places(links, places) if _is_over(one.job)]
    if archive is not None and found:
        await asyncio.to_thread(archive, [one.job for one in found])
    over = {(one.queue, one.bullmq_id) for one in found}

    async def fill(pipe: Pipeline) -> None:
        for queue, job_id in places:
            if (queue, job_id) in over:
                scripts = links.scripts(queue)
                keys = [scripts.toKey(job_id), scripts.keys["repeat"]]
                await scripts.run(pipe, "removeJob", keys, [job_id, 0, scripts.keys[""]])
                ended.forget(pipe, links, queue, job_id)
            else:  # it runs again, or is gone
                pipe.zrem(key, f"{queue}:{job_id}")

    if places:
        await links.together(fill)
    return Pruned(jobs=len(over), is_done=len(due) < limit)


def _is_over(job: Job) -> bool:
    return job.state in FINAL and job.expires_at is not None and job.expires_at <= from_ms(now_ms())


async def elect_leader(links: Links, role: str, holder: str, seconds: float) -> bool:
    key = links.key("leader", role)

    async def look(pipe: Pipeline) -> Fill | None:
        if await pipe.get(key) not in (None, holder):
            return None

        async def fill(pipe: Pipeline) -> None:
            if (length := round(seconds * 1000)) > 0:
                pipe.set(key, holder, px=length)
            else:
                pipe.delete(key)

        return fill

    return await links.guarded([key], look) is not None


async def resign_leader(links: Links, role: str, holder: str) -> bool:
    key = links.key("leader", role)

    async def look(pipe: Pipeline) -> Fill | None:
        if await pipe.get(key) != holder:
            return None

        async def fill(pipe: Pipeline) -> None:
            pipe.delete(key)

        return fill

    return await links.guarded([key], look) is not None


class _Registered(msgspec.Struct, frozen=True):
    row: WorkerRow
    started: int
    seen: int
    expires: int


async def register_worker(links: Links, row: WorkerRow, seconds: float) -> None:
    now = now_ms()
    with wrapped_errors():
        before = await links.client.execute_command("HGET", links.key("workers"), row.id)
    started = msgspec.json.decode(before, type=_Registered).started if before else now
    said = _Registered(row, started, now, now + round(seconds * 1000))

    async def fill(pipe: Pipeline) -> None:
        pipe.hset(links.key("workers"), row.id, msgspec.json.encode(said).decode())

    await links.together(fill)
    await _forget_workers(links)


async def _forget_workers(links: Links) -> None:
    gone = [one.row.id for one in await _registered(links) if one.expires <= now_ms()]
    if gone:
        with wrapped_errors():
            await links.client.execute_command("HDEL", links.key("workers"), *gone)


async def drop_worker(links: Links, worker_id: str) -> bool:
    with wrapped_errors():
        return bool(await links.client.execute_command("HDEL", links.key("workers"), worker_id))


async def list_workers(links: Links) -> list[WorkerInfo]:
    alive = [one for one in await _registered(links) if one.expires > now_ms()]
    infos = [
        WorkerInfo(
            **{name: getattr(one.row, name) for name in WorkerRow.__struct_fields__},
            started_at=from_ms(one.started),
            seen_at=from_ms(one.seen),
            expires_at=from_ms(one.expires),
        )
        for one in alive
    ]
    return sorted(infos, key=lambda info: info.name)


async def _registered(links: Links) -> Sequence[_Registered]:
    with wrapped_errors():
        kept = await links.client.execute_command("HVALS", links.key("workers"))
    return [msgspec.json.decode(text, type=_Registered) for text in kept]


async def check_health(links: Links) -> Vitals:
    with wrapped_errors():
        seconds, micros = await links.client.execute_command("TIME")
        clients: dict[str, Any] = await links.client.info("clients")
    return Vitals(
        now=from_ms(int(seconds) * 1000 + int(micros) // 1000),
        connections=clients.get("connected_clients"),
        max_connections=clients.get("maxclients"),
    )


async def measure_disk(links: Links) -> DiskUsage:
    """Redis keeps all of it in memory."""
    with wrapped_errors():
        memory = await links.client.info("memory")
    used = int(memory.get("used_memory") or 0)
    return DiskUsage(total=used, used=used, payloads=0, results=0, blobs=0)
