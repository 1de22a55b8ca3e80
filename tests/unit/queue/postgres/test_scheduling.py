"""What only rows that can be locked make possible."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg

from tests.builders import row
from windrow.clock import FakeClock
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.records import ScheduleRow


async def test_schedule_that_somebody_is_firing_holds_nobody_up(
    store: PostgresStore, url: str, clock: FakeClock
) -> None:
    for name in ("locked", "free"):
        await store.put_schedule(ScheduleRow(name=name, every_seconds=60.0, job=row()))
    clock.advance(60)
    with psycopg.connect(url) as other:
        other.execute("SELECT FROM windrow.schedule WHERE name = 'locked' FOR UPDATE")
        async with asyncio.timeout(10):
            fired = await store.fire_schedules()
        assert [one.outcome for one in fired] == ["inserted"]
    found = {one.name: one.last_at for one in await store.list_schedules()}
    assert found == {"locked": None, "free": clock.now()}
    assert len(await store.fire_schedules()) == 1


async def test_putting_waits_for_whoever_is_firing(
    store: PostgresStore, url: str, clock: FakeClock
) -> None:
    """Two who make the same schedule at once must not overwrite a slot that was fired between."""
    await store.put_schedule(ScheduleRow(name="tidy", every_seconds=60.0, job=row()))
    clock.advance(60)
    fired_at = clock.now()
    with psycopg.connect(url) as other:
        other.execute(
            "UPDATE windrow.schedule SET last_at = next_at, next_at = next_at + interval '60 s'"
        )
        putting = asyncio.create_task(
            store.put_schedule(ScheduleRow(name="tidy", every_seconds=30.0, job=row()))
        )
        await until_it_waits(url)
        assert not putting.done()
    put = await putting
    assert (put.last_at, put.next_at) == (fired_at, fired_at + timedelta(seconds=30))


async def until_it_waits(url: str) -> None:
    """Until a statement of this database waits for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    with psycopg.connect(url, autocommit=True) as watcher:
        async with asyncio.timeout(10):
            while watcher.execute(f"{waiting} AND wait_event_type = 'Lock'").fetchone() == (0,):
                await asyncio.sleep(0.01)
