"""`windrow worker` as real processes: killed, told to stop, crashed by a job, restarted."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ROOT, Command
from windrow import Job, Lease, NewJob, Queue
from windrow.errors import LeaseLost
from windrow.queue.job import JobState
from windrow.queue.opening import open_store
from windrow.queue.store import Store
from windrow.services.working import CYCLE_THRESHOLDS
from windrow.worker.maintenance import RENEW_SECONDS, TERM_SECONDS
from windrow.worker.worker import DEFAULT_RESCUE

PATIENCE = 60.0

StartWorker = Callable[..., Command]


@pytest.fixture
def start_worker(store_url: str) -> Iterator[StartWorker]:
    """Start `windrow worker` on the test's database, with the handlers of tests/worker."""
    started: list[Command] = []

    def start(*options: str, url: str = store_url) -> Command:
        process = Command(
            *("worker", "tests.worker.handlers", *options),
            cwd=ROOT,
            environment={**os.environ, "WINDROW_DATABASE_URL": url},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
async def queue(store_url: str) -> AsyncIterator[Queue]:
    """By the database's own clock, as the workers are."""
    store: Store = await open_store(store_url)
    yield Queue(store)
    await store.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.touch()
    return path


def runs(log: Path) -> list[list[str]]:
    """Job, number of the run and process of each run there was."""
    return [line.split() for line in log.read_text().splitlines()]


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)


async def test_jobs_of_a_killed_worker_run_again_and_its_late_end_is_refused(
    queue: Queue, start_worker: StartWorker, log: Path
) -> None:
    """N2, A5, A7: kill -9 loses nothing."""
    jobs = [await queue.enqueue("slow", {"log": str(log)}) for _ in range(3)]
    # Long enough that neither loses a job because the machine stood still for a moment.
    victim = start_worker("--lease", "6s")
    await until(lambda: len(runs(log)) == 3)
    late = await queue.get(jobs[0].id)
    heir = start_worker("--lease", "6s")
    os.kill(victim.pid, signal.SIGKILL)
    await until(lambda: len(runs(log)) == 6)

    assert {(await queue.get(job.id)).crashes for job in jobs} == {1}
    again = runs(log)[3:]
    assert {run[1] for run in again} == {"2"}
    assert {run[2] for run in again} == {str(heir.pid)}
    with pytest.raises(LeaseLost):
        await _finish_late(queue, late)


def test_a_new_leader_rescues_within_five_seconds_of_a_lease() -> None:
    """The promise is lease + 5 s, whoever was killed: the leader's term ends, another one is
    elected at its next try and looks at once; a leader that lives looks every second."""
    assert TERM_SECONDS + RENEW_SECONDS < 5
    assert DEFAULT_RESCUE < 5


async def test_sigterm_drains_and_then_hands_back(
    queue: Queue, start_worker: StartWorker, log: Path
) -> None:
    """No attempt and no crash is counted for what did not end in time."""
    short = await queue.enqueue("slow", {"log": str(log), "seconds": 0.5})
    long = await queue.enqueue("slow", {"log": str(log), "seconds": 600})
    worker = start_worker("--grace", "5s")
    await until(lambda: len(runs(log)) == 2)
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(PATIENCE) == 0
    assert (await queue.get(short.id)).state is JobState.COMPLETED
    left = await queue.get(long.id)
    assert (left.state, left.attempts, left.crashes) == (JobState.READY, 0, 0)


async def test_second_signal_stops_at_once(
    queue: Queue, start_worker: StartWorker, log: Path
) -> None:
    job = await queue.enqueue("slow", {"log": str(log), "seconds": 600})
    worker = start_worker("--grace", "600s")
    await until(lambda: runs(log))
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGINT)  # two of a kind could become one

    assert worker.wait(PATIENCE) == 0
    assert (await queue.get(job.id)).state is JobState.READY


@pytest.mark.parametrize("kind", ["stuck", "stuck.call"])
async def test_worker_ends_although_a_thread_of_a_handler_cannot_be_stopped(
    queue: Queue, start_worker: StartWorker, log: Path, kind: str
) -> None:
    job = await queue.enqueue(kind, {"log": str(log), "seconds": 2 * PATIENCE})
    worker = start_worker("--grace", "600s")
    await until(lambda: runs(log))
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGINT)

    assert worker.wait(PATIENCE) == 0
    assert (await queue.get(job.id)).state is JobState.READY


