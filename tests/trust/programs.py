"""The programs that faults are done to: producers and workers that write down what they are told.

Each runs in a process of its own (`harness.Crew` starts it) until it is told to stop, or killed.
`witnessed` puts a store between a worker and its database that writes the history: what a claim
gave, what is about to be sent, and what the database answered to it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from tests.trust.history import History
from windrow import Done, Job, NewJob, Queue, Worker, handler
from windrow.clock import Clock
from windrow.db.sqlite import connection
from windrow.errors import LeaseLost, StoreError
from windrow.ids import new_id
from windrow.queue.job import JobState
from windrow.queue.opening import open_store
from windrow.queue.records import Claim, Finish, Finished
from windrow.queue.store import Store
from windrow.worker.watchdog import memory_in_use

# What the kind `write` leaves behind through `job.tx`; no key: a second row would stay.
ROWS = "CREATE TABLE IF NOT EXISTS trust_rows (job text NOT NULL, token text NOT NULL)"
LEAVE_ROW = "INSERT INTO trust_rows (job, token) VALUES ($1, $2)"

AGAIN_SECONDS = 0.05
LINE = "line"  # the queue of jobs that are enqueued by priority
Death = Literal["before", "amid", "after"]  # the write of an outcome
_AnyStore: Any = object


class WitnessedStore(_AnyStore):  # type: ignore[misc]
    """A store whose claims and finishes are written down. `dies` ends the process at one of them,
    as `kill -9` would."""

    def __init__(self, store: Store, history: History, dies: Death | None = None) -> None:
        self.store = store
        self.history = history
        self._dies = dies
        self._dice = random.Random(os.getpid())
        self._left = self._dice.randint(3, 30)
        self._doubtful: set[str] = set()  # tokens of completions that were not answered

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def claim_jobs(self, claim: Claim) -> list[Job]:
        self.history.write("asked")
        jobs = await self.store.claim_jobs(claim)
        for job in jobs:
            self.history.of(job, "claimed")
        return jobs

    async def finish_jobs(self, ends: Sequence[Finish], **options: Any) -> Finished:
        for end in ends:
            self.history.write("ended", end.id, token=end.token)
        if options.get("claim"):
            self.history.write("asked")
        self._perhaps_die("before")
        self._perhaps_die("amid")
        try:
            finished = await self.store.finish_jobs(ends, **options)
        except BaseException:
            self._doubtful.update(end.token for end in ends if end.state is JobState.COMPLETED)
            raise
        self._perhaps_die("after")
        for end in ends:
            if end.token in self._doubtful and end.state is not JobState.COMPLETED:
                continue  # it may have been completed before, and this one be taken for the same
            self.history.write(
                "finished",
                end.id,
                token=end.token,
                outcome=outcome_of(end),
                accepted=end.id not in finished.lost,
            )
        for job in finished.claimed:
            self.history.of(job, "claimed")
        return finished

    def _perhaps_die(self, here: Death) -> None:
        if self._dies != here:
            return
        self._left -= 1
        if self._left > 0:
            return
        if here == "amid":
            # From a thread of its own, at some moment of the write that begins now.
            threading.Timer(self._dice.uniform(0, 0.004), end_at_once).start()
        else:
            end_at_once()


class SteppedClock(Clock):
    """The time of day, put forward or back by the seconds in a file that all processes share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(self._path.read_text() or 0))


def end_at_once() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def outcome_of(end: Finish) -> str:
    match end.state:
        case JobState.COMPLETED:
            return "done"
        case JobState.FAILED:
            return "fail"
        case JobState.CANCELLED:
            return "cancel"
        case _:
            return "retry" if end.uses_attempt else "snooze"


async def work(
    url: str,
    history: History,
    told: asyncio.Event,
    *,
    lease: int = 2,
    concurrency: int = 10,
    seconds: float = 0.002,
    dies: Death | None = None,
    leak: int = 0,
    spare_memory: int | None = None,
    clock: str | None = None,
    queues: Sequence[str] | None = None,
) -> None:
    """Run jobs. The kinds: `work` does something outside the database, `write` also in its
    transaction, `fail` never succeeds, `crash` takes the process along, `block` keeps the loop from
    everything else, `leak` keeps `leak` bytes for ever, `sleep` takes as long as its payload says,
    `finish` is the finish job of a group. With more than `spare_memory` bytes in use beside those
    that it begins with, a worker stops."""
    kept: list[bytes] = []

    @handler("work")
    async def plain(job: Job) -> Done:
        history.of(job, "started")
        await asyncio.sleep(seconds)
        history.of(job, "effect")
        return Done({"run": job.runs})

    @handler("write")
    async def write(job: Job) -> Done:
        history.of(job, "started")
        await job.tx.execute(LEAVE_ROW, job.id, job.lease_token)
        history.of(job, "written")
        await asyncio.sleep(seconds)
        return Done({"run": job.runs})

    @handler("fail", backoff="none", max_attempts=3)
    async def fail(job: Job) -> None:
        history.of(job, "started")
        raise ValueError("always")

    @handler("crash")
    async def crash(job: Job) -> None:
        history.of(job, "started")
        end_at_once()

    @handler("block")
    async def block(job: Job, payload: float) -> Done:
        history.of(job, "started")
        time.sleep(payload)
        history.of(job, "effect")
        return Done({"run": job.runs})

    @handler("sleep")
    async def sleep(job: Job, payload: float) -> Done:
        history.of(job, "started")
        await asyncio.sleep(payload)
        history.of(job, "effect")
        return Done({"run": job.runs})

    @handler("leak")
    async def leaky(job: Job) -> Done:
        history.of(job, "started")
        kept.append(os.urandom(leak))
        await asyncio.sleep(seconds)
        history.of(job, "effect")
        return Done({"run": job.runs})

    @handler("finish")
    async def finish(job: Job, payload: str) -> Done:
        history.of(job, "started")
        history.write("group_finished", job.id, group=payload)
        return Done({"run": job.runs})

    handlers = [finish, plain, write, fail, crash, block, sleep, leaky]
    opened = await _until_it_works(
        lambda: open_store(url, clock=SteppedClock(Path(clock)) if clock else Clock())
    )
    store: Any = WitnessedStore(opened, history, dies)
    worker = Worker(
        Queue(store),
        handlers,
        concurrency=concurrency,
        queues=queues,
        lease=lease,
        grace=5,
        max_memory=None if spare_memory is None else memory_in_use() + spare_memory,
        name=history.by,
    )
    running = asyncio.create_task(worker.run())
    await _first_of(running, told)
    worker.stop()
    await running
    await store.close()
    sys.exit(RECYCLED if worker.was_recycled else 0)


