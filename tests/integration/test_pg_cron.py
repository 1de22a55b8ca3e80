"""N12: maintenance by pg_cron, on a server of our own that has it."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import psycopg
import pytest

from tests.builders import add, add_and_claim, claim, counted, fail, insert, make_group, tallied
from tests.conftest import MakeDatabase
from tests.postgres_server import (
    TEST_SETTINGS,
    URL_VARIABLE,
    PostgresServer,
    create_database,
    database_name,
    drop_database,
    find_postgres_binaries,
    with_database,
)
from tests.processes import ROOT, run
from windrow.errors import ConfigError, SchemaOutdated
from windrow.queue.job import JobState
from windrow.queue.opening import open_store
from windrow.queue.postgres import cron
from windrow.queue.postgres.cron import parse_version, prefix_of
from windrow.queue.store import Store
from windrow.services.postgres import install_cron, list_cron, remove_cron

MISSING = (
    "pg_cron is not installed, so nothing was tested with it (Debian, Ubuntu: apt install "
    "postgresql-15-cron; .ci/run does it where it may)"
)
SETTINGS = {
    **TEST_SETTINGS,
    "shared_preload_libraries": "pg_cron",
    "cron.database_name": "postgres",
    "cron.use_background_workers": "on",  # a connection would need a password
    "max_worker_processes": "20",
}
CONNECTING = {**SETTINGS, "cron.use_background_workers": "off"}
MINUTES = 150.0  # seconds in which a job that comes every minute has surely come


@contextmanager
def running(settings: Mapping[str, str]) -> Iterator[PostgresServer]:
    binaries = find_postgres_binaries()
    if not (binaries.folder.parent / "lib" / "pg_cron.so").is_file():
        pytest.skip(MISSING)
    server = PostgresServer(binaries, settings)
    server.start()
    try:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_cron")
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def cron_server() -> Iterator[PostgresServer]:
    with running(SETTINGS) as server:
        yield server


@pytest.fixture
def connecting_url() -> Iterator[str]:
    """A database whose pg_cron connects as any client does, which is how it comes."""
    with running(CONNECTING) as server:
        assert server.folder is not None
        (server.folder / "data" / "pg_hba.conf").write_text("host all all 127.0.0.1/32 trust\n")
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("SELECT pg_reload_conf()")
        yield create_database(server.url())


@pytest.fixture
def url(cron_server: PostgresServer) -> Iterator[str]:
    """A database that is not the one pg_cron lives in."""
    made = create_database(cron_server.url())
    yield made
    with psycopg.connect(cron_server.url(), autocommit=True) as connection:
        connection.execute(
            "SELECT cron.unschedule(jobid) FROM cron.job WHERE database = %s",
            [database_name(made)],
        )
    drop_database(cron_server.url(), made)


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = await open_store(url)
    await store.migrate()
    yield store
    assert await tallied(store) == await counted(store)
    await store.close()


async def run_command(url: str, task: str) -> None:
    """Run the very text that pg_cron was given, as it does: in one go."""
    [command] = [job.command for job in await list_cron(url) if job.name.endswith(f"_{task}")]
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(command)
    finally:
        await connection.close()


async def test_it_is_handed_over_and_taken_back_as_often_as_one_likes(
    store: Store, url: str
) -> None:
    assert await list_cron(url) == []
    first = await install_cron(url)
    prefix = f"windrow_{database_name(url)}_"
    expected = [prefix + name for name in ("fold", "forget", "rescue", "stage")]
    assert [job.name for job in first] == expected
    assert {job.database for job in first[:1] + first[2:]} == {database_name(url)}
    assert await install_cron(url) == first
    assert [job.name for job in await remove_cron(url)] == expected
    assert await list_cron(url) == []
    assert await remove_cron(url) == []


async def test_only_our_own_jobs_are_removed(
    store: Store, url: str, cron_server: PostgresServer
) -> None:
    with psycopg.connect(cron_server.url(), autocommit=True) as connection:
        longer = f"windrow_{database_name(url)}_b_stage"  # of a database with a longer name
        for name in ("theirs", longer):
            connection.execute("SELECT cron.schedule(%s, '0 0 1 1 *', 'SELECT 1')", [name])
        connection.execute("SELECT cron.schedule('0 0 1 1 *', 'SELECT 2')")  # without a name
        former = f"windrow_{database_name(url)}_former"  # of another version
        connection.execute("SELECT cron.schedule(%s, '0 0 1 1 *', 'SELECT 1')", [former])
        assert former not in [job.name for job in await install_cron(url)]
        await remove_cron(url)
        left = connection.execute("SELECT jobname FROM cron.job ORDER BY jobname").fetchall()
        assert left == [("theirs",), (longer,), (None,)]
        connection.execute("SELECT cron.unschedule(jobid) FROM cron.job")


async def test_below_pg_cron_1_5_it_comes_every_minute_and_from_there_on_every_15_seconds(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {job.name.rpartition("_")[2]: job.schedule for job in await install_cron(url)}
    assert found == {
        "stage": "* * * * *",
        "rescue": "* * * * *",
        "fold": "* * * * *",
        "forget": "41 * * * *",
    }
    assert (
        parse_version("1.4-1") < cron.SECONDS_SINCE <= parse_version("1.5") < parse_version("1.6.2")
    )
    # The 1.4 of Debian refuses the other schedule, and then nothing is changed.
    monkeypatch.setattr(cron, "SECONDS_SINCE", (1, 4))
    with pytest.raises(Exception, match="15 seconds"):
        await install_cron(url)
    assert {job.name.rpartition("_")[2]: job.schedule for job in await list_cron(url)} == found


async def test_due_jobs_are_staged_and_free_places_taken(store: Store, url: str) -> None:
    await install_cron(url)
    due = await add(store, delay=0.001)
    limited = await add(store, delay=0.001, limits=("api",))
    later = await add(store, delay=3600.0)
    await asyncio.sleep(0.01)
    async with store.listen_for_work(["default"]) as bell:
        await run_command(url, "stage")
        assert await bell.wait(20), "sleeping workers are told"
    await run_command(url, "stage")
    assert await store.get_states([due, limited, later]) == {
        due: JobState.READY,
        limited: JobState.HELD,
        later: JobState.SCHEDULED,
    }


async def test_a_follower_whose_holder_is_gone_is_let_go(store: Store, url: str) -> None:
    await install_cron(url)
    await add_and_claim(store, unique="u")
    follower = (await insert(store, unique="u", on_conflict="follow")).id
    await run_command(url, "stage")
    assert await store.get_states([follower]) == {follower: JobState.HELD}
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE windrow.job_live SET unique_key = 'v' WHERE NOT is_follower")
    await connection.close()
    await run_command(url, "stage")
    assert await store.get_states([follower]) == {follower: JobState.READY}


async def test_jobs_of_dead_workers_are_rescued_as_the_store_does_it(
    store: Store, url: str
) -> None:
    await install_cron(url)
    by_cron, by_store = await add(store), await add(store)
    for job_id in (by_cron, by_store):
        [job] = await claim(store)
        assert job.id == job_id
        await _expire(url)
        if job_id == by_cron:
            await run_command(url, "rescue")
            await run_command(url, "rescue")  # the second finds nothing
        else:
            await store.rescue_jobs()
        await store.pause_jobs([job_id])
    one, other = (await store.get_jobs([by_cron, by_store])).values()
    for job in (one, other):
        assert (job.state, job.crashes, job.attempts) == (JobState.PAUSED, 1, 0)
        [error] = job.errors
        assert (error.reason, error.type, error.traceback) == ("crash", None, None)
    assert one.errors[0].message == other.errors[0].message
    connection = await asyncpg.connect(url)
    assert await connection.fetchval("SELECT count(*) FROM windrow.lease") == 0
    await connection.close()


async def test_what_cannot_wait_again_is_left_to_a_worker(store: Store, url: str) -> None:
    """Its end may end a group and free a place, which is decided in Python."""
    await install_cron(url)
    group = await make_group(store)
    exhausted = await add(store, max_crashes=1, group=group.id)
    stopped, followed, fine = await add(store), await add(store, unique="u"), await add(store)
    assert len(await claim(store, 10)) == 4
    await store.cancel_jobs([stopped], "not wanted")
    follower = (await insert(store, unique="u", on_conflict="follow")).id
    await _expire(url)
    await run_command(url, "rescue")
    states = await store.get_states([exhausted, stopped, followed, fine, follower])
    assert states == {
        **dict.fromkeys((exhausted, stopped, followed), JobState.ACTIVE),
        fine: JobState.READY,
        follower: JobState.HELD,
    }
    assert len(await store.rescue_jobs()) == 3
    states = await store.get_states([exhausted, stopped, followed, fine, follower])
    assert states == {
        exhausted: JobState.FAILED,
        stopped: JobState.CANCELLED,
        followed: JobState.CANCELLED,
        fine: JobState.READY,
        follower: JobState.READY,
    }


async def test_a_job_asked_to_pause_is_paused_unless_it_was_its_last_crash(
    store: Store, url: str
) -> None:
    await install_cron(url)
    job_id = (await add_and_claim(store, max_crashes=2)).id
    last = (await add_and_claim(store, max_crashes=1)).id
    await store.pause_jobs([job_id, last])
    await _expire(url)
    await run_command(url, "rescue")
    assert await store.get_states([job_id, last]) == {
        job_id: JobState.PAUSED,
        last: JobState.ACTIVE,  # to be failed by a worker
    }
    await store.rescue_jobs()
    assert await store.get_states([last]) == {last: JobState.FAILED}


async def test_counts_are_folded(store: Store, url: str) -> None:
    await install_cron(url)
    for _ in range(5):
        await add(store)
    await fail(store, (await claim(store))[0])
    before = await tallied(store)
    connection = await asyncpg.connect(url)
    rows = await connection.fetchval("SELECT count(*) FROM windrow.tally")
    await run_command(url, "fold")
    assert await connection.fetchval("SELECT count(*) FROM windrow.tally") < rows
    assert await tallied(store) == before
    await connection.close()


async def test_cron_beside_workers_moves_each_job_once(store: Store, url: str) -> None:
    await install_cron(url)
    for _ in range(50):
        await add(store, delay=0.001)
    await asyncio.sleep(0.01)
    staged = await asyncio.gather(
        run_command(url, "stage"), store.stage_jobs(), run_command(url, "stage"), store.stage_jobs()
    )
    assert sum(n for n in staged if n is not None) <= 50
    assert len(await claim(store, 100)) == 50
    await _expire(url)
    await asyncio.gather(
        run_command(url, "rescue"), store.rescue_jobs(), run_command(url, "rescue")
    )
    jobs = await claim(store, 100)
    assert [job.crashes for job in jobs] == [1] * 50


async def test_windrow_may_live_where_pg_cron_does(cron_server: PostgresServer) -> None:
    url = cron_server.url()
    store = await open_store(url)
    await store.migrate()
    jobs = await install_cron(url)
    assert {job.database for job in jobs} == {"postgres"}
    job_id = await add(store, delay=0.001)
    await asyncio.sleep(0.01)
    await run_command(url, "stage")
    await run_command(url, "forget")
    assert await store.get_states([job_id]) == {job_id: JobState.READY}
    assert len(await remove_cron(url)) == 4
    await store.close()


async def test_a_user_without_the_rights_is_told_which(
    store: Store, url: str, cron_server: PostgresServer
) -> None:
    with psycopg.connect(cron_server.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
        connection.execute("GRANT pg_read_all_data TO plain")
        try:
            plain = with_database(url, database_name(url)).replace(
                url.split("//")[1].split("@")[0], "plain:plain"
            )
            with pytest.raises(ConfigError, match="--cron-database"):
                await install_cron(plain)
            with pytest.raises(ConfigError, match="GRANT USAGE ON SCHEMA cron TO plain"):
                await install_cron(plain, "postgres")
            connection.execute("GRANT USAGE ON SCHEMA cron TO plain")
            with pytest.raises(ConfigError, match=r"GRANT EXECUTE ON FUNCTION cron\.schedule_in"):
                await install_cron(plain, "postgres")
            connection.execute("GRANT EXECUTE ON FUNCTION cron.schedule_in_database TO plain")
            assert len(await install_cron(plain, "postgres")) == 4
            assert len(await remove_cron(plain, "postgres")) == 4
        finally:
            connection.execute("DROP OWNED BY plain")
            connection.execute("DROP ROLE plain")


async def test_a_server_without_pg_cron_says_what_to_do(
    make_database: MakeDatabase, postgres_template: str
) -> None:
    if os.environ.get(URL_VARIABLE):
        pytest.skip("a server that somebody else runs may have pg_cron")
    with pytest.raises(ConfigError, match="shared_preload_libraries = 'pg_cron'"):
        await install_cron(make_database(postgres_template))


async def test_sqlite_has_no_pg_cron(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="extension of Postgres"):
        await install_cron(f"sqlite:///{tmp_path}/jobs.db")


async def test_an_empty_database_is_not_handed_over(url: str) -> None:
    with pytest.raises(SchemaOutdated, match="windrow db migrate"):
        await install_cron(url)


async def test_the_command_shows_what_is_done_and_takes_it_back(store: Store, url: str) -> None:
    def windrow(*words: str) -> str:
        environment = os.environ | {"COLUMNS": "200"}
        done = run("db", "cron", *words, "--database", url, cwd=ROOT, environment=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "does nothing for this database" in windrow("status")
    name = f"windrow_{database_name(url)}_stage"
    assert re.search(rf"{name} +\* \* \* \* \*", windrow("install"))
    assert name in windrow("status")
    assert [job["name"] for job in json.loads(windrow("status", "--json"))][-1] == name
    assert re.search(rf"would remove .*{name}.*: add --yes", windrow("remove"))
    assert name in windrow("status")
    assert f"removed {name}" in windrow("remove", "--yes")
    assert windrow("remove") == "nothing to do\n"


async def test_a_database_without_the_extension_says_what_to_run(store: Store, url: str) -> None:
    with pytest.raises(ConfigError, match="CREATE EXTENSION pg_cron"):
        await install_cron(url, database_name(url))


@pytest.mark.chaos  # cron comes once a minute
async def test_without_a_worker_cron_itself_stages_and_rescues(
    store: Store, url: str, connecting_url: str
) -> None:
    """The real thing, in both ways it can run commands: it comes at the next full minute."""
    connecting = await open_store(connecting_url)
    await connecting.migrate()
    await asyncio.gather(_see_it_done(store, url), _see_it_done(connecting, connecting_url))
    await connecting.close()


async def _see_it_done(store: Store, url: str) -> None:
    crashed = (await add_and_claim(store)).id
    due = await add(store, delay=0.001)
    await _expire(url)
    await install_cron(url)
    async with asyncio.timeout(MINUTES):
        while set((await store.get_states([crashed, due])).values()) != {JobState.READY}:
            await asyncio.sleep(0.2)
        while {job.status for job in await list_cron(url)} != {"succeeded", None}:
            await asyncio.sleep(0.2)


async def _expire(url: str) -> None:
    """As if the workers had been dead for a while."""
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE windrow.lease SET expires_at = now() - interval '1 second'")
    await connection.close()


def test_names_fit_and_those_of_long_databases_differ() -> None:
    assert prefix_of("jobs") == "windrow_jobs_"
    long = [prefix_of("x" * 63), prefix_of("x" * 62), prefix_of("日" * 20)]
    assert len(set(long)) == 3
    assert max(len((prefix + "rescue").encode()) for prefix in long) <= 63
