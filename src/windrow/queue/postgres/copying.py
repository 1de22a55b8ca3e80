"""Moving jobs to another database and from there: see `queue/copying.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

import msgspec

from windrow.errors import StoreError
from windrow.queue.copying import (
    JOBS_AT_ONCE,
    PARCEL_BYTES,
    CopiedGroup,
    CopiedJob,
    CopiedKeys,
    CopiedSchedule,
    Item,
    Parcel,
    QueueRow,
    Receipt,
    decode_item,
    encode_item,
    item_id,
    new_number,
    pack_job,
    pack_keys,
    roots_first,
    size_of,
)
from windrow.queue.postgres.changing import delete_blobs
from windrow.queue.postgres.looking import read_jobs, read_steps
from windrow.queue.postgres.receiving import take_in
from windrow.queue.postgres.rows import Row, as_json
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import Work


class Copying(Verbs):
    # Out of this database

    async def take_jobs(self, target: str, limit: int) -> str | None:
        async def do(work: Work) -> str | None:
            schedules = [_read_schedule(row) for row in await work.run("take_schedules")]
            found = await work.run("find_movable", limit=limit)
            found = found or await work.run("find_history", limit=limit)
            jobs = await _take(work, _places(found), None, PARCEL_BYTES)
            return await _put_out(work, target, [*schedules, *jobs])

        return await self._transact(do)

    async def take_groups(
        self, target: str, limit: int, after: str | None, settle: float
    ) -> tuple[list[str], str | None]:
        async def do(work: Work) -> tuple[list[str], str | None]:
            outbox = _Outbox(work, target)
            done: set[str] = set()
            size = 0
            last = after
            while size < limit:
                found = await work.run("list_group_ids", after=last, limit=50)
                if not found:
                    return await outbox.close(), None
                for group_id in [str(row["id"]) for row in found]:
                    last = group_id
                    if group_id not in done:
                        unit = await _find_unit(work, group_id)
                        done |= unit
                        size += await outbox.add_unit(_take_unit(work, unit, limit, settle))
                    if size >= limit:
                        break
            return await outbox.close(), last

        return await self._transact(do)

    async def list_remaining(self, limit: int) -> list[str]:
        return [
            str(row["id"]) for row in await self._run("list_group_ids", after=None, limit=limit)
        ]

    async def list_parcels(self) -> dict[str, str]:
        return {str(row["parcel"]): row["target"] for row in await self._run("list_parcels")}

    async def read_parcel(self, number: str) -> Parcel | None:
        return _parcel(number, await self._run("read_parcel", parcel=number))

    async def drop_parcel(self, number: str, kept: Collection[str]) -> None:
        await self._transact(lambda work: _drop(work, number, kept))

    async def take_back(self, number: str) -> Receipt:
        async def do(work: Work) -> Receipt:
            parcel = _parcel(number, await work.run("lock_parcel", parcel=number))
            if parcel is None:
                return Receipt()
            receipt = await take_in(work, parcel)
            await _drop(work, number, receipt.refused)
            return receipt

        return await self._transact(do)

    # Into this database

    async def receive_parcel(self, parcel: Parcel) -> Receipt:
        async def do(work: Work) -> Receipt:
            if former := await work.run("find_receipt", parcel=parcel.id):
                return msgspec.json.decode(former[0]["receipt"], type=Receipt)
            receipt = await take_in(work, parcel)
            await work.run("add_receipt", parcel=parcel.id, receipt=as_json(receipt))
            return receipt

        return await self._transact(do)

    async def has_received(self, number: str) -> bool:
        return bool(await self._run("find_receipt", parcel=number))

    async def add_queues(self, rows: Sequence[QueueRow]) -> None:
        await self._run("add_queues", rows=as_json([msgspec.structs.asdict(row) for row in rows]))


class _Outbox:
    """Small units share a parcel; a large one has several to itself."""

    def __init__(self, work: Work, target: str) -> None:
        self._work = work
        self._target = target
        self._items: list[Item] = []
        self._numbers: list[str] = []

    async def add_unit(self, parts: AsyncIterator[list[Item]]) -> int:
        """How many items it had."""
        first: list[Item] = await anext(parts, [])
        second = await anext(parts, None)
        if second is None:
            self._items += first
            return len(first)
        await self.close()
        await self._put_out(first)
        await self._put_out(second)
        size = len(first) + len(second)
        async for part in parts:
            await self._put_out(part)
            size += len(part)
        return size

    async def close(self) -> list[str]:
        await self._put_out(self._items)
        self._items = []
        return self._numbers

    async def _put_out(self, items: list[Item]) -> None:
        if number := await _put_out(self._work, self._target, items):
            self._numbers.append(number)


async def _find_unit(work: Work, group_id: str) -> set[str]:
    """A group with those it must stay together with."""
    unit = {group_id}
    while True:
        found = {str(row["id"]) for row in await work.run("find_relatives", ids=sorted(unit))}
        if found <= unit:
            return unit
        unit |= found


async def _take_unit(
    work: Work, groups: set[str], limit: int, settle: float
) -> AsyncIterator[list[Item]]:
    """What is in each of its parcels; nothing if it must stay for now."""
    kin = await _lock_unit(work, groups, settle)
    if kin is None:
        return
    ids = sorted(groups)
    moved = [_read_group(row, ids[0]) for row in await work.run("export_groups", ids=ids)]
    roots, others = roots_first(_places(kin), moved)
    keys = await _read_keys(work, ids)
    items: list[Item] = [*moved, *keys, *await _take(work, roots, ids[0], None)]
    while others or items:
        jobs = await _take(work, others[:limit], ids[0], PARCEL_BYTES)
        yield [*items, *jobs]
        others, items = others[len(jobs) :], []
    await work.run("remove_groups", ids=ids)


async def _read_keys(work: Work, groups: list[str]) -> list[CopiedKeys]:
    keys: defaultdict[str, list[tuple[bytes, bytes]]] = defaultdict(list)
    for row in await work.run("export_group_keys", ids=groups):
        keys[str(row["group_id"])].append((row["key"], row["job_id"].bytes))
    return [item for group_id in groups for item in pack_keys(group_id, groups[0], keys[group_id])]


async def _lock_unit(work: Work, groups: set[str], settle: float) -> Sequence[Row] | None:
    """Lock the jobs, then the groups, as everybody does; what came or began meanwhile is seen by
    the second look, after which nothing can come."""
    ids = sorted(groups)
    before = await work.run("find_kin", ids=ids, seconds=settle)
    if any(row["must_stay"] for row in before):
        return None
    if await work.run("find_young", ids=ids, seconds=settle):
        return None
    found = sorted(str(row["id"]) for row in before)
    await work.run("lock_jobs", ids=found)
    await work.run("lock_finished", ids=found)
    await work.lock_groups(ids)
    kin = await work.run("find_kin", ids=ids, seconds=settle)
    is_same = sorted(str(row["id"]) for row in kin) == found
    if not is_same or any(row["must_stay"] for row in kin):
        return None
    return kin if await _find_unit(work, ids[0]) == groups else None


def _places(found: Sequence[Row]) -> list[tuple[str, int]]:
    return [(str(row["id"]), row["place"]) for row in found]


async def _take(
    work: Work, found: Sequence[tuple[str, int]], unit: str | None, most_bytes: int | None
) -> list[CopiedJob]:
    jobs = await _pack(work, found, unit, most_bytes)
    await remove_moved(work, [job.id for job in jobs])
    return jobs


async def _pack(
    work: Work, found: Sequence[tuple[str, int]], unit: str | None, most_bytes: int | None
) -> list[CopiedJob]:
    """Jobs with all that is kept of them, as many as there is room for."""
    packed: list[CopiedJob] = []
    size = 0
    for start in range(0, len(found), JOBS_AT_ONCE):
        places = dict(found[start : start + JOBS_AT_ONCE])
        jobs = await read_jobs(work.run, list(places))
        steps = await read_steps(work.run, list(places))
        batch = [
            pack_job(jobs[job_id], steps.get(job_id, ()), place, unit)
            for job_id, place in places.items()
        ]
        packed += batch
        size += sum(map(size_of, batch))
        if most_bytes is not None and size > most_bytes:
            break
    return packed


async def remove_moved(work: Work, ids: Sequence[str]) -> None:
    """Take jobs away that do not run. Their groups go with them, so nothing is counted there."""
    gone = await work.run("remove_moved", ids=ids)
    if len(gone) != len(ids):
        raise StoreError("a job that was locked is gone: nothing was moved")
    for row in gone:
        work.key_freed(row["unique_key"])
    await delete_blobs(work, {row["hash"] for row in gone if row["hash"] is not None})


async def _put_out(work: Work, target: str, items: Sequence[Item]) -> str | None:
    if not items:
        return None
    number = new_number()
    await work.run(
        "add_parcels",
        parcel=number,
        target=target,
        items=[item_id(item) for item in items],
        bodies=[encode_item(item) for item in items],
    )
    return number


def _parcel(number: str, rows: Sequence[Row]) -> Parcel | None:
    if not rows:
        return None
    return Parcel(number, rows[0]["target"], tuple(decode_item(row["body"]) for row in rows))


async def _drop(work: Work, number: str, kept: Collection[str]) -> None:
    if kept:
        values = {"next": new_number(), "items": sorted(kept)}
        await work.run("keep_items", parcel=number, **values)
    await work.run("drop_parcel", parcel=number)


def _read_group(row: Row, unit: str) -> CopiedGroup:
    values: dict[str, Any] = dict(row)
    for name in ("id", "root"):
        values[name] = None if values[name] is None else str(values[name])
    return CopiedGroup(**values, unit=unit)


def _read_schedule(row: Row) -> CopiedSchedule:
    return CopiedSchedule(**dict(row))
