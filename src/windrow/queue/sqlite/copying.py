"""Taking jobs out for another database: see `queue/copying.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any

from windrow.queue.copying import (
    JOBS_AT_ONCE,
    PARCEL_BYTES,
    CopiedGroup,
    CopiedJob,
    CopiedKeys,
    CopiedSchedule,
    Item,
    Parcel,
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
from windrow.queue.sqlite.changing import KEPT_OF_A_JOB, delete_results
from windrow.queue.sqlite.keys import pack_id
from windrow.queue.sqlite.looking import get_jobs, get_steps
from windrow.queue.sqlite.receiving import take_in
from windrow.queue.sqlite.rows import id_list, to_json, to_optional_time, to_time
from windrow.queue.sqlite.work import Work, statement


def take_jobs(work: Work, target: str, limit: int) -> str | None:
    schedules = [_read_schedule(row) for row in work.named_rows(statement("take_schedules"), {})]
    jobs = _take(work, work.rows("find_movable", {"limit": limit}), None, PARCEL_BYTES)
    return _put_out(work, target, [*schedules, *jobs])


def take_groups(
    work: Work, target: str, limit: int, after: str | None, settle: float
) -> tuple[list[str], str | None]:
    outbox = _Outbox(work, target)
    done: set[str] = set()
    size = 0
    while size < limit:
        found = [name for (name,) in work.rows("list_group_ids", {"after": after, "limit": 50})]
        if not found:
            return outbox.close(), None
        for group_id in found:
            after = group_id
            if group_id not in done:
                unit = _find_unit(work, group_id)
                done |= unit
                size += outbox.add_unit(_take_unit(work, unit, limit, settle))
            if size >= limit:
                break
    return outbox.close(), after


class _Outbox:
    """Small units share a parcel; a large one has several to itself."""

    def __init__(self, work: Work, target: str) -> None:
        self._work = work
        self._target = target
        self._items: list[Item] = []
        self._numbers: list[str] = []

    def add_unit(self, parts: Iterator[list[Item]]) -> int:
        """How many items it had."""
        first = next(parts, [])
        second = next(parts, None)
        if second is None:
            self._items += first
            return len(first)
        self.close()
        size = 0
        for part in chain([first, second], parts):
            self._put_out(part)
            size += len(part)
        return size

    def close(self) -> list[str]:
        self._put_out(self._items)
        self._items = []
        return self._numbers

    def _put_out(self, items: list[Item]) -> None:
        if number := _put_out(self._work, self._target, items):
            self._numbers.append(number)


def _find_unit(work: Work, group_id: str) -> set[str]:
    """A group with those it must stay together with."""
    unit = {group_id}
    while True:
        found = {name for (name,) in work.rows("find_relatives", {"ids": to_json(sorted(unit))})}
        if found <= unit:
            return unit
        unit |= found


def _take_unit(work: Work, groups: set[str], limit: int, settle: float) -> Iterator[list[Item]]:
    """What is in each of its parcels; nothing if it must stay for now."""
    ids = {"ids": to_json(sorted(groups))}
    recent = ids | {"since": work.now - round(settle * 1_000_000)}
    kin = work.rows("find_kin", recent)
    if any(must_stay for _, _, must_stay in kin) or work.rows("find_young", recent):
        return
    name = min(groups)
    moved = [_read_group(row, name) for row in work.named_rows(statement("export_groups"), ids)]
    roots, others = roots_first([(job_id, place) for job_id, place, _ in kin], moved)
    items: list[Item] = [*moved, *_take_keys(work, groups, name), *_take(work, roots, name, None)]
    while others or items:
        jobs = _take(work, others[:limit], name, PARCEL_BYTES)
        yield [*items, *jobs]
        others, items = others[len(jobs) :], []
    work.run("delete_group_notes", ids)
    work.run("delete_groups", ids)


def _take_keys(work: Work, groups: set[str], unit: str) -> list[CopiedKeys]:
    taken = []
    for group_id in sorted(groups):
        given = {"group_id": pack_id(group_id)}
        taken += pack_keys(group_id, unit, work.rows("export_group_keys", given))
        work.run("delete_group_keys", given | {"limit": -1})
    return taken


def _take(
    work: Work, found: Sequence[tuple[Any, ...]], unit: str | None, most_bytes: int | None
) -> list[CopiedJob]:
    jobs = _pack(work, found, unit, most_bytes)
    remove_moved(work, [job.id for job in jobs])
    return jobs


def _pack(
    work: Work, found: Sequence[tuple[Any, ...]], unit: str | None, most_bytes: int | None
) -> list[CopiedJob]:
    """Jobs with all that is kept of them, as many as there is room for."""
    packed: list[CopiedJob] = []
    size = 0
    for start in range(0, len(found), JOBS_AT_ONCE):
        places = dict(found[start : start + JOBS_AT_ONCE])
        jobs = get_jobs(work, list(places))
        steps = get_steps(work, list(places))
        batch = [
            pack_job(jobs[job_id], steps.get(job_id, ()), place, unit)
            for job_id, place in places.items()
        ]
        packed += batch
        size += sum(map(size_of, batch))
        if most_bytes is not None and size > most_bytes:
            break
    return packed


def remove_moved(work: Work, ids: Sequence[str]) -> None:
    """Take jobs away that do not run. Their groups go with them, so nothing is counted there."""
    given = {"ids": id_list(ids)}
    live = work.live_jobs("find_live", given)
    finished = work.named_rows(statement("find_finished"), given)
    work.run("remove_jobs", {"seqs": to_json([job.seq for job in live])})
    work.run("remove_finished", {"seqs": to_json([row["seq"] for row in finished])})
    gone = to_json([*(job.seq for job in live), *(row["seq"] for row in finished)])
    for name in KEPT_OF_A_JOB:
        work.run(name, {"seqs": gone})
    delete_results(work, gone)
    for job in live:
        work.moved(job, None)
        if job.unique_key is not None and not job.is_follower:
            work.freed.append((job.tenant, job.unique_key))
    for row in finished:
        work.counts[row["queue"], row["state"]] -= 1


def _put_out(work: Work, target: str, items: Sequence[Item]) -> str | None:
    if not items:
        return None
    number = new_number()
    work.run_many(
        "add_parcels",
        [
            {"parcel": number, "target": target, "item": item_id(item), "body": encode_item(item)}
            for item in items
        ],
    )
    return number


def list_remaining(work: Work, limit: int) -> list[str]:
    return [name for (name,) in work.rows("list_group_ids", {"after": None, "limit": limit})]


def list_parcels(work: Work) -> dict[str, str]:
    return dict(work.rows("list_parcels", {}))


def read_parcel(work: Work, number: str) -> Parcel | None:
    rows = work.rows("read_parcel", {"parcel": number})
    if not rows:
        return None
    return Parcel(number, rows[0][0], tuple(decode_item(body) for _, body in rows))


def drop_parcel(work: Work, number: str, kept: Collection[str]) -> None:
    if kept:
        values = {"parcel": number, "next": new_number(), "items": to_json(sorted(kept))}
        work.run("keep_items", values)
    work.run("drop_parcel", {"parcel": number})


def take_back(work: Work, number: str) -> Receipt:
    parcel = read_parcel(work, number)
    if parcel is None:
        return Receipt()
    receipt = take_in(work, parcel)
    drop_parcel(work, number, receipt.refused)
    return receipt


def _read_group(row: Any, unit: str) -> CopiedGroup:
    values = dict(row)
    for name in ("is_paused", "is_open", "is_cancelled"):
        values[name] = bool(values[name])
    for name in ("created_at", "ended_at", "expires_at"):
        values[name] = to_optional_time(values[name])
    return CopiedGroup(**values, unit=unit)


def _read_schedule(row: Any) -> CopiedSchedule:
    values = dict(row) | {
        "is_paused": bool(row["is_paused"]),
        "created_at": to_time(row["created_at"]),
        "next_at": to_optional_time(row["next_at"]),
        "last_at": to_optional_time(row["last_at"]),
    }
    return CopiedSchedule(**values)
