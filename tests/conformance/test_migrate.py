"""migrate: from nothing to the tables this code knows, however many do it at once."""

from __future__ import annotations

import asyncio
from importlib import resources
from typing import Any

import pytest

from tests.builders import add, state
from tests.conformance.conftest import connect_beside
from tests.migrations import (
    ADDITIONS,
    later_migrations,
    make_development_database,
    traces,
)
from windrow.db.migrations import History, check_history, latest_version, load_migrations
from windrow.errors import SchemaOutdated, SchemaTooNew, SchemaTooOld, StoreError
from windrow.queue.job import JobState
from windrow.queue.opening import open_store
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("dialects")

# What a SQLite database is made of.
SQLITE_CATALOG = """
    select type, name, tbl_name, sql from sqlite_master
    where name not like 'sqlite\\_%' escape '\\' order by 1, 2
"""
# What a Postgres schema is made of: tables with their partition bounds, columns, indexes,
# constraints, sequences, functions and triggers.
POSTGRES_CATALOG = """
    select 'table', c.relname, c.relkind::text, concat(
        pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid), c.reloptions::text,
        pg_get_viewdef(c.oid))
    from pg_class c where c.relnamespace = 'windrow'::regnamespace and c.relkind in ('r','p','v')
    union all
    select 'column', a.attrelid::regclass::text, a.attname, concat_ws(' ',
        format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
        a.attstorage, pg_get_expr(d.adbin, d.adrelid))
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where c.relnamespace = 'windrow'::regnamespace and c.relkind in ('r','p','v')
      and a.attnum > 0 and not a.attisdropped
    union all
    select 'index', i.indrelid::regclass::text, i.indexrelid::regclass::text,
        pg_get_indexdef(i.indexrelid)
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = 'windrow'::regnamespace
    union all
    select 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    from pg_constraint where connamespace = 'windrow'::regnamespace
    union all
    select 'sequence', sequencename, data_type::text, concat_ws(' ', increment_by, cache_size)
    from pg_sequences where schemaname = 'windrow'
    union all
    select 'function', proname, pg_get_function_identity_arguments(oid), prosrc
    from pg_proc where pronamespace = 'windrow'::regnamespace
    union all
    select 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(t.oid)
    from pg_trigger t join pg_class c on c.oid = tgrelid
    where c.relnamespace = 'windrow'::regnamespace and not tgisinternal
    order by 1, 2, 3
"""


@pytest.fixture
async def empty(empty_url: str):
    store = await open_store(empty_url)
    yield store
    await store.close()


@pytest.fixture
def package(store_name: str) -> str:
    return f"windrow.queue.{store_name}"


async def test_empty_database_has_version_zero(empty: Store) -> None:
    assert await empty.schema_version() == 0
    with pytest.raises(SchemaOutdated) as outdated:
        await empty.check_schema()

    assert outdated.value.found == 0


async def test_verbs_on_an_empty_database_fail_with_a_clear_error(empty: Store) -> None:
    with pytest.raises(StoreError):
        await add(empty)


async def test_migrating_makes_the_tables(empty: Store, package: str) -> None:
    applied = await empty.migrate()

    assert applied == [migration.name for migration in load_migrations(package)]
    assert await empty.schema_version() == latest_version(package)
    await empty.check_schema()
    assert await state(empty, await add(empty)) == JobState.READY


async def test_migrating_again_changes_nothing(empty: Store, package: str) -> None:
    await empty.migrate()
    job_id = await add(empty)

    assert await empty.migrate() == []
    assert await empty.schema_version() == latest_version(package)
    assert await state(empty, job_id) == JobState.READY


async def test_several_may_migrate_at_once(empty_url: str, package: str, store_name: str) -> None:
    known = [migration.name for migration in load_migrations(package)]
    stores = [await open_store(empty_url) for _ in range(4)]
    try:
        with later_migrations(store_name, ADDITIONS[store_name]) as later:
            applied = await asyncio.gather(*(store.migrate() for store in stores))
            for store in stores:
                await store.check_schema()
                await add(store)
    finally:
        for store in stores:
            await store.close()

    assert sorted(name for names in applied for name in names) == [*known, *later]


