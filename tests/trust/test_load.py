"""Load on Postgres: a million jobs through tables that stay small, and the connections of 200
workers. What is asserted is that nothing is lost or doubled and that the bounds hold; rates are
reported, not demanded."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psycopg
import pytest

from tests.pgbouncer import MISSING, Bouncer, find_pgbouncer, through
from tests.postgres_server import (
    TEST_SETTINGS,
    PostgresServer,
    create_database,
    drop_database,
    stop_with_parent,
)
from tests.trust import scorecard
from tests.trust.load import Record
from windrow.services.database import migrate_database

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

MILLION = 1_000_000
AHEAD = 20_000  # jobs that may wait
# Dead rows and finished jobs grow with the rate, so the bounds below are for this one at the most.
PER_SECOND = 12_000
# An hour in 15 seconds: leaves of finished jobs are filled, emptied and cut while it runs.
SPEED = 240.0
LIVE_MIB = (
    64  # what the tables of live jobs may take, whatever the number of jobs that went through
)
ALL_MIB = 256  # … and all tables, with the finished jobs of about an hour in them
FLAT = 0.3  # the last quarter's rate over the first's, at the least: machines are shared

WORKERS = 200
PROCESSES = 4
JOBS_OF_MANY = 10_000
POOL = 2  # connections for each worker, and one that listens

SIZES = """
    SELECT coalesce(sum(pg_total_relation_size(c.oid)) FILTER (
               WHERE c.relname IN ('job_live', 'lease')), 0)::bigint AS live,
           coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS total,
           coalesce(sum(s.n_dead_tup), 0)::bigint AS dead
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
     WHERE n.nspname = 'windrow' AND c.relkind IN ('r', 'm')
"""


@dataclass(frozen=True)
class Sample:
    at: float
    ran: int
    live: int  # bytes
    total: int
    dead: int  # rows


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One of its own: the tests' Postgres has no autovacuum, and few connections."""
    settings = {
        **TEST_SETTINGS,
        "max_connections": "700",
        "autovacuum": "on",
        "autovacuum_naptime": "2s",  # as much of the clock here as a minute is of an hour or so
        "autovacuum_vacuum_cost_delay": "0",  # its budget is for a clock that is not faster
    }
    started = PostgresServer(settings=settings, parent=Path(tempfile.gettempdir()))
    started.start()
    yield started
    started.stop()


@pytest.fixture
async def url(server: PostgresServer) -> Any:
    made = create_database(server.url())
    await migrate_database(made)
    yield made
    drop_database(server.url(), made)


def test_million_jobs_leave_small_tables_behind_at_a_flat_rate(url: str, tmp_path: Path) -> None:
    path = tmp_path / "record"
    record = Record(path)
    options = {"url": url, "jobs": MILLION, "record": str(path)}
    options |= {"epoch": time.time(), "speed": SPEED}
    with ExitStack() as stack, psycopg.connect(url, autocommit=True) as connection:
        for verb, more in (
            ("drain", {}),
            ("drain", {}),
            ("maintain", {}),
            ("produce", {"ahead": AHEAD, "per_second": PER_SECOND}),
        ):
            stack.enter_context(running(verb, options | more))
        samples = list(sampled(connection, record, MILLION))

    lost, doubled = record.judge(MILLION)
    ratio = flatness(samples)
    live, total = (max(getattr(one, size) for one in samples) for size in ("live", "total"))
    seconds = samples[-1].at - samples[0].at
    scorecard.record(
        "steady",
        "1,000,000 jobs through the tables",
        store="postgres",
        jobs=MILLION,
        faults=0,
        lost=lost,
        doubled=doubled,
        note=f"live jobs and leases took at most {live / 2**20:.0f} MiB, all tables "
        f"{total / 2**20:.0f} MiB (bounds {LIVE_MIB} and {ALL_MIB}), dead rows at most "
        f"{max(one.dead for one in samples):,}; last quarter ÷ first quarter of the rate "
        f"{ratio:.2f}; {MILLION / seconds:,.0f} jobs a second, enqueued and run at once; an hour "
        f"of retention in {3600 / SPEED:.0f} s, autovacuum looks every 2 s",
    )
    assert (lost, doubled) == (0, 0)
    assert live <= LIVE_MIB * 2**20
    assert total <= ALL_MIB * 2**20
    assert ratio >= FLAT


