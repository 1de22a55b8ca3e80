"""`job.step` in handlers, on the loop and in threads: a retry does not run it again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.face.test_sync import connect
from windrow import Job, Queue, Retry, Worker, handler
from windrow.queue.job import JobState

RUNS = 3


def note(calls: list[str], name: str) -> int:
    calls.append(name)
    return len(calls)


def on_the_loop(calls: list[str]) -> Any:
    @handler("steps")
    async def work(job: Job) -> Any:
        first = await job.step("first", note, calls, "first")
        await job.report_progress(10 * job.runs, "under way")
        if job.runs < RUNS:
            return Retry(after=0)
        return [first, await job.step("last", note, calls, "last")]

    return work


def in_a_thread(calls: list[str]) -> Any:
    @handler("steps")
    def work(job: Job) -> Any:
        first = job.step("first", note, calls, "first")
        job.report_progress(10 * job.runs, "under way")
        if job.runs < RUNS:
            return Retry(after=0)
        return [first, job.step("last", note, calls, "last")]

    return work


@pytest.mark.parametrize("make", [on_the_loop, in_a_thread])
async def test_a_handler_that_is_run_again_takes_each_step_once(store_url: str, make: Any) -> None:
    calls: list[str] = []
    async with Queue.open(store_url) as queue:
        made = await queue.enqueue("steps")
        await Worker(queue, [make(calls)]).run(until_idle=True)
        job = await queue.get(made.id)
    assert (job.state, job.runs, job.result) == (JobState.COMPLETED, RUNS, [1, 2])
    assert job.progress is not None
    assert (job.progress.percent, calls) == (10 * RUNS, ["first", "last"])


@handler("own-rows")
def write_own_rows(job: Job) -> None:
    job.tx.execute(f"INSERT INTO mine VALUES ({job.payload})")


async def test_a_handler_in_a_thread_writes_in_the_jobs_transaction(
    store_url: str, store_name: str
) -> None:
    with connect(store_name, store_url) as connection:
        connection.execute("CREATE TABLE mine (n integer)")
        connection.commit()
    async with Queue.open(store_url) as queue:
        await queue.enqueue("own-rows", 7)
        await Worker(queue, [write_own_rows]).run(until_idle=True)
        assert (await queue.counts())[JobState.COMPLETED] == 1
    with connect(store_name, store_url) as connection:
        assert connection.execute("SELECT n FROM mine").fetchall() == [(7,)]
