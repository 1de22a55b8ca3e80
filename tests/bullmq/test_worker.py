"""Workers on BullMQ: chains, hand-offs that are cut off, crashes, and sleeps that end in time."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any, cast

import pytest

from tests.builders import row
from windrow import Done, NewJob, Queue, Retry, Snooze, Worker, handler
from windrow.errors import LeaseLost, StoreUnavailable, Unsupported
from windrow.pipelines.chain import Chain, StatusRow
from windrow.queue.bullmq.connection import Links
from windrow.queue.bullmq.finishing import follow_up_id
from windrow.queue.bullmq.rows import bullmq_priority, our_priority
from windrow.queue.bullmq.store import BullmqStore
from windrow.queue.job import Job, JobState
from windrow.queue.lease import to_finish

ITEMS = 20


def make_chain(name: str = "call", **options: Any) -> Chain:
    chain = Chain(name, **options)

    @chain.stage("fetch", queue="fetching", backoff=0.05)
    async def fetch(job: Job, payload: dict[str, int]) -> dict[str, int]:
        if payload["n"] == 1 and job.attempts == 0:
            raise ValueError("first try")
        return payload | {"fetched": 1}

    @chain.stage("transcribe", queue="transcribing")
    async def transcribe(job: Job, payload: dict[str, int]) -> dict[str, int] | Snooze:
        if job.runs == 1:
            return Snooze(0.01)  # as one that is polled for
        return payload | {"text": 2 * payload["n"]}

    @chain.stage("index", queue="indexing")
    def index(job: Job, payload: dict[str, int]) -> dict[str, int]:
        return payload

    return chain


def links_of(queue: Queue) -> Links:
    return cast(BullmqStore, queue.store)._links


async def until_asleep(queue: Queue) -> None:
    async with asyncio.timeout(10):
        while not len(cast(BullmqStore, queue.store)._ears.belfry):
            await asyncio.sleep(0.01)


async def until_empty(queue: Queue, worker: Worker, ended: int) -> None:
    working = asyncio.create_task(worker.run())
    async with asyncio.timeout(90):
        while (await queue.counts())[JobState.COMPLETED] < ended:
            await queue.tend()  # the leader may have been killed, and its term not over
            await asyncio.sleep(0.05)
    worker.stop()
    await working


async def test_j8_a_chain_of_stages_runs_unchanged(queue: Queue) -> None:
    chain = make_chain()
    await queue.enqueue_many([chain.begin({"n": n}) for n in range(5)])

    await until_empty(queue, Worker(queue, chain.handlers), 15)

    ends = [await queue.get(job.id) for job in await queue.list(queue="indexing")]
    assert sorted(job.result["text"] for job in ends) == [0, 2, 4, 6, 8]
    first = {job.payload["n"]: job for job in await queue.list(queue="fetching")}
    assert (first[1].attempts, first[0].attempts) == (1, 0)
    # No attempt was used by asking again later.
    assert {job.attempts for job in await queue.list(queue="transcribing")} == {0}


async def test_a_chain_with_a_row_of_a_table_fails_and_says_why(queue: Queue) -> None:
    chain = make_chain("rowed", status=StatusRow("call", field="n"))
    chain._stages[0] = type(chain._stages[0])("fetch", chain._stages[0].handler, "fetching")
    [begun] = await queue.enqueue_many([chain.begin({"n": 5}, max_attempts=1)])
    worker = Worker(queue, chain.handlers)
    working = asyncio.create_task(worker.run())
    job = await queue.wait(begun.id, timeout=60)
    worker.stop()
    await working

    assert job.state is JobState.FAILED
    assert job.error is not None
    assert "job.tx" in job.error


async def test_a_hand_off_whose_reply_was_lost_is_repeated_without_doubling(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.enqueue("first", {"n": 1})
    lease = await queue.claim()
    guarded = Links.guarded

    async def cut_off(self: Links, *args: Any) -> Any:
        await guarded(self, *args)
        raise StoreUnavailable("the connection was cut")

    monkeypatch.setattr(Links, "guarded", cut_off)
    with pytest.raises(StoreUnavailable):
        await lease.complete(lease.jobs[0], then=[NewJob("second"), NewJob("third")])
    monkeypatch.undo()
    await lease.complete(lease.jobs[0], then=[NewJob("second"), NewJob("third")])

    assert sorted(job.kind for job in await queue.list()) == ["first", "second", "third"]


async def test_a_hand_off_that_was_cut_off_half_way_is_completed_by_the_next_run(
    queue: Queue,
) -> None:
    """As if a follow-up had been added and the worker had died before the end was written."""
    await queue.enqueue("first")
    lease = await queue.claim()
    [job] = lease.jobs
    links = links_of(queue)
    fields = await links.client.hgetall(links.job_key("default", job.id))
    told = to_finish(job, Done(then=[NewJob("second")]), queue.size_limits)
    await queue.enqueue("second", {"run": 1}, id=follow_up_id(told, fields, 0))

    await lease.complete(job, then=[NewJob("second", {"run": 2}), NewJob("third")])

    assert (await queue.get(job.id)).state is JobState.COMPLETED
    handed_on = {one.kind: one.payload for one in await queue.list() if one.id != job.id}
    assert handed_on == {"second": {"run": 1}, "third": None}


async def test_a_worker_whose_lock_is_gone_changes_nothing_and_adds_nothing(queue: Queue) -> None:
    await queue.enqueue("work")
    lease = await queue.claim()
    [job] = lease.jobs
    links = links_of(queue)
    await links.client.set(links.lock_key("default", job.id), "somebody else's")

    with pytest.raises(LeaseLost):
        await lease.renew()
    with pytest.raises(LeaseLost):
        await lease.complete(job, then=[NewJob("next")])

    assert [one.kind for one in await queue.list()] == ["work"]
    assert (await queue.get(job.id)).state is JobState.ACTIVE


async def test_failures_wait_as_long_as_the_run_says_and_count(queue: Queue) -> None:
    await queue.enqueue("work", max_attempts=3)
    lease = await queue.claim()
    await lease.fail(lease.jobs[0], "too early", retry_in=60)
    [job] = await queue.list()

    assert (job.state, job.attempts) == (JobState.SCHEDULED, 1)
    wait = (job.run_at - job.created_at).total_seconds()
    assert 59 < wait < 62
    await queue.retry(job.id)
    lease = await queue.claim()
    await lease.snooze(lease.jobs[0], 30)
    assert (await queue.get(job.id)).attempts == 1


def test_priorities_of_ours_are_bullmqs_the_other_way_round() -> None:
    assert [bullmq_priority(one) for one in (10, 5, 0, -3)] == [1, 6, 11, 14]
    assert [our_priority(bullmq_priority(one)) for one in (10, 5, 0, -3)] == [10, 5, 0, -3]
    assert (bullmq_priority(2**31 - 1), bullmq_priority(-(2**31))) == (1, 2_097_152)


async def test_sleepers_are_woken_by_other_processes_and_when_a_delayed_job_is_due(
    url: str, queue: Queue
) -> None:
    async with Queue.open(url) as other, queue.store.listen_for_work(["q"]) as bell:
        assert not await queue.claim(["q"])
        await other.enqueue("now", queue="q")
        assert await bell.wait(20)
        assert [job.kind for job in (await queue.claim(["q"])).jobs] == ["now"]

        await other.enqueue("soon", queue="q", delay=0.5)
        while not (lease := await queue.claim(["q"])):
            assert await bell.wait(20)  # rung, and not only looked again after a while
    [job] = lease.jobs
    assert job.started_at is not None
    assert job.started_at >= job.run_at


async def test_a_worker_that_finds_nothing_stops(queue: Queue) -> None:
    @handler("work")
    async def work(job: Job) -> None: ...

    worker = Worker(queue, [work])
    working = asyncio.create_task(worker.run())
    await until_asleep(queue)
    worker.stop()
    async with asyncio.timeout(60):
        await working


async def test_jobs_of_a_kind_without_a_handler_are_left_for_others(queue: Queue) -> None:
    await queue.enqueue("theirs")
    await queue.enqueue("ours")
    lease = await queue.claim(kinds=["ours"], limit=5)

    assert [job.kind for job in lease.jobs] == ["ours"]
    [other] = [job for job in await queue.list() if job.kind == "theirs"]
    assert (other.state, other.attempts) == (JobState.SCHEDULED, 0)


async def test_unique_keys_are_of_one_queue_and_free_after_the_end(queue: Queue) -> None:
    first = await queue.enqueue("work", unique="key")
    assert (await queue.enqueue("work", unique="key")).id == first.id
    assert (await queue.enqueue("work", unique="key", queue="other")).id != first.id
    lease = await queue.claim(["default"])
    await lease.complete(lease.jobs[0])
    assert (await queue.enqueue("work", unique="key")).id != first.id


async def test_a_follow_up_that_bullmq_cannot_take_fails_its_job_and_says_so(queue: Queue) -> None:
    @handler("work")
    async def work(job: Job) -> Done:
        return Done(then=[NewJob("next", limits=["key"])])

    job = await queue.enqueue("work")
    worker = Worker(queue, [work])
    working = asyncio.create_task(worker.run())
    ended = await queue.wait(job.id, timeout=60)
    worker.stop()
    await working

    assert ended.state is JobState.FAILED
    assert ended.error is not None
    assert "limits per key" in ended.error


async def test_a_refused_batch_writes_nothing(queue: Queue) -> None:
    with pytest.raises(Unsupported):
        await queue.store.insert_jobs([row(), row(limits=("key",))])
    assert await queue.list() == []


WORKER = """
import asyncio, sys
from tests.bullmq.test_worker import make_chain
from windrow import Queue, Worker

