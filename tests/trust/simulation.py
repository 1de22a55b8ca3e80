"""The queue under simulated producers, workers and people, where one seed decides everything: who
goes next, what each does, how the clock moves, who is killed and where, which reply is lost.

    python -m tests.trust.simulation --seed 7 --store sqlite --trace   # one seed, told step by step
    python -m tests.trust.simulation --seeds 2000                      # many, until one fails
    python -m tests.trust.simulation --of workers --seed 7 --trace     # real workers, see below

A simulation of the queue (`stage.py`) drives the store, with models of workers; one of workers
(`worker_simulation.py`) runs the real ones on an event loop with a simulated clock.

A run ends when nothing is left to do. Then its history is judged by `checker.py`. The same seed
gives the same run (times and ids of jobs aside), as long as the code is the same.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

from tests.postgres_server import choose_server, create_database
from tests.trust.simulated_loop import SimulatedLoop
from tests.trust.stage import Report, Simulation, Wrap
from tests.trust.worker_simulation import Parts, simulate_workers
from tests.trust.world import ROWS
from windrow.clock import Clock, FakeClock
from windrow.db.sqlite.connection import Verb, connect
from windrow.db.sqlite.location import parse_url
from windrow.db.sqlite.readers import Readers
from windrow.db.sqlite.writer import Call, Writer, commit, follow_up
from windrow.db.transactions import run_sync
from windrow.queue.notifying import Notifier
from windrow.queue.opening import open_store
from windrow.queue.sqlite.store import SqliteStore
from windrow.queue.store import Store

T = TypeVar("T")

SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
POSTGRES_TABLES = """
    SELECT oid::regclass::text AS name FROM pg_class
     WHERE relkind IN ('r', 'p') AND NOT relispartition
       AND relnamespace::regnamespace::text IN ('windrow', 'public')
"""


class Desk(Protocol):
    """Runs one simulation after another on a store: its tables are emptied in between."""

    name: str

    def simulate(self, seed: int, *, wrap: Wrap | None = None, trace: bool = False) -> Report: ...


class SqliteDesk:
    """Without an event loop. The file, its connections and its statements are made once."""

    name = "sqlite"

    def __init__(self, url: str) -> None:
        location = parse_url(url)
        self._connection = connect(location)
        self._store: Any = SqliteStore(location, Inline(self._connection), Clock(), None)
        self._tables = run_sync(_prepare(self._store, SQLITE_TABLES))

    def simulate(self, seed: int, *, wrap: Wrap | None = None, trace: bool = False) -> Report:
        self._wipe()
        self._store.clock = FakeClock()
        return run_sync(Simulation(self._store, seed, wrap=wrap, trace=trace).run())

    def close(self) -> None:
        asyncio.run(self._store.close())

    def _wipe(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for table in self._tables:
            self._connection.execute(f"DELETE FROM {table}")
        self._connection.execute("COMMIT")
        self._store._held_after = ""


class Inline(Writer):
    """What the thread that writes does, where it is asked for: with one caller at a time there is
    nothing to wait for, and two threads that wait for each other take ten times as long."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def _ask(self, call: Call) -> Any:
        commit(self._connection, [call])
        follow_up([call])
        return call.answer()

    async def close(self) -> None:
        self._connection.close()


class SqliteWorkerDesk(SqliteDesk):
    """Runs real workers, on an event loop but without threads."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._store._readers = InlineReaders(parse_url(url))
        self._store._notifier = Notifier()  # nobody watches the file

    def simulate(
        self,
        seed: int,
        *,
        wrap: Wrap | None = None,
        parts: Parts | None = None,
        trace: bool = False,
    ) -> Report:
        self._wipe()
        loop = SimulatedLoop()
        self._store.clock = loop.clock
        return simulate_workers(self._store, loop, seed, wrap=wrap, parts=parts, trace=trace)


class InlineReaders(Readers):
    """Reads where it is asked for."""

    async def run(self, verb: Verb[T], *, is_short: bool = False) -> T:
        return self._connections.read(verb)


class PostgresDesk:
    """On an event loop that waits for nothing but the server's answer to the one who goes."""

    name = "postgres"

    def __init__(self, url: str) -> None:
        self._url = url
        self._tables: list[str] = []

    def simulate(self, seed: int, *, wrap: Wrap | None = None, trace: bool = False) -> Report:
        return asyncio.run(self._simulate(seed, wrap, trace))

    async def _open(self, clock: Clock) -> Store:
        """The store, with empty tables."""
        store = await open_store(self._url, clock=clock, notifier="polling")
        if self._tables:
            await store.change_rows(f"TRUNCATE {', '.join(self._tables)}")
        else:
            self._tables = await _prepare(store, POSTGRES_TABLES)
        return store

    async def _simulate(self, seed: int, wrap: Wrap | None, trace: bool) -> Report:
        store = await self._open(FakeClock())
        try:
            return await Simulation(store, seed, wrap=wrap, trace=trace).run()
        finally:
            await store.close()


class PostgresWorkerDesk(PostgresDesk):
    """Runs real workers, whose loop waits for the answers of a real server."""

    def simulate(self, seed: int, *, wrap: Wrap | None = None, trace: bool = False) -> Report:
        loop = SimulatedLoop()
        with loop.call():
            store: Any = loop.run_until_complete(self._open(loop.clock))
        return simulate_workers(store, loop, seed, wrap=wrap, trace=trace, closes=True)


async def _prepare(store: Store, tables: str) -> list[str]:
    """Make what is needed; the names of the tables that are empty before the first run."""
    await store.migrate()
    await store.change_rows(f"CREATE TABLE IF NOT EXISTS {ROWS} (job text NOT NULL)")
    names = [found["name"] for found in await store.fetch_rows(tables)]
    return [
        name for name in names if not await store.fetch_rows(f"SELECT 1 AS n FROM {name} LIMIT 1")
    ]


@contextmanager
def open_desk(store: str, of: str = "queue") -> Iterator[Desk]:
    if store == "sqlite":
        with TemporaryDirectory(dir=_memory_folder()) as folder:
            kind = SqliteWorkerDesk if of == "workers" else SqliteDesk
            desk = kind(f"sqlite:///{folder}/jobs.db?synchronous=normal")
            yield desk
            desk.close()
        return
    server = choose_server()
    server.start()
    try:
        url = create_database(server.url())
        yield PostgresWorkerDesk(url) if of == "workers" else PostgresDesk(url)
    finally:
        server.stop()


def _memory_folder() -> Path | None:
    """A folder in memory, where there is one: nothing here has to survive a power cut."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() else None


def replay_command(seed: int, store: str, of: str = "queue") -> str:
    return f"python -m tests.trust.simulation --of {of} --seed {seed} --store {store} --trace"


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m tests.trust.simulation")
    reader.add_argument("--of", choices=("queue", "workers"), default="queue")
    reader.add_argument("--seed", type=int, default=1, help="the first seed")
    reader.add_argument("--seeds", type=int, default=1, help="how many, one after another")
    reader.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    reader.add_argument("--trace", action="store_true", help="tell what happens, step by step")
    asked = reader.parse_args()
    logging.disable(logging.CRITICAL)  # of faults that were planned
    with open_desk(asked.store, asked.of) as desk:
        for seed in range(asked.seed, asked.seed + asked.seeds):
            report = desk.simulate(seed, trace=asked.trace)
            for line in report.trace:
                print(line)
            if report.violations:
                print(
                    f"seed {seed}:\n{report.words}\n{replay_command(seed, asked.store, asked.of)}"
                )
                return 1
    print(f"{asked.seeds} seeds from {asked.seed} on: every promise held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
