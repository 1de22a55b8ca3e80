"""Schedules with real processes: each slot is fired once, whoever is killed."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

from tests.builders import EVERYTHING, counted, counts, row, tallied
from tests.conftest import OpenAnother
from tests.integration.test_race import RACERS, Start, real, start  # noqa: F401
from windrow.clock import FakeClock
from windrow.queue.records import ScheduleRow
from windrow.queue.store import Store

SCHEDULES = 60
LATE = 10  # seconds of slots that wait when the race begins
MORE = 2  # seconds of slots that come while it is on


async def put_late(open_another: OpenAnother) -> dict[str, datetime]:
    """Schedules with a slot each second that nobody has fired for a while; the first of each."""
    past = await open_another(FakeClock(datetime.now(UTC) - timedelta(seconds=LATE)))
    puts = [
        await past.put_schedule(
            ScheduleRow(name=f"tick-{n}", every_seconds=1.0, catch_up="all", job=row())
        )
        for n in range(SCHEDULES)
    ]
    return {put.name: put.next_at for put in puts}


async def fired_slots(store: Store) -> dict[str, list[datetime]]:
    """The slots that have jobs, in order, by schedule."""
    found: defaultdict[str, list[datetime]] = defaultdict(list)
    for job in await store.list_jobs(EVERYTHING, limit=100_000):
        found[job.headers["schedule"]].append(datetime.fromisoformat(job.headers["slot"]))
    return {name: sorted(slots) for name, slots in found.items()}


async def assert_each_slot_was_fired(store: Store, first: dict[str, datetime]) -> int:
    """No gap and no slot twice, from the first to the last; how many there are."""
    slots = await fired_slots(store)
    for schedule in await store.list_schedules():
        begin = first[schedule.name]
        assert schedule.last_at is not None
        seconds = int((schedule.last_at - begin).total_seconds()) + 1
        assert seconds >= LATE
        assert slots[schedule.name] == [begin + timedelta(seconds=n) for n in range(seconds)]
        assert schedule.next_at == schedule.last_at + timedelta(seconds=1)
    assert await tallied(store) == await counted(store)
    return sum(map(len, slots.values()))


async def test_8_processes_fire_each_slot_once(
    real: Store,  # noqa: F811
    start: Start,  # noqa: F811
    open_another: OpenAnother,
) -> None:
    """Late slots and those that come while all of them look."""
    first = await put_late(open_another)
    racers = start(RACERS, "fire", seconds=MORE)
    for racer in racers:
        racer.go()
    outcomes: Counter[str] = Counter()
    for racer in racers:
        outcomes.update(await asyncio.to_thread(racer.hear))
    assert [racer.end() for racer in racers] == [0] * RACERS

    assert outcomes == {"inserted": await assert_each_slot_was_fired(real, first)}


async def test_processes_that_are_killed_while_they_fire_leave_no_slot_out(
    real: Store,  # noqa: F811
    start: Start,  # noqa: F811
    open_another: OpenAnother,
) -> None:
    """A slot's job and the step to the next slot are one transaction."""
    first = await put_late(open_another)
    victims = start(RACERS // 2, "fire", seconds=3600)
    others = start(RACERS // 2, "fire", seconds=MORE)
    for racer in victims:
        racer.go()
    for n, victim in enumerate(victims, 1):
        await wait_for_jobs(real, n * SCHEDULES)
        victim.process.kill()
    assert [victim.end() for victim in victims] == [-9] * len(victims)
    for racer in others:
        racer.go()
    outcomes: Counter[str] = Counter()
    for racer in others:
        outcomes.update(await asyncio.to_thread(racer.hear))
    assert [racer.end() for racer in others] == [0] * len(others)

    fired = await assert_each_slot_was_fired(real, first)
    assert set(outcomes) == {"inserted"}
    assert len(victims) * SCHEDULES <= fired - outcomes["inserted"] < fired


async def wait_for_jobs(store: Store, count: int) -> None:
    async with asyncio.timeout(60):
        while sum((await counts(store)).values()) < count:
            await asyncio.sleep(0.002)
