"""Seeing jobs of Windrow's own kinds through, for somebody who waits: work in this process if
nobody else does, say how far it is, and leave when told to. What is left goes on where it was, by
whoever works next.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from windrow.errors import JobNotFound, StoreError
from windrow.pipelines.calls.payloads import EXTRACT
from windrow.pipelines.calls.payloads import QUEUE as CALLS_QUEUE
from windrow.pipelines.index.payloads import QUEUE as INDEX_QUEUE
from windrow.pipelines.index.payloads import WRITE
from windrow.pipelines.knowledge.items import FILE
from windrow.pipelines.knowledge.items import QUEUE as KNOWLEDGE_QUEUE
from windrow.pipelines.video.payloads import SCRAPE_QUEUE, SCRAPE_VIDEO
from windrow.pipelines.web.payloads import FINISH, QUEUE, SCRAPE, SCRAPE_ROW
from windrow.queue.job import Job, JobState
from windrow.queue.queue import Queue, default_worker
from windrow.queue.records import WorkerInfo
from windrow.services.handler_modules import installed_handlers
from windrow.services.jobs import open_queue
from windrow.services.web import Crawl, get_crawl
from windrow.services.working import open_own_handlers
from windrow.settings import Settings
from windrow.worker.worker import Worker

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.2
WORKERS_SECONDS: Final = 2.0  # between two looks for others who work
RATE_SECONDS: Final = 10.0  # what the rate is an average of
MAX_HELD_JOBS: Final = 100  # active jobs that are looked at for a dead worker's lease
LAST_SECONDS: Final = 5.0  # for what follows the end of a crawl
GRACE_SECONDS: Final = 10.0

# By what one sees that a worker takes jobs of a kind of Windrow's own: its queue, one of its kinds.
TAKEN: Final = {
    "web": (QUEUE, SCRAPE),
    "nuq": (SCRAPE_ROW, SCRAPE_ROW),
    "knowledge": (KNOWLEDGE_QUEUE, FILE),
    "video": (SCRAPE_QUEUE, SCRAPE_VIDEO),
    "calls": (CALLS_QUEUE, EXTRACT),
    "index": (INDEX_QUEUE, WRITE),
}


class Interrupted(Exception):
    """The person who waits does not want to any longer."""


@dataclass(slots=True)
class Attendance:
    """A queue whose jobs are worked on while it is open."""

    queue: Queue
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    helping: asyncio.Task[None] | None = None

    async def wait(self, job_id: str) -> Job:
        """A job that has ended. Raises Interrupted."""
        while not (job := await self.queue.get(job_id)).is_finished:
            await self.pause()
        return job

    async def watch(self, crawl_id: str) -> AsyncIterator[Crawl]:
        """How far a crawl or batch is, now and again, until it has ended. Raises Interrupted."""
        while (crawl := await get_crawl(self.queue, crawl_id)).status == "scraping":
            yield crawl
            await self.pause()
        yield crawl

    async def pause(self) -> None:
        """Wait a moment before the next look. Raises Interrupted."""
        if self.helping is not None and self.helping.done():
            self.helping.result()  # raises what it died of
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self.interrupted.wait()
        except TimeoutError:
            return
        raise Interrupted


class Pace:
    """How fast a crawl goes, by the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, at: float, ended: int) -> None:
        """So many pages had ended at a moment, in seconds."""
        self._seen.append((at, ended))
        while len(self._seen) > 2 and at - self._seen[0][0] > RATE_SECONDS:
            self._seen.popleft()

    @property
    def rate(self) -> float:
        """Pages per second."""
        (began_at, before), (at, after) = self._seen[0], self._seen[-1]
        return (after - before) / (at - began_at) if at > began_at else 0.0

    def seconds_left(self, pending: int) -> float | None:
        """Until all that is known is done, at this pace; None if that cannot be said."""
        return pending / self.rate if self.rate > 0 else None


@asynccontextmanager
async def attend(
    settings: Settings,
    *,
    concurrency: int = 10,
    own: Sequence[str] = ("web",),
    log_runs: bool = False,
) -> AsyncIterator[Attendance]:
    """The queue of the settings. Unless another worker takes jobs of these kinds of Windrow's own,
    one does here, until the end: after an interruption it lets what runs end, after a second one it
    does not. With `log_runs` its runs are logged; most commands report what comes of them."""
    async with open_queue(settings, migrate=None) as queue:
        attendance = Attendance(queue)
        helper = Helper(settings, queue, concurrency, own, log_runs=log_runs)
        with _told(attendance, helper):
            attendance.helping = asyncio.create_task(helper.run())
            leases = asyncio.create_task(LeaseNotice(queue, own).run())
            try:
                yield attendance
                await helper.let_end()
            finally:
                leases.cancel()
                if not attendance.interrupted.is_set():
                    helper.stop()
                await attendance.helping
                await asyncio.wait([leases])


