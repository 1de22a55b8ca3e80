"""A day by a compressed clock: every slot of every schedule becomes one job, and what has finished
leaves on time, so the tables stay as small as they were after the first hours."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.builders import completion, wish
from tests.trust import scorecard
from tests.trust.checker import check
from tests.trust.history import Entry, History
from windrow import Queue
from windrow.clock import FakeClock
from windrow.queue.job import FINAL, Job
from windrow.queue.store import Store

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

MINUTE = timedelta(minutes=1)
HOURS = 24
RETENTION = timedelta(hours=1)
# Jobs lie by the hour in which they expire, and go when that is over (docs/decisions/0005).
LATEST = RETENTION + timedelta(hours=1) + 2 * MINUTE
FREQUENT = timedelta(seconds=20)


async def test_day_of_schedules_and_retention_fires_each_slot_once_and_stays_small(
    store: Store, store_name: str, clock: FakeClock
) -> None:
    queue = Queue(store)
    await queue.schedule(
        "often", "work", "often", every=FREQUENT, catch_up="all", retention=RETENTION
    )
    await queue.schedule("each minute", "work", "each minute", every=60, retention=RETENTION)
    await queue.schedule("hourly", "work", "hourly", cron="0 * * * *", retention=RETENTION)
    night, zone = "30 3 * * *", "Europe/Berlin"
    await queue.schedule(
        "nightly", "work", "nightly", cron=night, timezone=zone, retention=RETENTION
    )
    entries: list[Entry] = []
    history = History(entries, "day", lambda: clock.now().timestamp())
    begin = clock.now()
    end = begin + timedelta(hours=HOURS)
    most, late, oldest_seen = 0, 0, timedelta()
    while clock.now() < end:
        clock.advance(MINUTE.total_seconds())
        while await store.fire_schedules():
            pass
        await run_all(store, history)
        await queue.prune()
        most = max(most, sum((await queue.counts()).values()))
        if clock.now().minute == 0:
            age = await oldest_age(queue, clock.now())
            oldest_seen = max(oldest_seen, age)
            late += age > LATEST
    for name, slot in due(begin, end):
        history.write("due", key=name, slot=slot.isoformat())

    violations = check(entries, promises=["schedules_fire_once", "one_accepted_completion"])
    fired = sum(entry.what == "fired" for entry in entries)
    for promise in ("steady", "schedules_fire_once"):
        scorecard.record(
            promise,
            "24 hours of schedules and retention",
            store=store_name,
            jobs=fired,
            faults=0,
            lost=sum("never fired" in one.words for one in violations) + late,
            doubled=sum("times" in one.words for one in violations),
            note=f"by a compressed clock; at most {most} jobs stored at once, the oldest finished "
            f"one {oldest_seen.total_seconds() / 60:.0f} minutes old (kept for 60, bound {LATEST})",
        )
    assert [str(one) for one in violations] == []
    assert late == 0
    per_hour = 3600 / FREQUENT.total_seconds() + 60 + 1 + 1
    assert most <= per_hour * (LATEST / timedelta(hours=1)) + per_hour / 60
    assert fired == sum(entry.what == "due" for entry in entries)


async def run_all(store: Store, history: History) -> None:
    while jobs := await store.claim_jobs(wish(100)):
        for job in jobs:
            history.of(job, "claimed")
            history.write("fired", job.id, key=job.payload, slot=job.run_at.isoformat())
        finished = await store.finish_jobs([completion(job, {"ok": True}) for job in jobs])
        for job in jobs:
            accepted = job.id not in finished.lost
            history.of(job, "finished", outcome="done", accepted=accepted)


async def oldest_age(queue: Queue, now: datetime) -> timedelta:
    """How long ago that finished which is still stored."""
    ages = [timedelta()]
    after: str | None = None
    while page := await queue.list(limit=500, after=after):
        after = page[-1].id
        ages += [now - finished_at(job) for job in page if job.state in FINAL]
    return max(ages)


def finished_at(job: Job) -> datetime:
    assert job.finished_at is not None
    return job.finished_at


def due(begin: datetime, end: datetime) -> Iterator[tuple[str, datetime]]:
    """The slots after `begin` and up to `end`, worked out here once more."""
    for name, step in (("often", FREQUENT), ("each minute", MINUTE), ("hourly", 60 * MINUTE)):
        slot = begin + step - timedelta(seconds=begin.timestamp() % step.total_seconds())
        while slot <= end:
            yield name, slot
            slot += step
    # Half past three in Berlin is half past two in UTC in winter, when this day is.
    night = datetime(begin.year, begin.month, begin.day, 2, 30, tzinfo=UTC)
    while night <= end:
        if night > begin:
            yield "nightly", night
        night += timedelta(days=1)
