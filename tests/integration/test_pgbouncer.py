"""Behind a real pgbouncer in transaction mode. The conformance tests run there too; these show that
they really do, and what happens to somebody who does not know of the pooler."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import psycopg
import pytest

from tests import pgbouncer
from tests.builders import add, add_and_claim, complete, exists, ids, wish
from tests.conftest import MakeDatabase
from tests.pgbouncer import (
    Bouncer,
    ask_console,
    find_pgbouncer,
    require_prepared,
    through,
    without_options,
)
from tests.postgres_server import create_database, database_name, drop_database
from windrow import Queue
from windrow.clock import Clock
from windrow.db.postgres.connections import PLANNER_SETTINGS
from windrow.errors import ConfigError
from windrow.queue import waiting
from windrow.queue.postgres import listening
from windrow.queue.postgres.store import PostgresStore

LONG = 20.0  # seconds; only a failing test waits for it


@pytest.fixture
def direct_url(make_database: MakeDatabase, postgres_template: str) -> str:
    return make_database(postgres_template)


@pytest.fixture
def pooled_url(pgbouncer_url: str, direct_url: str) -> str:
    return through(pgbouncer_url, direct_url)


@pytest.fixture
async def store(pooled_url: str) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(pooled_url, clock=Clock())
    yield opened
    await opened.close()


async def test_the_stores_transactions_are_the_bouncers(
    store: PostgresStore, pooled_url: str, pgbouncer_url: str
) -> None:
    """The console counts what went through it for this test's database, in transaction mode."""
    before = transactions(pgbouncer_url, pooled_url)
    for _ in range(10):
        await add(store)
    counted = transactions(pgbouncer_url, pooled_url) - before
    modes = {
        pool["pool_mode"]
        for pool in ask_console(pgbouncer_url, "SHOW POOLS")
        if pool["database"] == database_name(pooled_url)
    }

    assert counted >= 10
    assert modes == {"transaction"}


async def test_one_connection_of_ours_uses_several_sessions_of_the_server(
    store: PostgresStore, pooled_url: str
) -> None:
    """While somebody else is in a transaction, our next one runs in another session; so nothing
    that is kept in a session can be relied on."""
    async with store._database.connection() as connection:
        first = await connection.fetchval("SELECT pg_backend_pid()")
        other = await asyncpg.connect(without_options(pooled_url), statement_cache_size=0)
        try:
            async with other.transaction():
                theirs = await other.fetchval("SELECT pg_backend_pid()")
                ours = await connection.fetchval("SELECT pg_backend_pid()")
        finally:
            await other.close()

    assert theirs == first
    assert ours != first


async def test_many_stores_share_few_sessions(pooled_url: str, direct_url: str) -> None:
    """More connections than the bouncer has sessions, all at work at once: nothing is named, so
    nothing collides."""
    stores = [await PostgresStore.open(pooled_url, clock=Clock()) for _ in range(30)]
    try:
        added = await asyncio.gather(*(add(store) for store in stores for _ in range(3)))
        claims = await asyncio.gather(*(store.claim_jobs(wish(3)) for store in stores))
        claimed = [job_id for jobs in claims for job_id in ids(jobs)]
        with psycopg.connect(direct_url) as beside:
            query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            sessions = beside.execute(query).fetchone()
    finally:
        for store in stores:
            await store.close()

    assert sorted(claimed) == sorted(added)
    assert sessions is not None
    assert sessions[0] <= pgbouncer.SESSIONS + 1


async def test_nothing_is_left_in_a_session(store: PostgresStore, direct_url: str) -> None:
    """What a session keeps would meet whoever gets it next."""
    job = await add_and_claim(store)
    await complete(store, job)
    tx = await store.begin()
    await tx.execute("CREATE TABLE effect (note text)")
    await tx.rollback()
    async with store._database.connection() as connection, connection.transaction():
        statements = await connection.fetch("SELECT name FROM pg_prepared_statements")
        settings = await connection.fetch(
            "SELECT name FROM pg_settings WHERE source = 'session' AND name = ANY($1::text[])",
            list(PLANNER_SETTINGS),
        )
    with psycopg.connect(direct_url) as beside:
        locks = beside.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
            "WHERE locktype = 'advisory' AND datname = current_database()"
        )
        held = locks.fetchone()

    assert statements == []
    assert settings == []
    assert held == (0,)


