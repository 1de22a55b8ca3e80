"""What the demo shows, step by step, and what came of it."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from windrow.queue.job import Job, JobState, NewJob
from windrow.queue.queue import Queue
from windrow.search.request import Found, SearchRequest
from windrow.services.attending import Interrupted
from windrow.services.demo.jobs import BALE, MODULE, QUEUE
from windrow.services.demo.stack import HANDBOOK, DemoFailed, Stack, serving_site
from windrow.services.jobs import open_queue
from windrow.services.knowledge import AddOptions, SourceInfo
from windrow.services.knowledge_runs import AddRun, run_add, why_failed
from windrow.services.searching import search
from windrow.settings import Settings

NOTE: Final = (
    "The baler of the north field is being repaired until Thursday. Ask for the spare one at the "
    "gate; its key hangs behind the door."
)
QUERIES: Final = (
    "what happens to a job when its worker is killed",
    "wie oft wird die Kaffeemaschine entkalkt",
    "where is the key of the spare baler",
)
BALES: Final = 24
AT_ONCE: Final = 6
LEASE: Final = "2s"
LOOK_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Killed:
    """A worker was killed: where its jobs were then, and where they are at the end."""

    pid: int
    before: Mapping[JobState, int]
    after: Mapping[JobState, int]
    crashes: int

    @property
    def lost(self) -> int:
        return BALES - self.after.get(JobState.COMPLETED, 0)


@dataclass(slots=True)
class Seen:
    address: str
    sources: list[SourceInfo] = field(default_factory=list)
    searches: dict[str, Sequence[Found]] = field(default_factory=dict)
    killed: Killed | None = None


class Audience(Protocol):
    """Who is shown the demo; what is printed is up to it."""

    def begin(self, step: str) -> None:
        """The next thing begins."""

    def began(self, address: str) -> None:
        """The server answers there."""

    def progress(self, words: str) -> None:
        """How far it is."""

    def added(self, done: AddRun) -> None:
        """Something can be found now."""

    def found(self, query: str, results: Sequence[Found]) -> None:
        """What a search found."""

    def killed(self, killed: Killed) -> None:
        """What became of the jobs of a worker that was killed."""


@asynccontextmanager
async def tour(
    folder: Path, database: str | None, port: int, audience: Audience
) -> AsyncIterator[Seen]:
    """Show everything once, then leave the server running until the block ends. Raises
    Interrupted."""
    with serving_site() as site:
        settings = Settings(
            database_url=database or f"sqlite:///{folder / 'windrow.db'}",
            data_dir=str(folder / "data"),
            allow_hosts="127.0.0.1",
        )
        stack = Stack(settings, folder)
        audience.begin("Start the server, with a worker in it")
        async with stack.serving(port) as address:
            seen = Seen(address)
            audience.began(address)
            await _add_everything(settings, folder, site, seen, audience)
            await _search(settings, seen, audience)
            seen.killed = await _kill_a_worker(stack, audience)
            yield seen


async def _add_everything(
    settings: Settings, folder: Path, site: str, seen: Seen, audience: Audience
) -> None:
    handbook = folder / "handbook"
    await asyncio.to_thread(shutil.copytree, HANDBOOK, handbook)
    steps: list[tuple[str, str, AddOptions, str | None]] = [
        (f"Crawl a site: {site}", site, AddOptions(title="Field guide"), None),
        (f"Read a folder: {handbook}", str(handbook), AddOptions(), None),
        ("Keep a note", "-", AddOptions(title="The spare baler"), NOTE),
    ]
    for step, what, options, text in steps:
        audience.begin(step)
        done = await run_add(
            settings, what, options, lambda info: audience.progress(progress_of(info)), text=text
        )
        if done.is_interrupted:
            raise Interrupted
        if (why := why_failed(done)) is not None:
            raise DemoFailed(f"{what}: {why}")
        seen.sources.append(done.info)
        audience.added(done)


def progress_of(info: SourceInfo) -> str:
    waiting = f", {info.pending} waiting for the index" if info.pending else ""
    return f"{info.documents} documents{waiting}"


async def _search(settings: Settings, seen: Seen, audience: Audience) -> None:
    for query in QUERIES:
        audience.begin(f"Search: {query}")
        answer = await search(settings, SearchRequest(query=query, limit=3))
        seen.searches[query] = answer.results
        audience.found(query, answer.results)


async def _kill_a_worker(stack: Stack, audience: Audience) -> Killed:
    arguments = [MODULE, "--queues", QUEUE, "--concurrency", str(AT_ONCE), "--lease", LEASE]
    async with open_queue(stack.settings) as queue:
        new = [NewJob(BALE, {"number": number}, queue=QUEUE) for number in range(1, BALES + 1)]
        ids = [job.id for job in await queue.enqueue_many(new)]
        audience.begin(f"Kill a worker (-9) in the middle of {BALES} jobs")
        async with stack.working("first", *arguments) as process:
            await _until(queue, ids, audience, _is_in_the_middle)
            process.kill()
            await process.wait()
            before = _states(await _read(queue, ids))
        audience.begin("Start another one: the dead worker's leases run out, its jobs run again")
        async with stack.working("second", *arguments):
            ended = await _until(queue, ids, audience, _have_ended)
    crashes = sum(job.crashes for job in ended)
    killed = Killed(process.pid, before, _states(ended), crashes)
    audience.killed(killed)
    return killed


async def _until(
    queue: Queue, ids: Sequence[str], audience: Audience, is_so: Callable[[Sequence[Job]], bool]
) -> Sequence[Job]:
    """The jobs once they are so. Raises DemoFailed."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_so(jobs := await _read(queue, ids)):
                audience.progress(describe(_states(jobs)))
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise DemoFailed(f"nothing moves any more: {describe(_states(jobs))}") from None
    return jobs


async def _read(queue: Queue, ids: Sequence[str]) -> Sequence[Job]:
    return [*(await queue.get_many(ids)).values()]


def _have_ended(jobs: Sequence[Job]) -> bool:
    return all(job.is_finished for job in jobs)


def _is_in_the_middle(jobs: Sequence[Job]) -> bool:
    states = _states(jobs)
    return states[JobState.COMPLETED] > 0 and states[JobState.ACTIVE] > 0


def _states(jobs: Sequence[Job]) -> Counter[JobState]:
    return Counter(job.state for job in jobs)


def describe(states: Mapping[JobState, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()) if count)
