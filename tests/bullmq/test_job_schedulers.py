"""BullMQ's job schedulers beside a Windrow worker: whoever takes a tick, the next one comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import bullmq
import pytest
from bullmq.job_scheduler import JobScheduler

from windrow import Queue, Worker, handler
from windrow.errors import StoreUnavailable
from windrow.queue.bullmq import claiming
from windrow.queue.bullmq.location import parse_url
from windrow.queue.bullmq.store import BullmqStore
from windrow.queue.job import Job, JobState

TICKS = "ticks"


@pytest.fixture
def connection(url: str) -> dict[str, str]:
    location = parse_url(url)
    return {"connection": location.redis_url, "prefix": location.prefix}


@pytest.fixture
async def theirs(connection: dict[str, str]) -> AsyncIterator[Any]:
    opened = bullmq.Queue(TICKS, connection)
    yield opened
    await opened.close()


async def schedule(theirs: Any, **repeat: Any) -> None:
    await theirs.upsertJobScheduler("each", repeat, "tick", {"n": 1})


async def waiting(queue: Queue) -> list[str]:
    found = await queue.list(queue=TICKS)
    return [job.id for job in found if job.state in (JobState.READY, JobState.SCHEDULED)]


async def take(queue: Queue) -> Job:
    async with asyncio.timeout(10):
        while not (lease := await queue.claim([TICKS])):
            await asyncio.sleep(0.02)
    [job] = lease.jobs
    return job


async def test_windrow_worker_runs_tick_after_tick(
    queue: Queue, theirs: Any, connection: dict[str, str]
) -> None:
    ran: list[Any] = []

    @handler("tick")
    async def run(job: Job) -> None:
        ran.append((job.id, job.payload))
        if len(ran) == 3:
            worker.stop()

    await schedule(theirs, every=100)
    worker = Worker(queue, [run], queues=[TICKS])
    async with asyncio.timeout(30):
        await worker.run()
    assert len({job_id for job_id, _ in ran}) >= 3
    assert {payload["n"] for _, payload in ran} == {1}

    # The ticks after them are there for BullMQ's own worker.
    got: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def process(job: Any, _: str) -> None:
        if not got.done():
            got.set_result(job.id)

    their_worker = bullmq.Worker(TICKS, process, connection)
    async with asyncio.timeout(30):
        assert f"{TICKS}:{await got}" not in {job_id for job_id, _ in ran}
    await their_worker.close()


@pytest.mark.parametrize(
    "repeat", [{"every": 3_600_000}, {"pattern": "0 0 4 * * *", "tz": "Europe/Berlin"}]
)
async def test_next_tick_is_there_as_soon_as_one_is_taken(
    queue: Queue, theirs: Any, repeat: dict[str, Any]
) -> None:
    await schedule(theirs, **repeat)
    [first] = await waiting(queue)
    if (await queue.get(first)).state is JobState.SCHEDULED:
        await queue.retry(first)  # now
    job = await take(queue)

    assert job.id == first
    [second] = await waiting(queue)
    assert second != first
    scheduler = await theirs.getJobScheduler("each")
    assert second == f"{TICKS}:repeat:each:{int(scheduler['next'])}"


async def test_limit_of_a_scheduler_is_kept(queue: Queue, theirs: Any) -> None:
    await schedule(theirs, every=50, limit=2)
    taken = [(await take(queue)).id for _ in range(2)]
    assert len(set(taken)) == 2
    assert await waiting(queue) == []


async def test_tick_of_a_removed_scheduler_has_no_next(queue: Queue, theirs: Any) -> None:
    await schedule(theirs, every=3_600_000)
    lease = await queue.claim([TICKS])
    [job] = lease.jobs
    await theirs.removeJobScheduler("each")
    assert await waiting(queue) == []
    await lease.release(job)
    assert (await take(queue)).id == job.id
    assert await waiting(queue) == []


async def test_tick_that_is_taken_while_redis_fails_makes_the_next_when_it_is_taken_again(
    queue: Queue, theirs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await schedule(theirs, every=3_600_000)
    [first] = await waiting(queue)

    async def cut_off(*_: Any) -> Any:
        raise StoreUnavailable("the connection was cut")

    with monkeypatch.context() as patch:
        patch.setattr(claiming, "make_next_ticks", cut_off)
        with pytest.raises(StoreUnavailable):
            await queue.claim([TICKS])
    assert await waiting(queue) == [first]
    assert (await take(queue)).id == first
    assert len(await waiting(queue)) == 1


async def test_tick_that_is_taken_twice_makes_one_next(queue: Queue, theirs: Any) -> None:
    await schedule(theirs, every=3_600_000)
    lease = await queue.claim([TICKS])
    [job] = lease.jobs
    after = await waiting(queue)
    await lease.release(job)
    assert (await take(queue)).id == job.id
    assert await waiting(queue) == after


async def test_tick_whose_next_only_node_can_make_is_put_back(queue: Queue, theirs: Any) -> None:
    first = 4_102_444_800_000
    custom = JobScheduler(theirs, lambda now, options: first if now < first else first + 1000)
    await custom.upsertJobScheduler("each", {"pattern": "every full moon"}, "tick", {"n": 1})
    [before] = await waiting(queue)
    await queue.retry(before)  # now

    assert not await queue.claim([TICKS])
    assert await waiting(queue) == [before]
    job = await queue.get(before)
    assert (job.attempts, job.crashes, job.state) == (0, 0, JobState.SCHEDULED)
    links = cast(BullmqStore, queue.store)._links
    scheduler = await links.client.zscore(links.scripts(TICKS).keys["repeat"], "each")
    assert before == f"{TICKS}:repeat:each:{int(scheduler)}", "it is the current one still"


async def test_tick_of_a_kind_that_nobody_asks_for_goes_back_and_makes_no_next(
    queue: Queue, theirs: Any
) -> None:
    await schedule(theirs, every=50)
    [first] = await waiting(queue)
    for _ in range(3):
        assert not await queue.claim([TICKS], kinds=["other"])
        assert await waiting(queue) == [first]
        await queue.retry(first)  # now
    assert (await take(queue)).id == first
    assert len(await waiting(queue)) == 1
