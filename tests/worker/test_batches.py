"""Batch handlers: many jobs in one call, an outcome for each."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from windrow import Done, Fail, Job, NewJob, Queue, Worker, handler
from windrow.errors import StoreUnavailable
from windrow.queue.job import JobState


class Number(msgspec.Struct):
    n: int


async def results(queue: Queue) -> dict[Any, Any]:
    jobs = [await queue.get(job.id) for job in await queue.list(limit=1000)]
    return {job.payload["n"]: job.result for job in jobs}


async def test_batch_handler_gets_many_and_answers_for_each(queue: Queue) -> None:
    sizes = []

    @handler("index", batch=10)
    async def index(jobs: list[Job], payloads: list[Number]) -> list[Any]:
        sizes.append(len(jobs))
        return [Fail("odd") if one.n % 2 else Done(one.n) for one in payloads]

    await queue.enqueue_many([NewJob("index", {"n": n}) for n in range(25)])
    await Worker(queue, [index]).run(until_idle=True)

    assert max(sizes) == 10
    assert sum(sizes) == 25
    counts = await queue.counts()
    assert (counts[JobState.COMPLETED], counts[JobState.FAILED]) == (13, 12)


async def test_nothing_returned_means_all_are_done(queue: Queue) -> None:
    @handler("index", batch=5)
    def index(jobs: list[Job]) -> None: ...

    await queue.enqueue_many([NewJob("index", {"n": n}) for n in range(7)])
    await Worker(queue, [index]).run(until_idle=True)

    assert (await queue.counts())[JobState.COMPLETED] == 7


async def test_poison_in_a_batch_is_found_by_halving(queue: Queue) -> None:
    calls = []

    @handler("index", batch=16, max_attempts=1)
    async def index(jobs: list[Job], payloads: list[Any]) -> list[Any]:
        calls.append(len(jobs))
        if any(one["n"] == 11 for one in payloads):
            raise ValueError("poison")
        return [one["n"] for one in payloads]

    await queue.enqueue_many([NewJob("index", {"n": n}) for n in range(16)])
    await Worker(queue, [index], concurrency=16).run(until_idle=True)

    found = await results(queue)
    assert found.pop(11) is None
    assert found == {n: n for n in range(16) if n != 11}
    [failed] = await queue.list(state="failed")
    assert failed.payload == {"n": 11}
    assert len(calls) <= 9  # 1 + 2 for each of four halvings


async def test_transient_error_of_a_batch_says_nothing_of_its_jobs(queue: Queue) -> None:
    calls = []

    @handler("index", batch=8, backoff="none")
    async def index(jobs: list[Job]) -> None:
        calls.append(len(jobs))
        if len(calls) == 1:
            raise StoreUnavailable("away")

    await queue.enqueue_many([NewJob("index", {"n": n}) for n in range(8)])
    await Worker(queue, [index], concurrency=8).run(until_idle=True)

    assert calls[0] == 8
    assert {job.attempts for job in await queue.list()} == {1}
    assert (await queue.counts())[JobState.COMPLETED] == 8


async def test_answer_of_the_wrong_length_fails_the_batch(queue: Queue) -> None:
    @handler("index", batch=4, max_attempts=1)
    async def index(jobs: list[Job]) -> list[Any]:
        return [1]

    await queue.enqueue_many([NewJob("index", {"n": n}) for n in range(4)])
    await Worker(queue, [index]).run(until_idle=True)

    jobs = await queue.list(state="failed")
    assert len(jobs) == 4
    assert "a list of 4 outcomes" in (jobs[0].error or "")


async def test_batch_waits_a_while_to_become_full(queue: Queue) -> None:
    sizes = []

    @handler("index", batch=6, batch_wait=3600)
    async def index(jobs: list[Job]) -> None:
        sizes.append(len(jobs))

    worker = Worker(queue, [index])
    task = asyncio.create_task(worker.run())
    made = [await queue.enqueue("index", {"n": n}) for n in range(6)]
    await queue.wait_many([job.id for job in made], timeout=30)
    worker.stop()
    await task

    assert sizes == [6]  # full, so it went before its time


@pytest.mark.parametrize("size", [1, 3])
async def test_payload_that_does_not_fit_fails_only_its_own_job(queue: Queue, size: int) -> None:
    @handler("index", batch=size, max_attempts=1)
    async def index(jobs: list[Job], payloads: list[Number]) -> list[int]:
        return [one.n for one in payloads]

    await queue.enqueue_many([NewJob("index", {"n": n}) for n in (1, "two", 3)])
    await Worker(queue, [index]).run(until_idle=True)

    assert await results(queue) == {1: 1, "two": None, 3: 3}