async def test_prepared_statements_are_refused_where_the_bouncer_does_not_keep_them(
    postgres_url: str, direct_url: str, pgbouncer_url: str
) -> None:
    """It would run whatever statement another client has given that name to."""
    program = find_pgbouncer()
    assert program is not None
    # A bouncer that does not know the setting does not keep any in the first place.
    switch = "max_prepared_statements"
    knows = any(row["key"] == switch for row in ask_console(pgbouncer_url, "SHOW CONFIG"))
    bouncer = Bouncer(postgres_url, program, {switch: "0"} if knows else {})
    bouncer.start()
    try:
        url = bouncer.url(database_name(direct_url))
        with pytest.raises(ConfigError, match="does not keep prepared statements apart"):
            await PostgresStore.open(f"{url}?prepared=true", clock=Clock())
    finally:
        bouncer.stop()


async def test_prepared_statements_follow_a_client_from_session_to_session(
    pooled_url: str, pgbouncer_url: str, direct_url: str
) -> None:
    """Many stores of two processes' making, whose statements have the same names, share a few
    sessions; each runs its own."""
    require_prepared(pgbouncer_url)
    url = f"{pooled_url}&prepared=true"
    stores = [await PostgresStore.open(url, clock=Clock()) for _ in range(10)]
    try:
        added = await asyncio.gather(*(add(store) for store in stores for _ in range(5)))
        script = (
            "import sys\n"
            "from windrow import Queue\n"
            "with Queue.sync(sys.argv[1]) as queue:\n"
            "    for _ in range(20): print(queue.enqueue('work').id)\n"
        )
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, url, stdout=asyncio.subprocess.PIPE
        )
        claims = await asyncio.gather(*(store.claim_jobs(wish(5)) for store in stores))
        printed, _ = await other.communicate()
        late = await asyncio.gather(*(store.claim_jobs(wish(5)) for store in stores))
        claimed = [job_id for jobs in (*claims, *late) for job_id in ids(jobs)]
        async with stores[0]._database.connection() as connection:
            names = await connection.fetch("SELECT name FROM pg_prepared_statements")
    finally:
        for store in stores:
            await store.close()

    assert other.returncode == 0
    assert sorted(claimed) == sorted([*added, *printed.decode().split()])
    assert names


async def test_without_a_way_past_the_pooler_work_and_ends_are_found_by_polling(
    store: PostgresStore, pooled_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "CLAIM_SECONDS", 0.1)
    problem = await store.check_wake_ups()
    assert problem is not None
    assert "set WINDROW_DATABASE_DIRECT_URL" in problem
    async with store.listen_for_work(None) as bell, Queue.open(pooled_url) as other:
        made = await other.enqueue("work")
        assert not await bell.wait(0.2), "nobody rings"
        claiming = asyncio.create_task(Queue(store).claim(["late"], wait=LONG))
        waiter = asyncio.create_task(other.wait(made.id, timeout=LONG))
        await other.enqueue("work", queue="late")
        assert len((await claiming).jobs) == 1
        lease = await Queue(store).claim()
        await lease.complete(lease.jobs[0], "found")
        assert (await waiter).result == "found"
        assert not await bell.wait(0.01)


async def test_with_a_way_past_the_pooler_sleepers_are_told(
    pooled_url: str, direct_url: str
) -> None:
    async with (
        Queue.open(pooled_url, direct_url=direct_url) as queue,
        queue.store.listen_for_work(["default"]) as bell,
    ):
        assert await queue.store.check_wake_ups() is None
        assert not await bell.wait(0.01)
        async with Queue.open(pooled_url) as other:
            await other.enqueue("work")
        assert await bell.wait(LONG)


