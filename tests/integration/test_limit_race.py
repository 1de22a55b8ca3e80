"""Limits and bounds with real processes: what was allowed is what the database's history shows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import pytest

from tests.builders import EVERYTHING, claim, completion, counts, ids, row
from tests.integration.test_race import (  # noqa: F401
    RACERS,
    Start,
    real,
    run_to_the_end,
    start,
)
from windrow.queue.job import Job, JobState
from windrow.queue.limits import WINDOW
from windrow.queue.records import LimitRow
from windrow.queue.store import Store

S = JobState
JOBS = 300
TENANTS = 3


async def add_limited(store: Store, count: int = JOBS) -> None:
    """Jobs of three tenants for one API: two keys each."""
    await store.set_limit(LimitRow("api", active=5))
    for n in range(TENANTS):
        await store.set_limit(LimitRow(f"tenant-{n}", active=3))
    await store.insert_jobs([row(limits=(f"tenant-{n % TENANTS}", "api")) for n in range(count)])


def most_at_once(jobs: Iterable[Job]) -> int:
    """The highest number of runs that went on at the same moment, by their first and last times.
    Only the last run of a job is in the history."""
    ends = [(job.finished_at, -1) for job in jobs]
    events: list[tuple[datetime, int]] = sorted(
        (at, step) for at, step in [*[(job.started_at, 1) for job in jobs], *ends] if at is not None
    )
    running, most = 0, 0
    for _, step in events:  # at the same moment ends come first
        running += step
        most = max(most, running)
    return most


async def watch(store: Store, seen: list[Counter[str]], until: asyncio.Event) -> None:
    """Look again and again at what is active, each time at one moment."""
    while not until.is_set():
        active = await store.list_jobs(_ACTIVE, limit=1000)
        seen.append(Counter(key for job in active for key in job.limits))
        await asyncio.sleep(0.005)


_ACTIVE = type(EVERYTHING)(states=(S.ACTIVE,))


async def test_8_processes_never_run_more_than_the_limits_of_two_keys_allow(
    real: Store,  # noqa: F811
    start: Start,  # noqa: F811
) -> None:
    """N6: at most five of the API and three of each tenant at once, whoever promotes and claims."""
    await add_limited(real)
    racers = start(RACERS, "hammer", seed=lambda n: n)
    seen: list[Counter[str]] = []
    over = asyncio.Event()
    watcher = asyncio.create_task(watch(real, seen, over))
    await asyncio.to_thread(run_to_the_end, racers)
    over.set()
    await watcher

    jobs = await real.list_jobs(EVERYTHING, limit=2 * JOBS)
    assert Counter(job.state for job in jobs) == {S.COMPLETED: JOBS}
    assert max(found["api"] for found in seen) <= 5
    assert 2 <= most_at_once(jobs) <= 5
    for n in range(TENANTS):
        of_tenant = [job for job in jobs if job.limits[0] == f"tenant-{n}"]
        assert most_at_once(of_tenant) <= 3
        assert max(found[f"tenant-{n}"] for found in seen) <= 3
    assert {one.taken for one in await real.list_limits()} == {0}


async def test_killed_process_leaks_no_slot(
    real: Store,  # noqa: F811
    start: Start,  # noqa: F811
) -> None:
    """N6, U6: all slots are held by a process that is killed; the others run everything."""
    await add_limited(real, 100)
    await real.promote_jobs()
    [victim] = start(1, "claim_and_hold", seconds=2)
    victim.go()
    held = victim.hear()
    victim.process.kill()
    assert len(held) == 5
    assert await real.promote_jobs() == 0
    run_to_the_end(start(3, "hammer", seed=lambda n: n))

    jobs = await real.list_jobs(EVERYTHING, limit=200)
    assert Counter(job.state for job in jobs) == {S.COMPLETED: 100}
    assert {job.id for job in jobs if job.crashes} == set(held)
    assert most_at_once(jobs) <= 5


async def test_limit_changed_while_processes_run_is_kept_from_then_on(
    real: Store,  # noqa: F811
    start: Start,  # noqa: F811
) -> None:
    """N6: after the limit was lowered nothing starts beside more than it allows."""
    await real.set_limit(LimitRow("api", active=6))
    await real.insert_jobs([row(limits=("api",)) for _ in range(JOBS)])
    racers = start(RACERS, "hammer", seed=lambda n: n)
    for racer in racers:
        racer.go()
    await wait_for_completed(real, JOBS // 4)
    await real.set_limit(LimitRow("api", active=2))
    marker = await mark(real)
    ends = await asyncio.gather(*(asyncio.to_thread(racer.end) for racer in racers))

    assert ends == [0] * RACERS
    jobs = [job for job in await real.list_jobs(EVERYTHING, limit=2 * JOBS) if job.limits]
    assert Counter(job.state for job in jobs) == {S.COMPLETED: JOBS}
    later = [job for job in jobs if job.started_at is not None and job.started_at > marker]
    assert len(later) > JOBS // 4
    assert most_at_once(later) <= 2


async def wait_for_completed(store: Store, count: int) -> None:
    while (await counts(store)).get(S.COMPLETED, 0) < count:
        await asyncio.sleep(0.01)


async def mark(store: Store) -> datetime:
    """The database's time now, as a job has it."""
    [inserted] = await store.insert_jobs([row(queue="marks", delay=3600)])
    await store.cancel_jobs([inserted.id], "only a mark")
    assert inserted.created_at is not None
    return inserted.created_at