RECYCLED = 75


async def take_turns(
    url: str, history: History, told: asyncio.Event, *, lease: int, limit: int = 3
) -> None:
    """Claim from the line, a few at a time, and complete them one by one: whatever this writes down
    stands in the order in which it was done, so the order of its claims can be judged."""
    opened = await _until_it_works(lambda: Queue.open(url).__aenter__())
    while not told.is_set():
        history.write("asked")
        claimed = await opened.claim([LINE], limit=limit, seconds=lease, worker=history.by)
        for job in claimed.jobs:
            history.of(job, "claimed")
        for job in claimed.jobs:
            history.of(job, "started")
            history.of(job, "ended")
            try:
                await claimed.complete(job)
                accepted = True
            except LeaseLost:
                accepted = False
            history.of(job, "finished", outcome="done", accepted=accepted)
        if not claimed.jobs:
            await asyncio.sleep(AGAIN_SECONDS)
    await opened.close()


async def _first_of(running: asyncio.Task[None], told: asyncio.Event) -> None:
    ending = asyncio.create_task(told.wait())
    await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)


async def live_until_told(running: Coroutine[Any, Any, None], told: asyncio.Event) -> None:
    """Run somebody else's worker; it is cancelled when it is told to stop."""
    task = asyncio.create_task(running)
    await _first_of(task, told)
    task.cancel()
    await asyncio.gather(task, return_exceptions=told.is_set())


async def produce(
    url: str,
    history: History,
    told: asyncio.Event,
    *,
    kinds: Sequence[str],
    pause: float,
    batch: int = 20,
    keys: Sequence[str] = (),
    priorities: Sequence[int] = (),
) -> None:
    """Enqueue jobs in batches. A batch that was not acknowledged is offered again, under its ids,
    until it is. With `keys` each job of a batch asks for another one of these; with `priorities`
    they stand in a line of their own, whose order is to be judged."""
    dice = random.Random(os.getpid())

    def make(number: int, key: str | None) -> NewJob:
        place: dict[str, Any] = {}
        if priorities:
            place = {"queue": LINE, "priority": dice.choice(priorities)}
        kind = kinds[number % len(kinds)]
        return NewJob(kind, id=new_id(), max_crashes=20, unique=key, **place)

    opened = await _until_it_works(lambda: Queue.open(url).__aenter__())
    while not told.is_set():
        chosen = dice.sample(keys, batch) if keys else [None] * batch
        new = [make(number, key) for number, key in enumerate(chosen)]
        for one in new:
            history.write("offered", str(one.id), key=one.unique)
        stored = await _until_it_works(lambda new=new: opened.enqueue_many(new))  # type: ignore[misc]
        for one, made in zip(new, stored, strict=True):
            history.write(
                "enqueued",
                made.id,
                # What a first try has stored is there when it is offered again.
                outcome="inserted" if made.id == one.id else made.outcome,
                key=one.unique,
                queue=one.queue,
                priority=one.priority if one.queue == LINE else None,
            )
        await asyncio.sleep(pause)
    await opened.close()


async def _until_it_works(call: Callable[[], Awaitable[Any]]) -> Any:
    while True:
        try:
            return await call()
        except StoreError:
            await asyncio.sleep(AGAIN_SECONDS)


def live(program: str, options: dict[str, Any], by: str, ears: Connection, log: str) -> None:
    """The life of a process. It ends when it is told to, and when the one who told is gone."""
    os.setsid()
    sys.stdout = sys.stderr = Path(log).open("a", buffering=1)  # noqa: SIM115
    logging.basicConfig(level=logging.WARNING, format=f"{by} %(name)s: %(message)s", force=True)
    history = History(Path(options.pop("history")), by)
    if patience := options.pop("busy_seconds", None):
        connection.BUSY_SECONDS = patience  # type: ignore[misc]
    module, _, name = program.rpartition(":")
    found = getattr(import_module(module or __name__), name)
    asyncio.run(_live(found, history, options, ears))


async def _live(
    program: Callable[..., Awaitable[None]],
    history: History,
    options: dict[str, Any],
    ears: Connection,
) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def listen() -> None:
        try:
            ears.recv_bytes()
        except EOFError:
            end_at_once()
        loop.call_soon_threadsafe(told.set)

    threading.Thread(target=listen, daemon=True).start()
    await program(history=history, told=told, **options)
