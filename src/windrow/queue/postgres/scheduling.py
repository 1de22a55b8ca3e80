"""Schedules: put, paused, and fired. A schedule's row is locked while its slots are fired; those
that somebody else has locked are passed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow.db.codec import is_storable
from windrow.errors import ScheduleNotFound
from windrow.queue.postgres.rows import Row, as_json, columns
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import Work
from windrow.queue.records import Inserted, Schedule, ScheduleRow, read_row
from windrow.queue.schedule import Firing, first_slot, has_same_timing, job_of, plan_firings


class Scheduling(Verbs):
    async def put_schedule(self, row: ScheduleRow) -> Schedule:
        values: dict[str, Any] = {
            "name": row.name,
            "cron": row.cron,
            "timezone": row.timezone,
            "every_seconds": row.every_seconds,
            "jitter_seconds": row.jitter_seconds,
            "catch_up": row.catch_up,
            "job": as_json(row.job),
        }

        async def do(work: Work) -> Schedule:
            [found] = await work.run("add_schedule", **values)
            next_at = found["next_at"]
            if next_at is None or not has_same_timing(row, to_schedule(found)):
                next_at = first_slot(row, found["now"], found["last_at"])
            [put] = await work.run("put_schedule", **values, next_at=next_at)
            return to_schedule(put)

        return await self._transact(do)

    async def delete_schedule(self, name: str) -> bool:
        return is_storable(name) and bool(await self._run("delete_schedule", name=name))

    async def list_schedules(self) -> list[Schedule]:
        return [to_schedule(row) for row in await self._run("list_schedules")]

    async def pause_schedule(self, name: str) -> Schedule:
        found = await self._run("pause_schedule", name=name) if is_storable(name) else ()
        return _only(name, found)

    async def resume_schedule(self, name: str) -> Schedule:
        async def do(work: Work) -> Schedule:
            found = await work.run("get_schedule", name=name) if is_storable(name) else ()
            schedule = _only(name, found)
            if not schedule.is_paused:
                return schedule
            next_at = first_slot(schedule, found[0]["now"], schedule.last_at)
            return _only(name, await work.run("resume_schedule", name=name, next_at=next_at))

        return await self._transact(do)

    async def fire_schedules(self, limit: int = 100) -> list[Inserted]:
        async def do(work: Work) -> list[Inserted]:
            due = await work.run("find_due_schedules", limit=limit)
            if not due:
                return []
            firings = plan_firings([to_schedule(row) for row in due], due[0]["now"])
            rows = [job_of(schedule, slot) for schedule, firing in firings for slot in firing.slots]
            inserted = await work.insert_follow_ups(rows)
            work.ready_queues |= {row.queue for row in rows}
            await _move(work, firings)
            return inserted

        return await self._transact(do)


async def _move(work: Work, firings: Sequence[tuple[Schedule, Firing]]) -> None:
    names, next_ats, last_ats = columns(
        [(s.name, f.next_at, f.slots[-1] if f.slots else None) for s, f in firings], 3
    )
    await work.run("move_schedules", names=names, next_ats=next_ats, last_ats=last_ats)


def to_schedule(row: Row) -> Schedule:
    return Schedule(
        name=row["name"],
        cron=row["cron"],
        timezone=row["timezone"],
        every_seconds=row["every_seconds"],
        jitter_seconds=row["jitter_seconds"],
        catch_up=row["catch_up"],
        job=read_row(row["job"]),
        is_paused=row["is_paused"],
        next_at=row["next_at"],
        last_at=row["last_at"],
        created_at=row["created_at"],
    )


def _only(name: str, found: Sequence[Row]) -> Schedule:
    if not found:
        raise ScheduleNotFound(name)
    return to_schedule(found[0])