@pytest.mark.parametrize(
    "on_full", ["reject", pytest.param("drop_oldest", marks=pytest.mark.chaos)]
)
async def test_8_processes_do_not_overfill_a_bounded_queue(
    real: Store,  # noqa: F811
    start: Start,  # noqa: F811
    on_full: str,
) -> None:
    """N7: the bound is exact however many insert."""
    await real.set_queue("default", 200, on_full)  # type: ignore[arg-type]
    racers = start(RACERS, "insert_bounded", tries=50)
    for racer in racers:
        racer.go()
    taken = sum(racer.hear() for racer in racers)

    assert taken == (200 if on_full == "reject" else 400)
    dropped = {} if on_full == "reject" else {S.CANCELLED: 200}
    assert await counts(real) == {S.READY: 200} | dropped
    assert [racer.end() for racer in racers] == [0] * RACERS


@pytest.mark.chaos
async def test_100000_jobs_of_one_key_do_not_keep_ten_of_another_waiting(
    real: Store,  # noqa: F811
) -> None:
    """N6: shown by the order of completion."""
    for _ in range(20):
        await real.insert_jobs([row(limits=("many",)) for _ in range(5000)])
    few = [row(limits=("few",)) for _ in range(10)]
    await real.insert_jobs(few)
    order = await run_until(real, {new.id for new in few})

    assert len(order) <= WINDOW + 2 * 10


async def test_turns_show_in_the_order_of_completion(real: Store) -> None:  # noqa: F811
    """N6: two keys with enough jobs get as many turns each."""
    first = [row(limits=("first",)) for _ in range(1000)]
    await real.insert_jobs(first)
    await real.insert_jobs([row(limits=("second",)) for _ in range(1000)])
    order = await run_until(real, set(), most=800)

    share = sum(new.id in set(order) for new in first) / len(order)
    assert share == pytest.approx(0.5, abs=0.03)


async def run_until(store: Store, wanted: set[str], most: int = 10_000) -> list[str]:
    """Run jobs ten at a time until the wanted ones are done; the order of their ends."""
    order: list[str] = []
    await store.promote_jobs()
    while len(order) < most and not (wanted and wanted <= set(order)):
        jobs = await claim(store, 10)
        await store.finish_jobs([completion(job) for job in jobs])
        order += ids(jobs)
        await store.promote_jobs()
    return order