async def test_a_direct_url_that_leads_through_the_pooler_is_noticed(
    pooled_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LISTEN is accepted there and nothing is ever heard, which only a test of one's own tells."""
    monkeypatch.setattr(listening, "TEST_SECONDS", 0.5)
    wrong_url = without_options(pooled_url)
    store = await PostgresStore.open(pooled_url, clock=Clock(), direct_url=wrong_url)
    try:
        # The bouncer gives the listener's session to the next who asks: here it is busy.
        async with store._database.connection() as connection, connection.transaction():
            await connection.fetch("SELECT 1")
            problem = await store.check_wake_ups()
        assert problem is not None
        assert "nothing is heard" in problem
        assert "nothing is heard" in caplog.text
        async with store.listen_for_work(None) as bell:
            await add(store)
            assert not await bell.wait(0.05)
    finally:
        await store.close()


async def test_pooler_that_was_not_declared_is_a_sentence_that_says_what_to_add(
    pooled_url: str,
) -> None:
    with pytest.raises(ConfigError, match=r"add \?pooled=true.*unsupported startup parameter"):
        await PostgresStore.open(without_options(pooled_url), clock=Clock())


async def test_pooler_that_drops_our_settings_in_silence_is_noticed(
    postgres_url: str, direct_url: str, pgbouncer_url: str
) -> None:
    """Otherwise the first sign would be a statement of another's name, run now and then."""
    program = find_pgbouncer()
    assert program is not None
    silent = Bouncer(
        postgres_url, program, {"ignore_startup_parameters": ",".join(PLANNER_SETTINGS)}
    )
    silent.start()
    try:
        url = silent.url(database_name(direct_url))
        with pytest.raises(ConfigError, match=r"add \?pooled=true.*did not arrive"):
            await PostgresStore.open(url, clock=Clock())
        store = await PostgresStore.open(f"{url}?pooled=true", clock=Clock())
        try:
            assert await exists(store, await add(store))
        finally:
            await store.close()
    finally:
        silent.stop()


def test_database_is_dropped_while_the_bouncer_holds_sessions(
    postgres_url: str, pgbouncer_url: str
) -> None:
    url = create_database(postgres_url)
    with psycopg.connect(without_options(through(pgbouncer_url, url)), autocommit=True) as client:
        client.execute("SELECT 1")
        drop_database(postgres_url, url)
    with psycopg.connect(postgres_url) as admin:
        query = "SELECT FROM pg_database WHERE datname = %s"
        assert admin.execute(query, [database_name(url)]).fetchone() is None


@pytest.mark.skipif(sys.platform != "linux", reason="relies on the kernel's parent-death signal")
def test_bouncer_stops_when_its_test_process_is_killed(
    postgres_url: str, pgbouncer_url: str
) -> None:
    script = (
        "import os, signal, sys\n"
        "from tests.pgbouncer import Bouncer, find_pgbouncer\n"
        "bouncer = Bouncer(sys.argv[1], find_pgbouncer()); bouncer.start()\n"
        "print(bouncer.pid, bouncer.folder, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, postgres_url], stdout=subprocess.PIPE, text=True
    )
    pid, folder = killed.stdout.split()
    try:
        assert killed.returncode == -signal.SIGKILL
        assert is_gone_within(10, int(pid))
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)


def test_stopped_bouncer_leaves_nothing_and_was_nobody_special(
    postgres_url: str, pgbouncer_url: str
) -> None:
    program = find_pgbouncer()
    assert program is not None
    bouncer = Bouncer(postgres_url, program)
    bouncer.start()
    try:
        pid, folder = bouncer.pid, bouncer.folder
        assert pid is not None
        assert folder is not None
        owner = Path(f"/proc/{pid}").stat().st_uid if sys.platform == "linux" else None
    finally:
        bouncer.stop()

    assert owner != 0
    assert not folder.exists()
    assert is_gone_within(1, pid)


def transactions(console_url: str, url: str) -> int:
    """How many transactions of a database the bouncer has counted."""
    return sum(
        int(stats["total_xact_count"])
        for stats in ask_console(console_url, "SHOW STATS")
        if stats["database"] == database_name(url)
    )


def is_gone_within(seconds: float, pid: int) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
