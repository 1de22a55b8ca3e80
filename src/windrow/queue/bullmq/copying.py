"""Moving jobs to another database and back: parcels in an outbox of ours, as in the SQL stores.

Waiting jobs become BullMQ's, with what they have behind them; finished ones are kept by us whole.
What BullMQ has no place for (groups, schedules, limits, paused jobs) is refused, and stays in the
outbox of its source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
from redis.asyncio.client import Pipeline

from windrow.errors import StoreError
from windrow.queue.admitting import confirm
from windrow.queue.bullmq import ended
from windrow.queue.bullmq.admitting import admit, unique_keys
from windrow.queue.bullmq.changing import (
    is_repeating,
    keep_steps,
    pause_queue,
    put_back,
    remove,
)
from windrow.queue.bullmq.connection import Fill, Links, is_queue
from windrow.queue.bullmq.failures import wrapped_errors
from windrow.queue.bullmq.finishing import WAITS, FindEnd, bring_home
from windrow.queue.bullmq.looking import LISTS, Found, read_places
from windrow.queue.bullmq.naming import as_it_leaves, as_it_was, choose_ids, former_ids
from windrow.queue.bullmq.upkeep import set_retention
from windrow.queue.copying import (
    CopiedJob,
    Item,
    Parcel,
    QueueRow,
    Receipt,
    item_id,
    json_text,
    new_number,
    pack_job,
)
from windrow.queue.job import FINAL
from windrow.queue.records import Finish

# Of each queue: where jobs lie that do not run.
_PLACES: Final = ("wait", "paused", "prioritized", "delayed", "completed", "failed")


class _Box(msgspec.Struct, frozen=True):
    """A parcel as it lies in the outbox."""

    target: str
    items: tuple[Item, ...]


async def take_jobs(
    links: Links, target: str, limit: int, find_end: FindEnd | None = None
) -> str | None:
    """Put jobs that do not run into the outbox, a queue at a time. `find_end`: those that have
    ended without BullMQ's knowledge end there first."""
    for queue in await links.all_queues():
        places = await _first_places(links, queue, limit)
        if places and (number := await _take(links, target, places, find_end)):
            return number
    return None


async def _first_places(links: Links, queue: str, limit: int) -> list[tuple[str, str]]:
    keys = links.scripts(queue).keys

    async def fill(pipe: Pipeline) -> None:
        for name in _PLACES:
            if name in LISTS:
                pipe.lrange(keys[name], -limit, -1)
            else:
                pipe.zrange(keys[name], 0, limit - 1)
        for state in ended.ENDS:
            pipe.hkeys(links.key("ended", state.value, queue))

    ids = dict.fromkeys(one for found in await links.together(fill) for one in found)
    return [(queue, job_id) for job_id in ids][:limit]


async def _take(
    links: Links, target: str, places: Sequence[tuple[str, str]], find_end: FindEnd | None
) -> str | None:
    """Take those of them that nobody has claimed; None if there are none."""
    number = new_number()
    watched = [links.job_key(queue, job_id) for queue, job_id in places]
    over: list[tuple[Found, Finish]] = []

    async def look(pipe: Pipeline) -> Fill | None:
        found = [one for one in await read_places(links, places) if _may_leave(one)]
        over[:] = await _find_over(found, find_end)
        if over or not found:
            return None
        items = tuple(_pack(links, one) for one in found)

        async def fill(pipe: Pipeline) -> None:
            pipe.hset(links.key("outbox"), number, _encode(_Box(target, items)))
            for one in found:
                await remove(pipe, links, one)
                ended.forget(pipe, links, one.queue, one.bullmq_id)

        return fill

    if await links.guarded(watched, look) is not None:
        return number
    for one in over:
        await bring_home(links, *one)
    return await _take(links, target, places, find_end) if over else None


async def _find_over(
    found: Sequence[Found], find_end: FindEnd | None
) -> list[tuple[Found, Finish]]:
    if find_end is None:
        return []
    ends = [(one, await find_end(one)) for one in found]
    return [(one, end) for one, end in ends if end is not None]


def _pack(links: Links, found: Found) -> CopiedJob:
    return as_it_leaves(links, pack_job(found.job, found.steps, found.job.seq, None))


def _may_leave(found: Found) -> bool:
    return found.job.state in FINAL or (found.job.state in WAITS and not is_repeating(found))


async def list_parcels(links: Links) -> dict[str, str]:
    with wrapped_errors():
        boxes: dict[str, str] = await links.client.hgetall(links.key("outbox"))
    return {number: _decode(boxes[number]).target for number in sorted(boxes)}


