"""How a worker claims and acknowledges: no more than it can start soon, and both in one go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults import FaultyStore
from windrow import Done, Job, NewJob, Queue, Worker, handler
from windrow.queue.checks import SizeLimits
from windrow.queue.job import JobState
from windrow.queue.records import Change, Claim, Finish, Finished
from windrow.queue.store import Store
from windrow.worker import completer, executor
from windrow.worker.completer import HELPERS, MOST_AT_ONCE
from windrow.worker.executor import Pace
from windrow.worker.observers import Observer, Observers
from windrow.worker.runs import Run, Runs


class Spy:
    """Passes everything on to a store and remembers the claims and the ends."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.claims: list[tuple[int, int]] = []  # asked for, got
        self.fused: list[tuple[int, int]] = []  # ends written, got in the same call
        self.ends: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim_jobs(self, claim: Claim) -> list[Job]:
        jobs = await self._store.claim_jobs(claim)
        self.claims.append((claim.limit, len(jobs)))
        return jobs

    async def finish_jobs(
        self, finishes: Sequence[Finish], *, claim: Claim | None = None, tx: Any = None
    ) -> Finished:
        finished = await self._store.finish_jobs(finishes, claim=claim, tx=tx)
        self.ends.append(len(finishes))
        if claim is not None:
            self.fused.append((len(finishes), len(finished.claimed)))
        return finished


def spied(store: Store) -> tuple[Spy, Queue]:
    spy = Spy(store)
    return spy, Queue(spy)


async def test_slow_jobs_are_claimed_only_as_many_as_can_run(store: Store) -> None:
    """Others could have the rest."""
    queue = Queue(store)
    gate = asyncio.Event()
    running = asyncio.Semaphore(0)

    @handler("work")
    async def work(job: Job) -> None:
        running.release()
        await gate.wait()

    await queue.enqueue_many([NewJob("work") for _ in range(50)])
    worker = Worker(queue, [work], concurrency=4)
    task = asyncio.create_task(worker.run(until_idle=True))
    for _ in range(4):
        await running.acquire()

    counts = await queue.counts()
    assert (counts[JobState.ACTIVE], counts[JobState.READY]) == (4, 46)
    gate.set()
    await task
    assert (await queue.counts())[JobState.COMPLETED] == 50


async def test_outcomes_are_written_together_and_the_next_jobs_claimed_with_them(
    store: Store,
) -> None:
    spy, queue = spied(store)

    @handler("work")
    async def work(job: Job) -> None: ...

    await queue.enqueue_many([NewJob("work") for _ in range(1000)])
    await Worker(queue, [work], concurrency=50).run(until_idle=True)

    assert sum(spy.ends) == 1000
    assert len(spy.ends) < 100  # far from one by one
    assert sum(got for _, got in spy.fused) > 500  # most came with an acknowledgement


async def test_single_outcome_does_not_wait_for_others(store: Store) -> None:
    queue = Queue(store)
    gate = asyncio.Event()

    @handler("quick")
    async def quick(job: Job) -> str:
        return "at once"

    @handler("slow")
    async def slow(job: Job) -> None:
        await gate.wait()

    await queue.enqueue("slow")
    worker = Worker(queue, [quick, slow])
    task = asyncio.create_task(worker.run())
    job = await queue.enqueue("quick")
    assert (await queue.wait(job.id, timeout=20)).result == "at once"
    gate.set()
    worker.stop()
    await task


async def test_priorities_are_kept_between_queues(queue: Queue) -> None:
    """A7, U5: whatever the queue, the most urgent job first."""
    order: list[int] = []

    @handler("work")
    async def work(job: Job, payload: int) -> None:
        order.append(payload)

    for priority in (1, 9, 5, 7, 3):
        await queue.enqueue("work", priority, queue=f"q{priority}", priority=priority)
    await Worker(queue, [work], concurrency=1).run(until_idle=True)

    assert order == [9, 7, 5, 3, 1]