async def test_migration_that_fails_leaves_those_before_it_and_is_applied_later(
    empty: Store, package: str, store_name: str
) -> None:
    known = [migration.name for migration in load_migrations(package)]
    good, *_ = ADDITIONS[store_name]
    with later_migrations(store_name, [good, "no SQL at all"]), pytest.raises(StoreError):
        await empty.migrate()
    with later_migrations(store_name, ADDITIONS[store_name][:2]) as later:
        applied = await empty.migrate()
        await empty.check_schema()

    # Postgres commits migration by migration, SQLite all of them at once.
    assert applied == ([later[1]] if store_name == "postgres" else [*known, *later])
    assert await state(empty, await add(empty)) == JobState.READY


async def test_newer_database_is_refused(empty: Store, package: str, store_name, empty_url) -> None:
    await empty.migrate()
    await pretend_version(store_name, empty_url, latest_version(package) + 1)
    assert await empty.schema_version() == latest_version(package) + 1

    with pytest.raises(SchemaTooNew):
        await empty.check_schema()


async def test_newer_database_is_left_as_it_is(
    empty: Store, package: str, store_name, empty_url
) -> None:
    await empty.migrate()
    await pretend_version(store_name, empty_url, latest_version(package) + 1)
    with pytest.raises(SchemaTooNew):
        await empty.migrate()

    assert await empty.schema_version() == latest_version(package) + 1


@pytest.mark.parametrize("level", [1, 17, 33])
async def test_database_of_a_development_version_is_refused_and_left_as_it_is(
    empty: Store, store_name: str, empty_url: str, level: int
) -> None:
    beside = connect_beside(store_name, empty_url)
    make_development_database(store_name, beside, level)
    before = traces(store_name, beside)

    with pytest.raises(SchemaTooOld, match=r"0001_queue.*start with a new database"):
        await empty.migrate()
    with pytest.raises(SchemaTooOld) as refused:
        await empty.check_schema()

    assert refused.value.found == await empty.schema_version() == level
    assert traces(store_name, beside) == before
    beside.close()


async def pretend_version(store_name: str, url: str, version: int) -> None:
    connection = connect_beside(store_name, url)
    table = {"sqlite": "windrow_migration", "postgres": "windrow.migration"}[store_name]
    last = f"(select max(version) from {table})"
    connection.execute(f"update {table} set version = {version} where version = {last}")
    connection.close()


def test_version_check_names_both_versions(package: str) -> None:
    known = latest_version(package)
    first = load_migrations(package)[0].name
    check_history(History(known, first), package)
    with pytest.raises(SchemaTooNew, match=str(known + 7)):
        check_history(History(known + 7, first), package)
    with pytest.raises(SchemaOutdated, match="no Windrow tables"):
        check_history(History(), package)


def test_migrations_are_numbered_in_order_and_alike_in_every_store() -> None:
    sqlite = load_migrations("windrow.queue.sqlite")
    postgres = load_migrations("windrow.queue.postgres")

    versions = [migration.version for migration in sqlite]
    assert versions == sorted(set(versions))
    assert [migration.name for migration in sqlite] == [migration.name for migration in postgres]


async def test_migrations_add_up_to_the_schema_file(
    empty: Store, store_name: str, empty_url: str, package: str, request, tmp_path
) -> None:
    await empty.migrate()
    if store_name == "postgres":
        other_url = request.getfixturevalue("make_database")()
    else:
        other_url = f"sqlite:///{tmp_path / 'schema.db'}"
    schema = (resources.files(package) / "schema.sql").read_text("utf-8")
    run_script(store_name, other_url, schema)

    assert catalog(store_name, other_url) == catalog(store_name, empty_url)


def run_script(store_name: str, url: str, script: str) -> None:
    connection = connect_beside(store_name, url)
    if store_name == "postgres":
        connection.execute(script)
    else:
        connection.executescript(script)
    connection.close()


def catalog(store_name: str, url: str) -> list[Any]:
    """Everything the tables are made of, with the white space of statements evened out."""
    connection = connect_beside(store_name, url)
    query = POSTGRES_CATALOG if store_name == "postgres" else SQLITE_CATALOG
    found = [
        tuple(" ".join(str(value).split()) for value in row)
        for row in connection.execute(query).fetchall()
    ]
    connection.close()
    return found