async def test_racing_workers_run_every_job_once(
    queue: Queue, start_worker: StartWorker, log: Path
) -> None:
    """A3, A7: separate processes, none of them runs what another one has."""
    made = await queue.enqueue_many([NewJob("log", {"log": str(log)}) for _ in range(1000)])
    workers = [start_worker("--until-idle", "--concurrency", "20") for _ in range(3)]

    assert [worker.wait(PATIENCE) for worker in workers] == [0, 0, 0]
    assert Counter(run[0] for run in runs(log)) == {one.id: 1 for one in made}
    assert (await queue.counts())[JobState.COMPLETED] == 1000


async def test_poison_that_kills_its_worker_is_isolated_and_fails(
    queue: Queue, start_worker: StartWorker, log: Path
) -> None:
    """P4: the poison is failed after its crash limit while the others flow, and no other job is
    failed for the company it kept."""
    poison = await queue.enqueue("poison", max_crashes=3, priority=9)
    others = await queue.enqueue_many(
        [NewJob("log", {"log": str(log)}, max_crashes=3) for _ in range(50)]
    )
    start_worker("--processes", "2", "--lease", "1s", "--concurrency", "4")

    ended = await queue.wait(poison.id, timeout=PATIENCE)
    await queue.wait_many([one.id for one in others], timeout=PATIENCE)
    assert (ended.state, ended.crashes) == (JobState.FAILED, 3)
    assert "crashed 3 times" in (ended.error or "")
    assert {(await queue.get(one.id)).state for one in others} == {JobState.COMPLETED}


async def test_supervisor_replaces_a_worker_that_died_and_passes_signals_on(
    queue: Queue, start_worker: StartWorker, log: Path
) -> None:
    supervisor = start_worker("--processes", "2", "--lease", "1s")
    await until_async(lambda: _alive(queue, 2))
    first = {worker.pid for worker in await queue.workers()}
    os.kill(min(first), signal.SIGKILL)
    await until_async(lambda: _replaced(queue, first))
    job = await queue.enqueue("log", {"log": str(log)})
    await queue.wait(job.id, timeout=PATIENCE)
    supervisor.send_signal(signal.SIGTERM)

    assert supervisor.wait(PATIENCE) == 0


async def test_worker_above_its_memory_ceiling_begins_afresh(
    queue: Queue, start_worker: StartWorker
) -> None:
    """Nothing is lost on the way: what was claimed is finished or handed back."""
    start_worker("--max-memory", "200", "--concurrency", "1")
    big = await queue.enqueue("hungry", 200 * 1024 * 1024)
    await queue.wait(big.id, timeout=PATIENCE)
    made = [await queue.enqueue("hungry", 1) for _ in range(3)]
    before = {worker.id for worker in await queue.workers()}
    ended = await queue.wait_many([job.id for job in made], timeout=PATIENCE)
    await until_async(lambda: _others(queue, before))

    assert {job.state for job in ended.values()} == {JobState.COMPLETED}


async def until_async(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await condition():
            await asyncio.sleep(0.05)


async def _alive(queue: Queue, count: int) -> bool:
    return len(await queue.workers()) == count


async def _replaced(queue: Queue, before: set[int]) -> bool:
    return bool({worker.pid for worker in await queue.workers()} - before)


async def _others(queue: Queue, before: set[str]) -> bool:
    return bool({worker.id for worker in await queue.workers()} - before)


async def _finish_late(queue: Queue, job: Job) -> None:
    """As the dead worker would have ended it, with the token it had."""
    await Lease(queue.store, [job], queue.size_limits).complete(job, "too late")


async def test_worker_looks_for_cyclic_garbage_seldom(
    queue: Queue, start_worker: StartWorker
) -> None:
    """Jobs on their way would be gone over again and again."""
    job = await queue.enqueue("collector")
    assert start_worker("--until-idle").wait(PATIENCE) == 0
    assert (await queue.get(job.id)).result == list(CYCLE_THRESHOLDS)
