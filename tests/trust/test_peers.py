"""The same faults for Windrow and for two other queues on Postgres; what became of the jobs."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.postgres_server import TEST_SETTINGS, PostgresServer, create_database
from tests.trust.harness import Crew, Member
from tests.trust.history import Entry
from tests.trust.peers import CONTESTANTS, STALE_SECONDS, Contestant
from tests.trust.proxy import Proxy
from tests.trust.scorecard import OURS, record
from tests.trust.test_postgres_faults import END_ALL, execute, netloc_of, set_read_only

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

JOBS = 2000
BATCH = 100
WORKERS = 2
# Nothing has been done for so long: what is left is stuck.
STUCK_SECONDS = 12.0
FAULTS = {
    "kill": 10,
    "restart": 3,
    "terminate": 8,
    "stop": 3,
    "cut": 8,
    "silent": 3,
    "read-only": 3,
}
WORDS = {
    "kill": "kill -9 of workers",
    "restart": "Postgres stopped at once and started again",
    "terminate": "all sessions terminated",
    "stop": "SIGSTOP for longer than the lease",
    "cut": "connections cut by a proxy",
    "silent": "no message passed on for longer than the lease",
    "read-only": "read-only for a second",
}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    started = PostgresServer(settings={**TEST_SETTINGS, "synchronous_commit": "on"})
    started.start()
    yield started
    started.stop()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("contestant", CONTESTANTS, ids=lambda one: one.name)
async def test_what_becomes_of_jobs_when(
    contestant: Contestant, fault: str, server: PostgresServer, tmp_path: Path
) -> None:
    for package in contestant.packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: `make chaos` installs it")
    url = create_database(server.url())
    await contestant.setup(url)
    async with Proxy("127.0.0.1", server.port) as proxy:
        if fault in ("cut", "silent"):
            contestant = through(proxy, contestant, url)
        await contest(contestant, fault, url, tmp_path, Strikes(server, proxy))


def through(proxy: Proxy, contestant: Contestant, url: str) -> Contestant:
    """The same with workers that do not know that there is a proxy."""
    there = urlunsplit(urlsplit(url)._replace(netloc=netloc_of(url, proxy.port)))
    return replace(contestant, options={**contestant.options, "url": there})


async def contest(
    contestant: Contestant, fault: str, url: str, folder: Path, strikes: Strikes
) -> None:
    with Crew(url, folder) as crew:
        for first in range(0, JOBS, BATCH):
            for job in await contestant.enqueue(url, range(first, first + BATCH)):
                crew.history.write("enqueued", job)
        workers = [crew.start(contestant.program, **contestant.options) for _ in range(WORKERS)]
        recovery: list[float | None] = []
        taken: list[tuple[str, float]] = []
        for number in range(1, FAULTS[fault] + 1):
            await until_done(crew, number * JOBS // (FAULTS[fault] + 2))
            if fault in ("kill", "stop"):
                taken.append(await take_out(crew, contestant, fault, workers))
            else:
                recovery.append(await strikes.strike(crew, contestant, fault))
        stuck = await until_over(crew, contestant, url)
        recovery += [done_by_others(crew.entries, by, at) for by, at in taken]
    done = Counter(entry.job for entry in crew.entries if entry.what == "effect")
    lost = max(0, JOBS - len(done) - stuck)
    repeated = sum(times > 1 for times in done.values())
    release = "" if contestant.name == OURS else f"{version(contestant.packages[0])}; "
    record(
        "at_least_once",
        WORDS[fault],
        store="postgres",
        jobs=JOBS,
        faults=FAULTS[fault],
        lost=lost,
        doubled=repeated,
        stuck=stuck,
        recovery=[seconds for seconds in recovery if seconds is not None],
        note=f"{release}{contestant.configuration}",
        system=contestant.name,
        beside=True,
    )
    if contestant.name == OURS:
        assert (lost, stuck) == (0, 0)


async def take_out(
    crew: Crew, contestant: Contestant, fault: str, workers: list[Member]
) -> tuple[str, float]:
    """Kill a worker, or stop it for a while; which, and when."""
    victim = workers.pop(0)
    at = time.monotonic()
    if fault == "kill":
        crew.kill(victim)
        workers.append(crew.start(contestant.program, **contestant.options))
    else:
        victim.signal(signal.SIGSTOP)
        await asyncio.sleep(STALE_SECONDS + 2)
        victim.signal(signal.SIGCONT)
        workers.append(victim)
    return victim.by, at


@dataclass(frozen=True)
class Strikes:
    """What is done to the server, or on the way to it."""

    server: PostgresServer
    proxy: Proxy

    async def strike(self, crew: Crew, contestant: Contestant, fault: str) -> float | None:
        """How long it took to the next job done, from when the server answers."""
        await self._do(fault)
        over = time.monotonic()
        after = await next_effect(crew, contestant, over)
        return None if after is None else after - over

    async def _do(self, fault: str) -> None:
        match fault:
            case "restart":
                self.server.halt(signal.SIGQUIT)
                self.server.resume()
            case "cut":
                self.proxy.cut()
            case "silent":
                self.proxy.stall(True)
                await asyncio.sleep(STALE_SECONDS + 1)
                self.proxy.stall(False)
            case "read-only":
                await set_read_only(self.server.url(), "on")
                await asyncio.sleep(1)
                await set_read_only(self.server.url(), "off")
            case _:
                await execute(self.server.url(), END_ALL)


def done_by_others(entries: Sequence[Entry], by: str, at: float) -> float | None:
    """Seconds until others had done what somebody had begun and not ended then."""
    begun = open_runs(entries, by, at)
    done = [
        entry.at
        for entry in entries
        if entry.what == "effect" and entry.job in begun and entry.by != by and entry.at > at
    ]
    return max(done) - at if done else None


def open_runs(entries: Sequence[Entry], by: str, at: float) -> set[str]:
    begun: set[str] = set()
    for entry in entries:
        if entry.by == by and entry.at <= at:
            if entry.what == "started":
                begun.add(entry.job)
            elif entry.what == "effect":
                begun.discard(entry.job)
    return begun


async def next_effect(crew: Crew, contestant: Contestant, since: float) -> float | None:
    """When the next handler that began after a time came to its end; None: it did not."""
    deadline = time.monotonic() + STUCK_SECONDS

    def found() -> float | None:
        crew.look()
        begun: set[tuple[str, str]] = set()
        for entry in crew.entries:
            if entry.what == "started" and entry.at > since:
                begun.add((entry.by, entry.job))
            elif entry.what == "effect" and (entry.by, entry.job) in begun:
                return entry.at
        return None

    def look() -> bool:
        crew.replace_the_dead(contestant.program, **contestant.options)
        return found() is not None or time.monotonic() > deadline

    await crew.until(look)
    return found()


async def until_done(crew: Crew, wanted: int) -> None:
    deadline = time.monotonic() + STUCK_SECONDS
    await crew.until(lambda: crew.effects >= wanted or time.monotonic() > deadline)


async def until_over(crew: Crew, contestant: Contestant, url: str) -> int:
    """Wait until nothing is left, or nothing happens any more; how many are left. Workers that have
    ended are started again, as whoever runs them would."""
    seen, since = crew.effects, time.monotonic()
    while left := await contestant.left(url):
        crew.replace_the_dead(contestant.program, **contestant.options)
        if crew.effects > seen:
            seen, since = crew.effects, time.monotonic()
        if time.monotonic() - since > STUCK_SECONDS:
            return left
        await asyncio.sleep(0.1)
    crew.look()
    return 0