@asynccontextmanager
async def helping(
    settings: Settings,
    queue: Queue,
    own: Sequence[str],
    concurrency: int = 10,
    died: Callable[[], None] = lambda: None,
) -> AsyncIterator[Helper]:
    """A worker for a queue that is open already, where no other takes such jobs, until the end.
    `died` is called if it ends with an error, which is raised at the end."""
    helper = Helper(settings, queue, concurrency, own)
    task = asyncio.create_task(helper.run(), name="windrow worker")
    task.add_done_callback(
        lambda task: died() if not task.cancelled() and task.exception() else None
    )
    try:
        yield helper
    finally:
        if not helper.is_stopping:
            helper.stop()
        await task


class Helper:
    """A worker that begins when there is no other."""

    def __init__(
        self,
        settings: Settings,
        queue: Queue,
        concurrency: int,
        own: Sequence[str],
        *,
        log_runs: bool = True,
    ) -> None:
        self._settings = settings
        self._log_runs = log_runs
        self._own = own
        self._queue = queue
        self._concurrency = concurrency
        self._stopping = asyncio.Event()
        self._worker: Worker | None = None

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    async def run(self) -> None:
        while await self._others_work():
            try:
                async with asyncio.timeout(WORKERS_SECONDS):
                    await self._stopping.wait()
            except TimeoutError:
                continue
            return
        async with AsyncExitStack() as stack:
            handlers = await stack.enter_async_context(
                open_own_handlers(self._settings, self._queue, installed_handlers(self._own))
            )
            self._worker = Worker(
                self._queue,
                handlers,
                queues=sorted({one.queue for one in handlers}),
                concurrency=self._concurrency,
                grace=GRACE_SECONDS,
                announce=False,
                log_runs=self._log_runs,
            )
            if not self._stopping.is_set():
                await self._worker.run()

    def stop(self) -> None:
        """Claim nothing more; told twice, hand back what runs."""
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop()

    def stop_by_signal(self) -> None:
        """The same, and log what still runs."""
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop_by_signal()

    async def let_end(self) -> None:
        """What follows the end of a crawl is a job too: leave it to nobody."""
        if self._worker is None:
            return
        waiting = (JobState.READY, JobState.ACTIVE)
        try:
            async with asyncio.timeout(LAST_SECONDS):
                for job in await self._queue.list(kind=FINISH, queue=QUEUE, state=waiting):
                    await self._queue.wait(job.id)
        except (TimeoutError, JobNotFound):
            return  # another worker will do it, or has

    async def _others_work(self) -> bool:
        workers = await self._queue.workers()
        alive = [one for one in workers if _may_live(one)]
        return all(any(one.takes(*TAKEN[own]) for one in alive) for own in self._own)


class LeaseNotice:
    """Says which jobs wait for the lease of a dead worker to expire, and until when: nobody can run
    them before that. Said once for each worker and expiry."""

    def __init__(self, queue: Queue, own: Sequence[str]) -> None:
        self._queue = queue
        self._queues = sorted({TAKEN[name][0] for name in own})
        self._reported: set[tuple[str, datetime]] = set()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.report()
            except StoreError as error:
                logger.debug("looking for leases of dead workers: %s", error)
            await asyncio.sleep(WORKERS_SECONDS)

    async def report(self) -> None:
        for worker, jobs in (await self._left_behind()).items():
            until = max(job.lease_expires_at for job in jobs if job.lease_expires_at)
            if (worker, until) in self._reported:
                continue
            self._reported.add((worker, until))
            more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
            logger.warning(
                "waiting for job %s (%s)%s: worker %s is gone and its lease lasts until %s UTC",
                *(jobs[0].id, jobs[0].kind, more, worker, f"{until:%H:%M:%S}"),
            )

    async def _left_behind(self) -> dict[str, list[Job]]:
        """Active jobs by the dead worker that holds their unexpired lease."""
        alive = {one.name for one in await self._queue.workers() if _may_live(one)}
        alive.add(default_worker())
        held: defaultdict[str, list[Job]] = defaultdict(list)
        for queue in self._queues:
            for job in await self._queue.list(
                queue=queue, state=JobState.ACTIVE, limit=MAX_HELD_JOBS
            ):
                if job.worker is None or job.worker in alive or job.lease_expires_at is None:
                    continue
                if job.lease_expires_at > datetime.now(UTC):
                    held[job.worker].append(job)
        return held


def _may_live(worker: WorkerInfo) -> bool:
    """One that was killed is believed alive for a while; of our own machine we know better."""
    if worker.host != socket.gethostname():
        return True
    try:
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    return True


@contextmanager
def _told(attendance: Attendance, helper: Helper) -> Iterator[None]:
    """A signal is an interruption, instead of an exception wherever we are."""

    def interrupt() -> None:
        attendance.interrupted.set()
        helper.stop()

    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