async def main():
    async with Queue.open(sys.argv[1]) as queue:
        print("up", flush=True)
        await Worker(queue, make_chain().handlers, lease=3, concurrency=5).run()

asyncio.run(main())
"""


@pytest.mark.parametrize("kills", [1, pytest.param(6, marks=pytest.mark.chaos)])
async def test_j8_a_worker_that_is_killed_loses_and_doubles_nothing(
    url: str, queue: Queue, kills: int
) -> None:
    """kill -9 in the middle of hand-offs: each stage of each item is one job, and completed."""
    await queue.enqueue_many([make_chain().begin({"n": n}) for n in range(ITEMS)])
    for _ in range(kills):
        process = subprocess.Popen([sys.executable, "-c", WORKER, url], stdout=subprocess.PIPE)
        assert process.stdout is not None
        await asyncio.to_thread(process.stdout.readline)
        before = (await queue.counts())[JobState.COMPLETED]
        async with asyncio.timeout(60):
            while (await queue.counts())[JobState.COMPLETED] <= min(before + 7, 3 * ITEMS - 1):
                await asyncio.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()

    await until_empty(queue, Worker(queue, make_chain().handlers, lease=3), 3 * ITEMS)

    jobs = await queue.list(limit=1000)
    assert len(jobs) == 3 * ITEMS
    for name in ("fetching", "transcribing", "indexing"):
        of_stage = [job for job in jobs if job.queue == name]
        assert sorted(job.payload["n"] for job in of_stage) == list(range(ITEMS))
    assert {job.state for job in jobs} == {JobState.COMPLETED}


async def test_a_job_that_kills_its_workers_fails_in_the_end(queue: Queue) -> None:
    await queue.enqueue("deadly", max_crashes=1)
    await queue.claim(seconds=1)  # and nothing is heard of it again
    worker = Worker(queue, [handler("deadly")(_never)])
    working = asyncio.create_task(worker.run())
    [job] = await queue.list()
    ended = await queue.wait(job.id, timeout=60)
    worker.stop()
    await working

    assert (ended.state, ended.crashes) == (JobState.FAILED, 1)
    assert ended.error is not None
    assert "crashed 1 times" in ended.error


async def _never(job: Job) -> Retry:
    raise AssertionError("it must not run again")
