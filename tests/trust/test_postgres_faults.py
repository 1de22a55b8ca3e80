"""What Postgres does to those who use it: it dies, throws them out, refuses, fills up."""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import psycopg
import pytest

from tests.postgres_server import TEST_SETTINGS, PostgresServer, create_database
from tests.trust.disks import Disk, small_disk
from tests.trust.harness import Crew, Verdict
from tests.trust.proxy import Proxy
from windrow import Queue

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

WORKERS = 2
PAUSE = 0.05  # seconds between two batches of a producer, so that there is always work
LEASE = 2
QUARTER = 3000
END_ALL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


HOG = "hog"
END_WORKERS = f"{END_ALL} AND application_name <> '{HOG}'"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of these tests' own; what was committed outlives a crash."""
    started = PostgresServer(settings={**TEST_SETTINGS, "synchronous_commit": "on"})
    started.start()
    yield started
    started.stop()


@pytest.fixture
async def url(server: PostgresServer) -> str:
    made = create_database(server.url())
    async with Queue.open(made, migrate=True):
        return made


@dataclass
class Storm:
    """A producer and workers on one database, while things are done to it."""

    crew: Crew
    recovery: list[float] = field(default_factory=list)
    faults: int = 0

    async def strike(self, after: int, fault: Callable[[], Awaitable[float | None]]) -> None:
        """Do something when so many more jobs are done, and see how long it took to the next one.
        Those count that were done after it was over, or after the time it returns."""
        before = self.crew.done
        await self.crew.until(lambda: self.crew.done >= before + after)
        struck_at = time.monotonic()
        from_then_on = await fault() or time.monotonic()
        self.faults += 1
        waited = await self.crew.next_done(from_then_on)
        self.recovery.append(from_then_on - struck_at + waited)


async def weather(
    url: str,
    folder: Path,
    strikes: Callable[[Storm], Awaitable[None]],
    *,
    through: str | None = None,
) -> tuple[Storm, Verdict]:
    """Enqueue and work on jobs for as long as it strikes; the storm, and the verdict."""
    with Crew(url, folder) as crew:
        crew.make_rows()
        producer = crew.start("produce", url=through, kinds=("work", "write"), pause=PAUSE)
        for _ in range(WORKERS):
            crew.start(url=through, lease=LEASE, seconds=0.01)
        storm = Storm(crew)
        await strikes(storm)
        await crew.dismiss(producer)
        await crew.until_drained()
        await crew.stop()
        return storm, await crew.conclude()


def keep(storm: Storm, verdict: Verdict, promise: str, fault: str, note: str = "") -> None:
    verdict.keep(
        promise, fault, store="postgres", faults=storm.faults, recovery=storm.recovery, note=note
    )


@pytest.mark.parametrize("how", ["kill -9", "immediate"])
async def test_the_server_dies_and_comes_back(
    server: PostgresServer, url: str, tmp_path: Path, how: str
) -> None:
    async def die() -> float:
        if how == "kill -9":
            kill_all_of(server)
        else:
            server.halt(signal.SIGQUIT)
        dead_at = time.monotonic()
        server.resume()  # in this thread: the server ends with the one that started it
        return dead_at

    async def strikes(storm: Storm) -> None:
        for _ in range(5):
            await storm.strike(200, die)

    storm, verdict = await weather(url, tmp_path, strikes)
    words = {"kill -9": "Postgres killed with -9", "immediate": "Postgres stopped at once"}[how]
    keep(storm, verdict, "durable", words, "recovery: with the start of the server")


def kill_all_of(server: PostgresServer) -> None:
    """`kill -9` of the server and of everything it has started, as when a machine goes down."""
    assert server.pid is not None
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    for pid in (server.pid, *map(int, children)):
        os.kill(pid, signal.SIGKILL)
    server.halt(signal.SIGKILL)


async def test_sessions_are_terminated_again_and_again(url: str, tmp_path: Path) -> None:
    async def end_all() -> None:
        await execute(url, END_ALL)

    async def strikes(storm: Storm) -> None:
        for _ in range(20):
            await storm.strike(80, end_all)

    storm, verdict = await weather(url, tmp_path, strikes)
    keep(storm, verdict, "at_least_once", "all sessions terminated", "pg_terminate_backend")


@pytest.mark.parametrize("how", ["cut", "halved", "late", "silent"])
async def test_connections_are_cut_halved_late_or_silent(
    server: PostgresServer, url: str, tmp_path: Path, how: str
) -> None:
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Proxy("127.0.0.1", server.port))
        through = urlunsplit(urlsplit(url)._replace(netloc=netloc_of(url, proxy.port)))

        async def fail() -> None:
            match how:
                case "cut":
                    proxy.cut()
                case "halved":
                    proxy.halve()
                case "late":
                    proxy.delay = 0.5
                    await asyncio.sleep(1.5)
                    proxy.delay = 0.0
                case "silent":
                    proxy.stall(True)
                    await asyncio.sleep(LEASE + 1)
                    proxy.stall(False)

        async def strikes(storm: Storm) -> None:
            for _ in range({"cut": 20, "halved": 20}.get(how, 3)):
                await storm.strike(60, fail)

        storm, verdict = await weather(url, tmp_path, strikes, through=through)
    words, note = {
        "cut": ("connections cut by a proxy", "all at once"),
        "halved": ("connections cut in the middle of a message", "one at a time; others go on"),
        "late": ("every message half a second late", "for 1.5 s each"),
        "silent": ("no message passed on for longer than a lease", f"for {LEASE + 1} s each"),
    }[how]
    keep(storm, verdict, "at_least_once", words, note)


