"""Errors of a real server, and what they become."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import asyncpg
import msgspec
import pytest

from tests.builders import (
    EVERYTHING,
    add,
    add_and_claim,
    claim,
    complete,
    completion,
    exists,
    get,
    row,
    state,
    wish,
)
from tests.conftest import MakeDatabase
from windrow.clock import Clock
from windrow.db.postgres.connections import PoolOptions, parse_url
from windrow.errors import (
    ConfigError,
    InvalidJob,
    SchemaOutdated,
    StoreConflict,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from windrow.queue.job import JobState
from windrow.queue.postgres.store import PostgresStore

Connection = Any


@pytest.fixture
def url(make_database: MakeDatabase, postgres_template: str) -> str:
    return make_database(postgres_template)


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(url, clock=Clock())
    yield opened
    await opened.close()


@pytest.fixture
async def beside(url: str) -> AsyncIterator[Connection]:
    """A connection of somebody else's to the same database."""
    opened = await asyncpg.connect(url)
    yield opened
    await opened.close()


async def end_other_backends(beside: Connection) -> None:
    await beside.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


async def test_connection_dropped_between_calls_is_replaced(
    store: PostgresStore, beside: asyncpg.Connection
) -> None:
    job_id = await add(store)
    await end_other_backends(beside)
    # Whether this call already notices depends on how soon the news arrives.
    with suppress(StoreUnavailable):
        await get(store, job_id)

    assert await state(store, job_id) == JobState.READY


async def test_connection_dropped_in_mid_transaction_leaves_nothing(
    store: PostgresStore, beside: asyncpg.Connection
) -> None:
    job = await add_and_claim(store)
    tx = await store.begin()
    await tx.execute("CREATE TABLE effect (n integer)")
    await end_other_backends(beside)
    with pytest.raises(StoreUnavailable):
        await store.finish_jobs([completion(job)], tx=tx)

    assert await state(store, job.id) == JobState.ACTIVE
    assert await beside.fetchval("SELECT to_regclass('effect')") is None
    await complete(store, job)


async def test_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable):
        await PostgresStore.open("postgresql://nobody@127.0.0.1:1/none", clock=Clock())


async def raise_on_insert(beside: Connection, code: str) -> None:
    """Let the server fail as it does when that happens."""
    await beside.execute(
        "CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'as told' USING ERRCODE = '{code}'; END $$"
    )
    await beside.execute(
        "CREATE TRIGGER failing BEFORE INSERT ON windrow.job_payload "
        "FOR EACH ROW EXECUTE FUNCTION public.fail()"
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("53100", StoreFull),
        ("40001", StoreConflict),
        ("40P01", StoreConflict),
        ("55P03", StoreConflict),
        ("25006", StoreReadOnly),
        ("53300", StoreUnavailable),
        ("57P01", StoreUnavailable),
        ("08006", StoreUnavailable),
        ("54001", InvalidJob),
        ("P0001", StoreError),
    ],
)
@pytest.mark.parametrize("count", [1, 60])
async def test_failure_of_the_server_is_told_by_its_code(
    store: PostgresStore,
    beside: Connection,
    code: str,
    expected: type[Exception],
    count: int,
) -> None:
    await raise_on_insert(beside, code)
    rows = [row() for _ in range(count)]
    with pytest.raises(expected) as raised:
        await store.insert_jobs(rows)

    assert type(raised.value) is expected
    assert getattr(raised.value.__cause__, "sqlstate", None) == code
    assert not await exists(store, rows[0].id)
    assert await claim(store, 9) == []


async def test_conflict_that_passes_is_not_noticed(
    store: PostgresStore, beside: asyncpg.Connection
) -> None:
    await beside.execute("CREATE SEQUENCE public.tries")
    await beside.execute(
        "CREATE FUNCTION public.fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF nextval('public.tries') < 3 THEN RAISE EXCEPTION 'no' USING ERRCODE = '40P01'; "
        "END IF; RETURN NEW; END $$"
    )
    await beside.execute(
        "CREATE TRIGGER failing BEFORE INSERT ON windrow.job_payload "
        "FOR EACH ROW EXECUTE FUNCTION public.fail_twice()"
    )

    assert await exists(store, await add(store))


async def test_database_that_can_only_be_read(
    store: PostgresStore, beside: asyncpg.Connection
) -> None:
    job_id = await add(store)
    name = await beside.fetchval("SELECT current_database()")
    await beside.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await end_other_backends(beside)
    with pytest.raises((StoreReadOnly, StoreUnavailable)):
        await add(store)
    with pytest.raises(StoreReadOnly):
        await add(store)

    assert await exists(store, job_id)


async def test_json_nested_too_deeply_is_refused(store: PostgresStore) -> None:
    deep = msgspec.Raw(b"[" * 200_000 + b"]" * 200_000)
    with pytest.raises(InvalidJob):
        await store.insert_jobs([msgspec.structs.replace(row(), payload=deep)])


async def test_store_works_without_prepared_statements(url: str, store: PostgresStore) -> None:
    """As behind a pooler in transaction mode."""
    pooled = await PostgresStore.open(f"{url}?statement_cache_size=0&pool_size=2", clock=Clock())
    try:
        job = await add_and_claim(pooled)
        await add(pooled)
        finished = await pooled.finish_jobs([completion(job)], claim=wish(1))
        assert len(finished.claimed) == 1
        assert len(await pooled.list_jobs(EVERYTHING)) == 2
    finally:
        await pooled.close()


async def test_job_transaction_plans_as_usual(store: PostgresStore) -> None:
    """What is set for our own statements is not for the handler's."""
    tx = await store.begin()
    found = await tx.fetch("SELECT current_setting('enable_seqscan') AS setting")
    await tx.rollback()

    assert found == [{"setting": "on"}]


async def test_database_without_tables_says_what_to_do(make_database: MakeDatabase) -> None:
    empty = await PostgresStore.open(make_database(), clock=Clock())
    try:
        with pytest.raises(SchemaOutdated, match="windrow db migrate"):
            await claim(empty)
    finally:
        await empty.close()


def test_options_for_us_are_taken_out_of_the_url() -> None:
    url, options = parse_url("postgresql://h/db?pool_size=3&sslmode=require&statement_cache_size=0")

    assert url == "postgresql://h/db?sslmode=require"
    assert options == PoolOptions(pool_size=3, statement_cache_size=0)


def test_option_that_is_no_number_is_refused() -> None:
    with pytest.raises(ConfigError, match="pool_size"):
        parse_url("postgresql://h/db?pool_size=many")


async def test_a_database_that_does_not_exist_is_an_error_with_a_hint(url: str) -> None:
    with pytest.raises(StoreError, match=r'database ".*_gone" does not exist') as refused:
        await PostgresStore.open(f"{url}_gone", clock=Clock())
    assert "WINDROW_DATABASE_URL" in refused.value.hint
