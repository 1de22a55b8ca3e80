"""One simulated run of real workers: their claimers, executors, completers, heartbeats and the
services of their leader under a simulated clock, with everything else decided by a seed."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from tests.trust.checker import Violation, check
from tests.trust.history import Entry, History
from tests.trust.ledger import Host, Ledger
from tests.trust.simulated_handlers import HANDLERS, LEASES, PLAY, SERVED, UNSERVED, Play
from tests.trust.simulated_loop import SimulatedLoop, Standstill, run_simulated
from tests.trust.simulated_process import Counted, Link
from tests.trust.stage import Report, Wrap, _next_token
from tests.trust.tracing import Told, Trace
from tests.trust.world import LIMITS, QUEUES, ROWS, tried
from windrow.errors import StoreUnavailable
from windrow.ids import new_id
from windrow.queue.job import FINAL, LIVE, Job, JobState, NewJob
from windrow.queue.queue import Queue
from windrow.worker.worker import STOP_SECONDS, Worker

LOOK_SECONDS: Final = 1.0  # between two looks at how things are
RUSH_SECONDS: Final = 3.0
RUSH_JOBS: Final = 30  # of each producer
# A simulated call takes up to 0.2 s: a claim remembers the queues for as many calls as a real one.
LISTING_SECONDS: Final = 0.5
CLOSING_SECONDS: Final = 400.0  # for all jobs to end when nothing goes wrong any more
Parts = Mapping[str, Any]  # of the worker, by the name they have in its module


@dataclass(frozen=True, slots=True)
class Weather:
    """How rough a run is. Some runs are calm, since a fault excuses what must not happen."""

    workers: int
    producers: int
    jobs: int  # of each producer
    seconds: float
    faults: float  # of calls
    blows: float  # seconds between two that hit a worker; 0: none
    meddling: float  # seconds between two acts of a person; 0: none
    is_rush: bool  # many short jobs come within seconds

    @classmethod
    def draw(cls, chance: random.Random) -> Weather:
        return cls(
            workers=chance.randint(1, 3),
            producers=chance.randint(1, 2),
            jobs=chance.choice((3, 6, 12)),
            seconds=chance.choice((5.0, 10.0, 20.0)),
            faults=chance.choice((0.0, 0.0, 0.02, 0.1)),
            blows=chance.choice((0.0, 0.0, 5.0, 10.0)),
            meddling=chance.choice((0.0, 1.0, 3.0)),
            is_rush=chance.random() < 0.3,
        )


@dataclass(slots=True)
class Staff:
    """A worker and the process it runs in."""

    host: Host
    link: Link
    worker: Worker
    grace: float
    task: asyncio.Task[None] = field(init=False)


class WorkerSimulation:
    def __init__(
        self, store: Any, loop: SimulatedLoop, seed: int, *, wrap: Wrap | None, trace: bool
    ) -> None:
        self.seed = seed
        self.loop = loop
        self.chance = random.Random(seed)
        self.trace = Trace(loop.clock, is_kept=trace)
        self.entries: list[Entry] = Told(self.trace)
        self.ledger = Ledger(loop, self.entries, LEASES)
        self.weather = Weather.draw(self.chance)
        self.counts: Counter[str] = Counter()
        self.trace.say("the weather", str(self.weather))
        self._store = Counted(wrap(store) if wrap else store, loop)
        self._queue: Queue = Queue(Counted(store, loop))  # what really is
        self._links: list[Link] = []
        self._staff: list[Staff] = []
        self._killed: list[Staff] = []  # kept: tasks that nobody knows are collected
        self._jobs: list[str] = []
        self._live_jobs: list[Job] = []  # when they were last looked at
        self._born: Counter[str] = Counter()
        self._is_closing = False

    async def run(self) -> Report:
        for key, most in LIMITS.items():
            await self._queue.set_limit(key, active=most)
            self.ledger.limits[key] = most
        for _ in range(self.weather.workers):
            self._hire()
        watching = asyncio.create_task(self._watch())
        try:
            await self._live()
            await self._close()
            await self._dismiss()
        finally:
            watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        if watching.done() and not watching.cancelled() and (error := watching.exception()):
            raise error
        await self._write_finals()
        self.counts["faults"] = sum(link.has_met for link in self._links)
        violations = self.ledger.wrong + check(self.entries, limits=LIMITS)
        return Report(self.seed, violations, self.entries, self.trace, self.counts)

    # Those who take part

    def _link(self, role: str, **fields: Any) -> Link:
        self._born[role] += 1
        link = Link(
            self._store,
            Host(f"{role}-{self._born[role]}", began_at=self.loop.time(), **fields),
            self.ledger,
            loop=self.loop,
            chance=self.chance,
            faults=0.0 if self._is_closing else self.weather.faults,
            say=self.trace.say,
        )
        self._links.append(link)
        return link

    def _hire(self) -> None:
        """Start a worker, in a process of its own."""
        draw = self.chance.choice
        queues = None if self._is_closing else draw((None, None, None, QUEUES[:1], QUEUES[1:]))
        kinds = SERVED if self._is_closing else draw((SERVED, SERVED, SERVED[:2], SERVED[2:]))
        concurrency, lease = draw((1, 2, 4)), draw((3, 10, 10))
        link = self._link(
            "worker", kinds=kinds, queues=queues, concurrency=concurrency, lease=lease
        )
        link.is_deaf = self.chance.random() < 0.2
        grace = draw((0.0, 2.0, 10.0))
        context = copy_context()
        context.run(PLAY.set, Play(self.seed, link, self.ledger, lambda: self._is_closing))
        worker = context.run(
            Worker,
            Queue(link),
            [HANDLERS[kind] for kind in kinds],
            concurrency=concurrency,
            queues=queues,
            lease=lease,
            grace=grace,
            name=link.host.name,
        )
        staff = Staff(link.host, link, worker, grace)
        staff.task = self.loop.create_task(worker.run(), context=context)
        self._staff.append(staff)
        self.trace.say(link.host.name, f"begins: {link.host}")

    async def _live(self) -> None:
        until = self.loop.time() + self.weather.seconds
        acting = [self._produce() for _ in range(self.weather.producers)]
        if self.weather.blows:
            acting.append(self._repeat(self._blow, self.weather.blows, until))
        if self.weather.meddling:
            queue = Queue(self._link("person"))
            acting.append(self._repeat(lambda: self._meddle(queue), self.weather.meddling, until))
        await asyncio.gather(*acting)

    async def _repeat(self, act: Callable[[], Awaitable[None]], every: float, until: float) -> None:
        while self.loop.time() < until:
            await asyncio.sleep(self.chance.uniform(0, 2 * every))
            await act()

    async def _watch(self) -> None:
        """Look at how things are, from time to time."""
        while True:
            self._live_jobs = await self._queue.list(state=sorted(LIVE), limit=1000)
            self.ledger.look([one.host for one in self._staff], self._live_jobs)
            await asyncio.sleep(LOOK_SECONDS)

    # What they do

    async def _produce(self) -> None:
        link = self._link("producer")
        queue = Queue(link)
        history = History(self.entries, link.host.name, self.loop.time)
        seconds, count = self.weather.seconds, self.weather.jobs
        if self.weather.is_rush:
            seconds, count = RUSH_SECONDS, RUSH_JOBS
        pause = seconds / count
        for number in range(count):
            jobs = [
                self._job(f"{link.host.name}/{number}.{one}")
                for one in range(self.chance.choice((1, 1, 1, 5)))
            ]
            for job in jobs:
                history.write("offered", job.id or "")
            try:
                stored = await queue.enqueue_many(jobs)
            except StoreUnavailable:
                stored = []
            for one in stored:
                history.write("enqueued", one.id)
                self._jobs.append(one.id)
            await asyncio.sleep(self.chance.uniform(0, 2 * pause))

    def _job(self, name: str) -> NewJob:
        draw = self.chance.choice
        keys = draw(((), (), ("host:a",), ("host:b",)))
        kind = draw((*SERVED, *SERVED[:3], UNSERVED))
        if self.weather.is_rush and self.chance.random() < 0.5:
            kind = SERVED[0]
        return NewJob(
            kind,
            name,
            id=new_id(),
            queue=draw(QUEUES),
            limits=keys,
            delay=draw((None, None, None, 2, 7)),
            priority=draw((1, 5)),
            max_attempts=self.chance.randint(1, 3),
            max_crashes=draw((2, 9, 9)),
            lease=draw((None, None, None, 1, 8)),
        )

    async def _blow(self) -> None:
        """Something happens to a worker, and another one begins if it is gone."""
        if not self._staff:
            self._hire()
            return
        staff = self.chance.choice(self._staff)
        match self.chance.choice(("kill", "kill", "stop", "cut", "slow")):
            case "kill":
                self.trace.say(staff.host.name, "is killed")
                self.counts["killed"] += 1
                self._staff.remove(staff)
                self._killed.append(staff)
                await staff.link.kill()
            case "stop":
                await self._stop(staff)
            case blow:
                seconds = self.chance.uniform(0.5, 15)
                self.trace.say(staff.host.name, f"is {blow} for {seconds:.1f} s")
                self.counts[blow] += 1
                staff.link.cut(seconds, is_slow=blow == "slow")
                return
        if self.chance.random() < 0.8:
            self._hire()

    async def _stop(self, staff: Staff) -> None:
        """Ask a worker to stop; it has to, whatever its handlers do."""
        self.trace.say(staff.host.name, "is asked to stop")
        self.counts["stopped"] += 1
        staff.host.is_leaving = True
        staff.worker.stop()
        wait = staff.grace + 4 * STOP_SECONDS + max(0.0, staff.link.cut_until - self.loop.time())
        done, _ = await asyncio.wait([staff.task], timeout=wait)
        name = staff.host.name
        if not done:
            self._wrong("workers_stop", f"{name} was asked to stop {wait:g} s ago and goes on")
        elif error := staff.task.exception():
            self._wrong("workers_stop", f"{name} ended with {error!r}")
        if staff in self._staff:
            self._staff.remove(staff)

    async def _meddle(self, queue: Queue) -> None:
        """A person with a console. What is not answered may have happened or not."""
        ledger, name = self.ledger, self.chance.choice(QUEUES)
        job = self.chance.choice(self._jobs) if self._jobs else None
        act = self.chance.choice(("cancel", "cancel", "job", "pause", "resume", "limit"))
        self.counts[act] += 1
        match act:
            case "cancel" if job is not None:
                if await tried(partial(queue.cancel, job)) is not None:
                    self._note_stopped(job, "cancelled")
            case "job" if job is not None and job in ledger.stopped:
                if ledger.stopped.pop(job) >= 0:
                    await tried(partial(queue.resume_job, job))
            case "job" if job is not None:
                if await tried(partial(queue.pause_job, job)) is not None:
                    self._note_stopped(job, "paused")
            case "pause":
                ledger.unsure.add(name)
                if await self._is_answered(queue.pause(name)):
                    ledger.paused.add(name)
                    ledger.unsure.discard(name)
            case "resume":
                ledger.paused.discard(name)
                ledger.unsure.add(name)
                if await self._is_answered(queue.resume(name)):
                    ledger.unsure.discard(name)
            case "limit":
                key, most = self.chance.choice(list(LIMITS.items()))
                ledger.limits.pop(key, None)
                active = self.chance.randint(1, most)
                if await self._is_answered(queue.set_limit(key, active=active)):
                    ledger.limits[key] = active

    def _note_stopped(self, job: str, how: str) -> None:
        self.trace.say("the ledger", f"{how}: {job}")
        self.ledger.stopped[job] = self.loop.time()

    async def _is_answered(self, call: Awaitable[None]) -> bool:
        try:
            await call
        except StoreUnavailable:
            return False
        return True

    # The end

    async def _close(self) -> None:
        """Nothing goes wrong any more, and everything that waits for a person gets it."""
        self._is_closing = True
        for link in self._links:
            link.heal()
        self._hire()
        self.ledger.paused.clear()
        self.ledger.stopped = {
            job: at for job, at in self.ledger.stopped.items() if await self._is_cancelled(job)
        }
        for name in QUEUES:
            await self._queue.resume(name)
        for job in await self._queue.list(state=JobState.PAUSED, limit=1000):
            await self._queue.resume_job(job.id)
        until = self.loop.time() + CLOSING_SECONDS
        await asyncio.sleep(LOOK_SECONDS)
        while left := [job for job in self._live_jobs if job.kind != UNSERVED]:
            for job in left:
                if job.state is JobState.PAUSED:  # a run that ended as it had been asked to
                    await self._queue.resume_job(job.id)
            if self.loop.time() > until:
                words = ", ".join(f"{one.id} of {one.kind} is {one.state}" for one in left)
                self._wrong("all_jobs_end", f"after {CLOSING_SECONDS:g} s without faults {words}")
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _is_cancelled(self, job_id: str) -> bool:
        job = await self._queue.get(job_id)
        return job.state is JobState.CANCELLED or job.stop_as is JobState.CANCELLED

    async def _dismiss(self) -> None:
        await asyncio.gather(*(self._stop(staff) for staff in list(self._staff)))
        for job in self._live_jobs:
            if job.kind == UNSERVED:
                await self._queue.cancel(job.id)

    async def _write_finals(self) -> None:
        rows = Counter(
            found["job"] for found in await self._queue.store.fetch_rows(f"SELECT job FROM {ROWS}")
        )
        history = History(self.entries, "judge", self.loop.time)
        jobs = await self._queue.list(limit=10_000)
        for job in jobs:
            if job.state in FINAL:
                history.final(job, rows=rows[job.id])
            self.counts["runs"] += job.runs
        self.counts["jobs"] = len(jobs)

    def _wrong(self, promise: str, words: str) -> None:
        self.ledger.wrong.append(Violation(promise, "", words))


class _NoWatchdog:
    """It looks at real time, from a thread."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