async def test_limits_hold_while_a_worker_runs(queue: Queue) -> None:
    """N6: at most two of the tenant's jobs at once, all of them in the end."""
    running, most = 0, 0
    both_run = asyncio.Event()

    @handler("work", limits=["tenant:1"])
    async def work(job: Job) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            both_run.set()
        await both_run.wait()
        await asyncio.sleep(0.002)
        running -= 1

    await queue.set_limit("tenant:1", active=2)
    await queue.enqueue_many([NewJob("work") for _ in range(30)])
    async with asyncio.timeout(60):
        await Worker(queue, [work], concurrency=10).run(until_idle=True)

    assert most == 2
    assert (await queue.counts())[JobState.COMPLETED] == 30


class LateRescue(FaultyStore):
    """A store whose rescues find nothing at first, as while another one is not yet committed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.finds_from = time.monotonic() + 2.5

    async def rescue_jobs(self, limit: int = 1000) -> list[Change]:
        if time.monotonic() < self.finds_from:
            return []
        return await self.store.rescue_jobs(limit)


async def test_worker_is_not_idle_while_jobs_of_a_lost_claim_are_being_rescued(
    store: Store,
) -> None:
    @handler("work")
    async def work(job: Job) -> None: ...

    late = LateRescue(store)
    late.lose_reply("claim_jobs", call=1)
    queue = Queue(late)
    await queue.enqueue_many([NewJob("work") for _ in range(30)])
    async with asyncio.timeout(60):
        await Worker(queue, [work], concurrency=10, lease=1).run(until_idle=True)

    assert (await queue.counts())[JobState.COMPLETED] == 30


class Slow(Spy):
    """Its first large end does not return before as many others have been asked for as can be."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.has_held = False
        self.is_holding = False
        self.others = asyncio.Semaphore(0)
        self.over = asyncio.Event()
        self.all_came = False

    async def finish_jobs(
        self, finishes: Sequence[Finish], *, claim: Claim | None = None, tx: Any = None
    ) -> Finished:
        if self.is_holding:
            self.others.release()
            await self.over.wait()
        elif len(finishes) >= 100 and not self.has_held:
            self.has_held = self.is_holding = True
            try:
                async with asyncio.timeout(10):
                    for _ in range(HELPERS):
                        await self.others.acquire()
                self.all_came = True
            finally:
                self.is_holding = False
                self.over.set()
        return await super().finish_jobs(finishes, claim=claim, tx=tx)


async def test_many_ends_are_written_while_others_are_on_their_way(store: Store) -> None:
    """The database is at work on some batches while the worker takes apart what another brought."""
    slow = Slow(store)
    queue = Queue(slow)

    @handler("work")
    async def work(job: Job) -> None:
        pass

    await queue.enqueue_many([NewJob("work") for _ in range(3000)])
    # More than one batch of ends can be under way at once.
    await Worker(queue, [work], concurrency=(HELPERS + 1) * MOST_AT_ONCE).run(until_idle=True)

    assert slow.all_came
    assert (await queue.counts())[JobState.COMPLETED] == 3000


def test_worker_that_has_just_begun_claims_ahead_by_what_it_has_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(executor, "time", SimpleNamespace(monotonic=lambda: now))
    begun = Pace()
    assert begun.ahead() == 0
    for _ in range(40):
        begun.count()
    now += 0.001
    assert begun.ahead() == pytest.approx(
        200, abs=1
    )  # as if these had taken 20 ms: a few in no time say little
    now += 0.049
    assert begun.ahead() == pytest.approx(80, abs=1)
    now += 0.05
    assert begun.ahead() == pytest.approx(40, abs=1)