def netloc_of(url: str, port: int) -> str:
    parts = urlsplit(url)
    return f"{parts.username}:{parts.password}@127.0.0.1:{port}"


async def test_others_take_every_connection(url: str, tmp_path: Path) -> None:
    """Somebody else has all there are, those of the workers, which are ended, included."""
    lasted = []

    async def strikes(storm: Storm) -> None:
        limit = int((await execute(url, "SHOW max_connections"))[0][0])
        for _ in range(3):
            hogs = await connect_as_often(url, limit)

            async def take_the_rest(hogs: list[Any] = hogs) -> None:
                began = time.monotonic()
                await hogs[0].execute(END_WORKERS)
                hogs += await connect_as_often(url, 50)
                await asyncio.sleep(1)
                for hog in hogs:
                    hog.terminate()
                lasted.append(time.monotonic() - began)

            await storm.strike(100, take_the_rest)

    storm, verdict = await weather(url, tmp_path, strikes)
    note = f"for {statistics.median(lasted):.1f} s each, by other sessions"
    keep(storm, verdict, "at_least_once", "no connection left", note)


async def connect_as_often(url: str, times: int) -> list[Any]:
    """As many connections as there are, of so many asked for."""
    asked = (asyncpg.connect(url, server_settings={"application_name": HOG}) for _ in range(times))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    return [one for one in answers if isinstance(one, asyncpg.Connection)]


async def test_a_forgotten_snapshot_slows_nothing_down_for_good(url: str, tmp_path: Path) -> None:
    """Dead rows cannot be removed while it is open, and claims must not step over them."""
    rates = []
    old: Any = await asyncpg.connect(url)
    await old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await old.fetch("SELECT count(*) FROM pg_class")
    with Crew(url, tmp_path) as crew:
        await crew.enqueue(4 * QUARTER)
        for _ in range(WORKERS):
            crew.start(lease=LEASE, seconds=0)
        await crew.until(lambda: crew.done)
        for quarter in range(1, 5):
            before, began = crew.done, time.monotonic()
            await crew.until(lambda wanted=quarter * QUARTER: crew.done >= wanted)  # type: ignore[misc]
            rates.append((crew.done - before) / (time.monotonic() - began))
        await crew.stop()
        await old.close()
        verdict = await crew.conclude()
    assert rates[-1] > rates[0] / 4, f"claims step over more and more dead rows: {rates}"
    verdict.keep(
        "steady",
        "a snapshot held open",
        store="postgres",
        faults=1,
        note=f"jobs a second in its first and last quarter: {rates[0]:.0f}, {rates[-1]:.0f}",
    )


async def test_the_server_is_read_only_for_a_while(url: str, tmp_path: Path) -> None:
    """As after a failover to a server that is not the primary yet."""

    async def turn_read_only() -> None:
        await set_read_only(url, "on")
        await asyncio.sleep(1)
        await set_read_only(url, "off")

    async def strikes(storm: Storm) -> None:
        for _ in range(3):
            await storm.strike(200, turn_read_only)

    storm, verdict = await weather(url, tmp_path, strikes)
    keep(storm, verdict, "durable", "read-only for a second", "as in a failover")


async def set_read_only(url: str, value: str) -> None:
    connection: Any = await asyncpg.connect(url)
    await connection.execute("SET default_transaction_read_only = off")
    await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


async def test_the_disk_is_full_for_a_while(server: PostgresServer, tmp_path: Path) -> None:
    with small_disk(megabytes=96) as disk:
        url = await on_disk(server, disk)

        async def fill() -> None:
            disk.fill()
            await asyncio.sleep(1.5)
            disk.free()

        async def strikes(storm: Storm) -> None:
            for _ in range(3):
                await storm.strike(200, fill)

        storm, verdict = await weather(url, tmp_path, strikes)
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {urlsplit(url).path[1:]} WITH (FORCE)".encode())
            connection.execute("DROP TABLESPACE small")
    keep(storm, verdict, "durable", "disk full", "for 1.5 s each")


async def on_disk(server: PostgresServer, disk: Disk) -> str:
    """A database whose tables are on a small disk."""
    place = disk.path / "tables"
    place.mkdir()
    server.give_away(place)
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'".encode())
        connection.execute("CREATE DATABASE on_small TABLESPACE small")
    url = server.url("on_small")
    async with Queue.open(url, migrate=True):
        return url


async def execute(url: str, sql: str) -> Any:
    connection: Any = await asyncpg.connect(url)
    try:
        return await connection.fetch(sql)
    finally:
        await connection.close()
