"""`run="process"`: handlers in processes of their own, which can really be killed."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.worker import handlers
from windrow import Job, NewJob, Queue, Worker, handler
from windrow.errors import ConfigError
from windrow.queue.job import JobState
from windrow.worker.processes import Processes


async def run(queue: Queue, kind: str, payload: Any = None) -> Job:
    job = await queue.enqueue(kind, payload)
    await Worker(queue, [handlers]).run(until_idle=True)
    return await queue.get(job.id)


async def test_work_is_done_in_another_process(queue: Queue) -> None:
    await queue.enqueue_many([NewJob("square", n) for n in range(5)] + [NewJob("pid")])
    await Worker(queue, [handlers]).run(until_idle=True)

    squares = [(await queue.get(job.id)).result for job in await queue.list(kind="square")]
    [in_child] = await queue.list(kind="pid")
    assert sorted(squares) == [0, 1, 4, 9, 16]
    assert (await queue.get(in_child.id)).result != os.getpid()


async def test_process_that_takes_too_long_is_killed(queue: Queue) -> None:
    job = await run(queue, "spin")

    assert (job.state, job.attempts) == (JobState.FAILED, 1)
    assert job.error == "HandlerTimeout: stopped after 0.2 seconds, the handler's timeout"


async def test_process_that_dies_uses_attempts_and_harms_nobody(queue: Queue) -> None:
    deadly = await queue.enqueue("die")
    others = await queue.enqueue_many([NewJob("square", 3) for _ in range(4)])
    await Worker(queue, [handlers]).run(until_idle=True)

    dead = await queue.get(deadly.id)
    assert (dead.state, dead.attempts, dead.crashes) == (JobState.FAILED, 2, 0)
    assert "killed by signal 9" in (dead.error or "")
    assert {(await queue.get(one.id)).result for one in others} == {9}


@pytest.mark.parametrize(("payload", "error"), [("plain", "ValueError: plain"), ("odd", "odd")])
async def test_error_comes_back_with_its_traceback(queue: Queue, payload: str, error: str) -> None:
    job = await run(queue, "raise", payload)

    assert error in (job.error or "")
    assert "in raise_error" in (job.errors[0].traceback or "")


@pytest.mark.parametrize("kind", ["steps", "async steps"])
async def test_steps_and_progress_are_kept_by_the_parent(
    queue: Queue, tmp_path: Path, kind: str
) -> None:
    job = await run(queue, kind, str(tmp_path / "count"))

    assert (job.result, job.runs) == ("x", 2)
    if kind == "steps":
        assert job.progress is not None
        assert (job.progress.percent, job.progress.counters) == (50, {"runs": 2})


async def test_transaction_is_refused_in_a_process(queue: Queue) -> None:
    assert "has no job.tx" in ((await run(queue, "no tx")).error or "")


async def test_handler_a_child_could_not_find_is_refused(queue: Queue) -> None:
    with pytest.raises(ConfigError, match="top of a module"):

        @handler("work", run="process")
        def work(job: Job) -> None: ...


async def test_a_process_that_nobody_waits_for_any_more_does_not_stay() -> None:
    processes = Processes(1)
    before = set(multiprocessing.active_children())

    async def ask() -> None:
        async with processes.child():
            raise AssertionError("it was cancelled before")

    asking = asyncio.create_task(ask())
    while not (born := set(multiprocessing.active_children()) - before):
        await asyncio.sleep(0.001)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    [child] = born
    # Who kills it joins it too, and of two that do one may not be told how it ended.
    async with asyncio.timeout(30):
        while child.exitcode is None:
            await asyncio.sleep(0.01)
    assert child.exitcode == -signal.SIGKILL
    await processes.close()


SCRIPT = """
import asyncio
from windrow import Queue, Worker, handler

@handler("add", run="process", max_attempts=1)
def add(job, payload: list):
    return sum(payload)

async def main():
    async with Queue.open("sqlite:///jobs.db") as queue:
        await queue.enqueue("add", [1, 2])
        await Worker(queue, [add]).run(until_idle=True)
        print([(job.state.value, (await queue.get(job.id)).result) for job in await queue.list()])

{end}
"""


@pytest.mark.parametrize(
    ("end", "printed", "told"),
    [
        ("asyncio.run(main())", "[('failed', None)]", "put what else it does under"),
        ('if __name__ == "__main__":\n    asyncio.run(main())', "[('completed', 3)]", ""),
    ],
    ids=["unguarded", "guarded"],
)
def test_script_that_is_run_again_by_its_handlers_process_enqueues_nothing_twice(
    tmp_path: Path, end: str, printed: str, told: str
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(end=end))
    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.strip() == printed
    assert told in ran.stderr