async def test_worker_is_not_idle_because_of_a_claim_from_before_the_last_end(
    store: Store,
) -> None:
    """That one could not see what the job left behind."""
    began, ended = asyncio.Event(), asyncio.Event()

    class SlowToAnswer(Spy):
        async def claim_jobs(self, claim: Claim) -> list[Job]:
            jobs = await self._store.claim_jobs(claim)
            if not jobs and not ended.is_set():
                began.set()
                await ended.wait()
            return jobs

        async def finish_jobs(
            self, finishes: Sequence[Finish], *, claim: Claim | None = None, tx: Any = None
        ) -> Finished:
            finished = await self._store.finish_jobs(finishes, claim=claim, tx=tx)
            ended.set()
            return finished

    queue = Queue(SlowToAnswer(store))

    @handler("first")
    async def first(job: Job) -> Done:
        await began.wait()
        await asyncio.sleep(0.05)  # until the worker asks whether it is idle
        await job.tx.execute("SELECT 1")  # an end in a transaction claims nothing with it
        return Done(then=[NewJob("second")])

    @handler("second")
    async def second(job: Job) -> None: ...

    await queue.enqueue("first")
    await Worker(queue, [first, second], concurrency=4).run(until_idle=True)

    assert (await queue.counts())[JobState.COMPLETED] == 2


async def test_ends_that_are_written_at_once_leave_nobody_without_a_claim(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has become slower, so it has more jobs than it would claim now, and all their ends
    are on their way in two batches: neither alone makes room."""
    monkeypatch.setattr(completer, "WORTH_WAITING", 2)
    monkeypatch.setattr(completer, "MOST_AT_ONCE", 2)
    ahead = iter([3])
    monkeypatch.setattr(Pace, "ahead", lambda pace: next(ahead, 0))
    queue = Queue(store)
    done = asyncio.Semaphore(0)

    @handler("work")
    async def work(job: Job) -> None:
        done.release()

    await queue.enqueue_many([NewJob("work") for _ in range(5)])
    worker = Worker(queue, [work], concurrency=1)
    task = asyncio.create_task(worker.run())
    async with asyncio.timeout(10):
        for _ in range(5):
            await done.acquire()
    worker.stop()
    await task
    assert (await queue.counts())[JobState.COMPLETED] == 5


class Losses(Observer):
    def __init__(self) -> None:
        self.runs: list[int] = []

    def lost(self, job: Job) -> None:
        self.runs.append(job.runs)


async def test_end_of_a_run_whose_job_was_claimed_again_is_not_written(store: Store) -> None:
    """N1: by the same worker, before it came to write that end."""

    @handler("work")
    async def work(job: Job) -> None: ...

    spy, queue = spied(store)
    await queue.enqueue("work")
    [first] = (await queue.claim()).jobs
    await store.extend_leases([first.lease_token or ""], 0)
    await store.rescue_jobs()
    [second] = (await queue.claim()).jobs
    runs, losses = Runs(), Losses()
    writer = completer.Completer(queue.store, SizeLimits(), runs, Observers([losses]))
    for job, result in ((first, "stale"), (second, "good")):
        run = Run(job, work)
        runs.add(run)
        writer.add(run, Done(result))
    await writer.write_batch()

    assert (spy.ends, losses.runs, len(runs)) == ([1], [1], 0)
    assert (await queue.get(first.id)).result == "good"


@pytest.mark.parametrize("verb", ["claim_jobs", "finish_jobs"])
async def test_worker_is_not_idle_while_a_claim_whose_answer_was_lost_has_jobs(
    store: Store, verb: str
) -> None:
    """They can be run when the lease is over, and nobody else may be there to do it."""

    @handler("work")
    async def work(job: Job) -> None: ...

    faulty = FaultyStore(store)
    faulty.lose_reply(verb, call=1)
    queue = Queue(faulty)
    await queue.enqueue_many([NewJob("work") for _ in range(30)])
    async with asyncio.timeout(60):
        await Worker(queue, [work], concurrency=10, lease=1).run(until_idle=True)

    assert (await queue.counts())[JobState.COMPLETED] == 30
