"""N8: those who sleep are woken when there is something for them, and only then.

A test that must not be woken cannot wait for ever to see it: it lets something happen afterwards
that does wake, and checks that the first did not.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import (
    UNKNOWN_ID,
    accept,
    add,
    add_and_claim,
    add_many,
    attempt,
    claim,
    complete,
    fail,
    make_group,
    row,
)
from tests.callers import Caller
from tests.conftest import POOLED, OpenAnother
from tests.postgres_server import database_name, with_database
from windrow.clock import FakeClock
from windrow.queue.store import Store

# A commit that is not the store's own is told by the database, and by no other notifier.
by_the_database = pytest.mark.parametrize("notifier", [None], ids=["own"])

LONG = 20.0  # seconds; only a failing test waits for it
SHORT = 0.05


@pytest.fixture
def direct_url(tested_store: str, store_url: str, request: pytest.FixtureRequest) -> str | None:
    """Behind a pooler nobody can LISTEN, so there the way past it is given."""
    if tested_store not in POOLED:
        return None
    server_url: str = request.getfixturevalue("postgres_url")
    return with_database(server_url, database_name(store_url))


@pytest.fixture(params=["own", "rabbitmq"])
def notifier(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("rabbitmq_notifier") if request.param == "rabbitmq" else None


async def test_a_sleeper_is_woken_by_an_insert_of_another_store(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    async with store.listen_for_work(["default"]) as bell:
        assert await claim(store) == []
        await add(other)
        assert await bell.wait(LONG)
    assert len(await claim(store)) == 1


async def test_nothing_is_wrong_with_the_wake_ups(store: Store) -> None:
    assert await store.check_wake_ups() is None


async def test_a_sleeper_is_woken_by_an_insert_of_its_own_store(store: Store) -> None:
    async with store.listen_for_work(None) as bell:
        await add(store)
        assert await bell.wait(LONG)


async def test_a_large_insert_wakes_too(store: Store, open_another: OpenAnother) -> None:
    other = await open_another()
    async with store.listen_for_work(["default"]) as bell:
        await add_many(other, 1000)
        assert await bell.wait(LONG)


async def test_a_sleeper_is_not_woken_for_other_queues(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    async with (
        store.listen_for_work(["mine"]) as mine,
        store.listen_for_work(["theirs"]) as theirs,
    ):
        await add(other, queue="theirs")
        assert await theirs.wait(LONG)
        assert not await mine.wait(SHORT)
        await add(other, queue="mine")
        assert await mine.wait(LONG)


async def test_a_job_that_is_not_due_wakes_nobody_until_it_is_staged_elsewhere(
    store: Store, open_another: OpenAnother, clock: FakeClock
) -> None:
    other = await open_another()
    async with store.listen_for_work(["default"]) as bell:
        await add(other, delay=60.0)
        assert not await bell.wait(SHORT)
        clock.advance(61)
        assert await other.stage_jobs() == 1
        assert await bell.wait(LONG)


async def test_whatever_makes_a_job_ready_wakes(
    store: Store, open_another: OpenAnother, clock: FakeClock
) -> None:
    other = await open_another()
    job = await add_and_claim(store)
    async with store.listen_for_work(["default"]) as bell:
        await accept(other, attempt(job))
        assert await bell.wait(LONG), "a run that goes back to wait"
        [job] = await claim(store)
        clock.advance(61)
        await other.rescue_jobs()
        assert await bell.wait(LONG), "a rescue"
        await other.pause_jobs([job.id])
        await other.resume_jobs([job.id])
        assert await bell.wait(LONG), "a resumption"
        [job] = await claim(store)
        await fail(store, job)
        await other.retry_jobs([job.id])
        assert await bell.wait(LONG), "a retry"


async def test_jobs_of_a_queue_that_is_no_longer_paused_wake(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    await store.pause_queue("default")
    await add(store)
    async with store.listen_for_work(["default"]) as bell:
        await other.resume_queue("default")
        assert await bell.wait(LONG)


@pytest.mark.requires("groups")
async def test_jobs_of_a_group_that_is_no_longer_paused_wake(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    group = await make_group(store)
    await store.pause_group(group.id)
    await add(store, group=group.id)
    async with store.listen_for_work(["default"]) as bell:
        await other.resume_group(group.id)
        assert await bell.wait(LONG)


async def test_the_end_of_a_job_wakes_who_waits_for_it(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    job = await add_and_claim(other)
    async with store.listen_for_ends([job.id]) as bell:
        await complete(other, job)
        assert await bell.wait(LONG)


async def test_the_end_of_another_job_does_not(store: Store, open_another: OpenAnother) -> None:
    other = await open_another()
    first, second = await add_many(other, 2)
    jobs = {job.id: job for job in await claim(other, 2)}
    async with store.listen_for_ends([first]) as one, store.listen_for_ends([second]) as two:
        await complete(other, jobs[second])
        assert await two.wait(LONG)
        assert not await one.wait(SHORT)
        await fail(other, jobs[first])
        assert await one.wait(LONG)


async def test_a_cancelled_job_wakes_who_waits_for_it(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    job_id = await add(store)
    async with store.listen_for_ends([job_id]) as bell:
        await other.cancel_jobs([job_id], "not wanted")
        assert await bell.wait(LONG)


async def test_nothing_happens_and_the_time_is_up(store: Store) -> None:
    async with store.listen_for_work(None) as bell:
        assert not await bell.wait(SHORT)
    async with store.listen_for_ends([await add(store)]) as bell:
        assert not await bell.wait(SHORT)


async def test_waiting_for_what_is_no_job_is_no_error(store: Store) -> None:
    async with store.listen_for_ends([UNKNOWN_ID, "no uuid"]) as bell:
        await bell.wait(SHORT)


async def test_many_sleepers_are_all_woken(store: Store, open_another: OpenAnother) -> None:
    others = [await open_another() for _ in range(3)]

    async def sleep(there: Store) -> bool:
        async with there.listen_for_work(["default"]) as bell:
            asleep.release()
            return await bell.wait(LONG)

    asleep = asyncio.Semaphore(0)
    sleepers = [asyncio.create_task(sleep(there)) for there in others for _ in range(20)]
    for _ in sleepers:
        await asleep.acquire()
    await add(store)
    assert all(await asyncio.gather(*sleepers))


async def test_what_happened_between_two_sleeps_is_not_slept_over(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    async with store.listen_for_work(["default"]) as bell:
        for _ in range(20):
            await add(other)
            assert await bell.wait(LONG)


async def test_no_job_is_slept_over_while_others_insert(
    store: Store, open_another: OpenAnother
) -> None:
    """Insert and sleep at the same time, many times: a lost wake-up is a time-out."""
    other = await open_another()
    wanted = 100

    async def feed() -> None:
        for n in range(wanted):
            await add(other)
            if n % 5 == 0:
                await asyncio.sleep(0.002)

    async def work() -> int:
        done = 0
        while done < wanted:
            async with store.listen_for_work(["default"]) as bell:
                if jobs := await claim(store, 10):
                    done += len(jobs)
                else:
                    assert await bell.wait(LONG)
        return done

    assert (await asyncio.gather(feed(), work()))[1] == wanted


@by_the_database
@pytest.mark.requires("transactional_insert")
async def test_a_callers_transaction_wakes_when_it_commits_and_not_before(
    store: Store, caller: Caller
) -> None:
    async with store.listen_for_work(["default"]) as bell:
        await store.insert_jobs([row()], tx=caller.connection)
        assert not await bell.wait(SHORT)
        await caller.commit()
        assert await bell.wait(LONG)


@by_the_database
@pytest.mark.requires("transactional_insert")
async def test_a_sleeper_that_comes_during_a_callers_transaction_is_woken_by_its_commit(
    store: Store, caller: Caller
) -> None:
    await store.insert_jobs([row()], tx=caller.connection)
    async with store.listen_for_work(["default"]) as bell:
        if not caller_locks(store):
            assert await claim(store) == []
        await caller.commit()
        assert await bell.wait(LONG)


def caller_locks(store: Store) -> bool:
    """Whether nobody else can write while the caller's transaction is open."""
    return not store.capabilities.many_machines
