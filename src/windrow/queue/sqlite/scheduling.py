"""Schedules: put, paused, and fired. There is one writer, so nobody fires a slot beside us."""

from __future__ import annotations

from typing import Any

from windrow.db.codec import is_storable
from windrow.errors import ScheduleNotFound
from windrow.queue.records import Inserted, Schedule, ScheduleRow, read_row
from windrow.queue.schedule import first_slot, has_same_timing, job_of, plan_firings
from windrow.queue.sqlite.inserting import insert_now
from windrow.queue.sqlite.rows import to_json, to_micros, to_optional_time, to_time
from windrow.queue.sqlite.work import Work, statement


def put_schedule(work: Work, row: ScheduleRow) -> Schedule:
    values = {
        "name": row.name,
        "cron": row.cron,
        "timezone": row.timezone,
        "every_seconds": row.every_seconds,
        "jitter_seconds": row.jitter_seconds,
        "catch_up": row.catch_up,
        "job": to_json(row.job),
    }
    [found] = _rows(work, "add_schedule", values | {"now": work.now})
    next_at = found["next_at"]
    if next_at is None or not has_same_timing(row, to_schedule(found)):
        slot = first_slot(row, to_time(work.now), to_optional_time(found["last_at"]))
        next_at = to_micros(slot)
    [put] = _rows(work, "put_schedule", values | {"next_at": next_at})
    return to_schedule(put)


def delete_schedule(work: Work, name: str) -> bool:
    return is_storable(name) and bool(work.rows("delete_schedule", {"name": name}))


def list_schedules(work: Work) -> list[Schedule]:
    return [to_schedule(found) for found in _rows(work, "list_schedules", {})]


def pause_schedule(work: Work, name: str) -> Schedule:
    return _only(name, _rows(work, "pause_schedule", {"name": name}) if is_storable(name) else [])


def resume_schedule(work: Work, name: str) -> Schedule:
    found = _rows(work, "get_schedule", {"name": name}) if is_storable(name) else []
    schedule = _only(name, found)
    if not schedule.is_paused:
        return schedule
    next_at = first_slot(schedule, to_time(work.now), schedule.last_at)
    values = {"name": name, "next_at": to_micros(next_at)}
    return _only(name, _rows(work, "resume_schedule", values))


def fire_schedules(work: Work, limit: int) -> list[Inserted]:
    found = _rows(work, "find_due_schedules", {"now": work.now, "limit": limit})
    firings = plan_firings([to_schedule(one) for one in found], to_time(work.now))
    rows = [job_of(schedule, slot) for schedule, firing in firings for slot in firing.slots]
    inserted = insert_now(work, rows, drops=True)
    work.run_many(
        "move_schedules",
        [
            {
                "name": schedule.name,
                "next_at": to_micros(firing.next_at),
                "last_at": to_micros(firing.slots[-1]) if firing.slots else None,
            }
            for schedule, firing in firings
        ],
    )
    return inserted


def to_schedule(found: Any) -> Schedule:
    return Schedule(
        name=found["name"],
        cron=found["cron"],
        timezone=found["timezone"],
        every_seconds=found["every_seconds"],
        jitter_seconds=found["jitter_seconds"],
        catch_up=found["catch_up"],
        job=read_row(found["job"]),
        is_paused=bool(found["is_paused"]),
        next_at=to_time(found["next_at"]),
        last_at=to_optional_time(found["last_at"]),
        created_at=to_time(found["created_at"]),
    )


def _rows(work: Work, name: str, values: dict[str, Any]) -> list[Any]:
    return [*work.named_rows(statement(name), values)]


def _only(name: str, found: list[Any]) -> Schedule:
    if not found:
        raise ScheduleNotFound(name)
    return to_schedule(found[0])