@pytest.mark.parametrize("way", ["direct", "pgbouncer"])
def test_200_workers_share_one_database(
    server: PostgresServer, url: str, way: str, tmp_path: Path
) -> None:
    record = Record(tmp_path / "record")
    options = {"jobs": JOBS_OF_MANY, "record": str(tmp_path / "record")}
    each = {"workers": WORKERS // PROCESSES}
    with ExitStack() as stack, psycopg.connect(url, autocommit=True) as connection:
        own = f"{url}?" if way == "direct" else f"{through(bouncer_of(server, stack), url)}&"
        used = f"{own}pool_size={POOL}"
        began = time.monotonic()
        processes = [
            stack.enter_context(running("work_in_many", {"url": used, **options, **each}))
            for _ in range(PROCESSES)
        ]
        for process in processes:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline()) == "open"
        opened = time.monotonic() - began
        with running("produce", {"url": url, **options, "ahead": JOBS_OF_MANY}):
            most = 0
            began = time.monotonic()
            for _ in sampled(connection, record, JOBS_OF_MANY):
                most = max(most, connections(connection))
            seconds = time.monotonic() - began

    lost, doubled = record.judge(JOBS_OF_MANY)
    scorecard.record(
        "steady",
        f"200 workers at once, {'connected directly' if way == 'direct' else 'behind pgbouncer'}",
        store="postgres",
        jobs=JOBS_OF_MANY,
        faults=0,
        lost=lost,
        doubled=doubled,
        note=f"{WORKERS} workers with pools of their own in {PROCESSES} processes, "
        f"{most} connections at the server; opened in {opened:.1f} s; "
        f"{JOBS_OF_MANY / seconds:,.0f} jobs a second",
    )
    assert (lost, doubled) == (0, 0)
    if way == "direct":
        assert WORKERS <= most <= WORKERS * (POOL + 1) + 2 * POOL
    else:
        assert most < WORKERS / 2


def bouncer_of(server: PostgresServer, stack: ExitStack) -> str:
    program = find_pgbouncer()
    if program is None:
        pytest.skip(MISSING)
    bouncer = Bouncer(server.url(), program)
    bouncer.start()
    stack.callback(bouncer.stop)
    return bouncer.url("postgres")


def connections(connection: psycopg.Connection[Any]) -> int:
    found = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND backend_type = 'client backend'"
    ).fetchone()
    return 0 if found is None else int(found[0])


def sampled(
    connection: psycopg.Connection[Any], record: Record, jobs: int, stuck: float = 120.0
) -> Iterator[Sample]:
    """What the tables are like, about once a second, until all jobs have run."""
    ran, moved_at = -1, time.monotonic()
    while ran < jobs:
        now = len(record)
        if now != ran:
            ran, moved_at = now, time.monotonic()
        elif time.monotonic() - moved_at > stuck:
            pytest.fail(f"nothing ran for {stuck:.0f} s, after {ran} of {jobs} jobs")
        found = connection.execute(SIZES).fetchone()
        assert found is not None
        yield Sample(time.monotonic(), ran, *found)
        time.sleep(1.0 if jobs >= MILLION else 0.2)


def flatness(samples: list[Sample]) -> float:
    """The rate of the last quarter of the jobs over that of the first."""
    total = samples[-1].ran

    def seconds_between(first: float, last: float) -> float:
        begin = next(one for one in samples if one.ran >= first * total)
        end = next(one for one in samples if one.ran >= last * total)
        return (end.at - begin.at) / max(1, end.ran - begin.ran)

    return seconds_between(0.0, 0.25) / seconds_between(0.75, 1.0)


@contextmanager
def running(verb: str, options: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """A process of `tests.trust.load`, which is to end well, and is ended if the test fails."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.trust.load", verb, json.dumps(options)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            preexec_fn=stop_with_parent(signal.SIGKILL),
        )
        try:
            yield process
            assert process.wait(60) == 0, said_last(log)
        finally:
            process.kill()
            process.wait()


def said_last(log: IO[str]) -> str:
    log.seek(0)
    return log.read()[-3000:]