async def read_parcel(links: Links, number: str) -> Parcel | None:
    with wrapped_errors():
        box = await links.client.hget(links.key("outbox"), number)
    if box is None:
        return None
    opened = _decode(box)
    return Parcel(number, opened.target, opened.items)


async def drop_parcel(links: Links, number: str, kept: Collection[str]) -> None:
    key = links.key("outbox")

    async def look(pipe: Pipeline) -> Fill | None:
        box: Any = await pipe.hget(key, number)
        if box is None:
            return None
        opened = _decode(box)
        rest = tuple(item for item in opened.items if item_id(item) in kept)

        async def fill(pipe: Pipeline) -> None:
            pipe.hdel(key, number)
            if rest:
                pipe.hset(key, new_number(), _encode(_Box(opened.target, rest)))

        return fill

    await links.guarded([key], look)


async def has_received(links: Links, number: str) -> bool:
    with wrapped_errors():
        return bool(await links.client.hexists(links.key("receipts"), number))


async def receive_parcel(links: Links, parcel: Parcel) -> Receipt:
    """Take in a parcel, once: jobs and receipt in one transaction."""
    await links.know({job.queue for job in parcel.jobs if is_queue(job.queue)})
    key = links.key("receipts")
    unique = unique_keys(links, parcel)
    former = former_ids(links, parcel)
    watched = [links.job_key(job.queue, former[job.id]) for job in parcel.jobs if job.id in former]
    receipt = Receipt()
    ids: dict[str, str] = {}

    async def look(pipe: Pipeline) -> Fill | None:
        nonlocal receipt, ids
        kept: Any = await pipe.hget(key, parcel.id)
        if kept is not None:
            receipt = msgspec.json.decode(kept, type=Receipt)
            return None
        ids = await choose_ids(links, parcel, former)
        admission = await admit(links, parcel, unique, ids)
        jobs = [_found(job, ids[job.id]) for job in admission.jobs]
        receipt = confirm(parcel, admission, [ended.to_job(ended.Kept(j)) for j in admission.jobs])

        async def fill(pipe: Pipeline) -> None:
            pipe.hset(key, parcel.id, msgspec.json.encode(receipt).decode())
            for one in jobs:
                await _put(pipe, links, one)

        return fill

    if await links.guarded([key, *unique.values(), *watched], look) is not None:
        await _read_back(links, parcel, receipt, ids)
    return receipt


async def _read_back(
    links: Links, parcel: Parcel, receipt: Receipt, ids: Mapping[str, str]
) -> None:
    """Look whether what was written is what was sent. It may have run by now, and be gone."""
    sent = {
        (job.queue, ids[job.id]): job.payload
        for job in parcel.jobs
        if job.id not in receipt.refused and job.id not in receipt.known
    }
    found = await read_places(links, list(sent))
    if any(json_text(one.job.payload_json) != sent[one.queue, one.bullmq_id] for one in found):
        raise StoreError("jobs read back after copying differ from those sent")


async def take_back(links: Links, number: str) -> Receipt:
    parcel = await read_parcel(links, number)
    if parcel is None:
        return Receipt()
    receipt = await receive_parcel(links, parcel)
    await drop_parcel(links, number, receipt.refused)
    return receipt


async def add_queues(links: Links, rows: Sequence[QueueRow]) -> None:
    """Pauses and retention of queues for which nothing was set before; bounds are left behind."""
    rows = [row for row in rows if is_queue(row.name)]
    await links.know(row.name for row in rows)
    with wrapped_errors():
        known = set(await links.client.hkeys(links.key("retention")))
    for row in rows:
        if row.is_paused:
            await pause_queue(links, row.name, True)
        seconds = {
            "completed": row.completed_seconds,
            "failed": row.failed_seconds,
            "cancelled": row.cancelled_seconds,
        }
        if row.name not in known and any(value is not None for value in seconds.values()):
            await set_retention(links, row.name, seconds)


def _found(job: CopiedJob, bullmq_id: str) -> Found:
    kept = ended.Kept(as_it_was(job, bullmq_id))
    return Found(job.queue, bullmq_id, ended.to_job(kept), kept=kept)


async def _put(pipe: Pipeline, links: Links, found: Found) -> None:
    if found.kept is not None and found.job.state in FINAL:
        ended.keep(pipe, links, found.kept)
        return
    await put_back(pipe, links, found, is_new=False)
    keep_steps(pipe, links, found)


def _encode(box: _Box) -> str:
    return msgspec.json.encode(box).decode()


def _decode(text: str) -> _Box:
    return msgspec.json.decode(text, type=_Box)