@contextmanager
def simulated_surroundings(seed: int, parts: Parts) -> Iterator[None]:
    """What workers do by chance goes by the seed; `parts` of them are put in place of theirs."""
    before = random.getstate()
    random.seed(seed)
    tokens = SimpleNamespace(token_urlsafe=partial(_next_token, count()))
    with ExitStack() as stack:
        for name, part in {"Watchdog": _NoWatchdog, **parts}.items():
            stack.enter_context(patch(f"windrow.worker.worker.{name}", part))
        stack.enter_context(patch("windrow.queue.sqlite.claiming.secrets", tokens))
        stack.enter_context(patch("windrow.queue.heads.LISTING_SECONDS", LISTING_SECONDS))
        try:
            yield
        finally:
            random.setstate(before)


def simulate_workers(
    store: Any,
    loop: SimulatedLoop,
    seed: int,
    *,
    wrap: Wrap | None = None,
    parts: Parts | None = None,
    trace: bool = False,
    closes: bool = False,
) -> Report:
    """Run a seed to its end on a store that has the clock of the loop; `closes`: and close it."""
    with simulated_surroundings(seed, parts or {}):
        simulation = WorkerSimulation(store, loop, seed, wrap=wrap, trace=trace)
        try:
            return run_simulated(loop, simulation.run(), store.close if closes else None)
        except Standstill as error:
            violations = [*simulation.ledger.wrong, Violation("runs_end", "", str(error))]
            return Report(seed, violations, simulation.entries, simulation.trace)
