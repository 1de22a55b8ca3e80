"""Installing dialects: all or nothing, again and again, and nothing is left of one removed."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest

from tests.builders import add, counted, tallied
from tests.conftest import MakeDatabase
from windrow.errors import ConfigError, StoreError
from windrow.ids import owner_id
from windrow.queue.dialects.loading import dialect_names
from windrow.queue.opening import open_store
from windrow.queue.postgres.schema import describe_schema
from windrow.queue.store import Store

NAMES = dialect_names("postgres")
KEPT = {"completed": 60, "failed": 60, "cancelled": 60}


@pytest.fixture
def url(make_database: MakeDatabase, postgres_template: str) -> str:
    return make_database(postgres_template)


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = await open_store(url)
    yield store
    await store.close()


@pytest.fixture
async def db(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


async def described(url: str, db: Any) -> tuple[str, list[Any]]:
    """Everything in windrow's schema, and whatever else there is in others. But for the table of
    videos, which is its owner's: it stays with what is in it."""
    others = await db.fetch(
        "SELECT relnamespace::regnamespace::text, relname FROM pg_class "
        "WHERE relnamespace::regnamespace::text !~ '^(pg_|information_schema|windrow$)' "
        "UNION ALL SELECT pronamespace::regnamespace::text, proname FROM pg_proc "
        "WHERE pronamespace::regnamespace::text !~ '^(pg_|information_schema)' "
        "UNION ALL SELECT typnamespace::regnamespace::text, typname FROM pg_type "
        "WHERE typnamespace::regnamespace::text !~ '^(pg_|information_schema|windrow$)' "
        "ORDER BY 1, 2"
    )
    theirs = [tuple(row) for row in others if "clipnest_videos" not in row[1]]
    return await describe_schema(url), theirs


@pytest.mark.parametrize("name", NAMES)
async def test_removing_a_dialect_leaves_everything_as_it_was(
    store: Store, url: str, db: Any, name: str
) -> None:
    before = await described(url, db)

    assert await store.install_dialect(name) is True
    first = await described(url, db)
    assert await store.install_dialect(name) is False
    assert await described(url, db) == first
    assert first != before
    assert await store.remove_dialect(name) is True

    assert await described(url, db) == before
    assert await store.remove_dialect(name) is False


@pytest.mark.parametrize("name", NAMES)
async def test_removing_a_dialect_leaves_no_settings_of_queues(
    store: Store, db: Any, name: str
) -> None:
    """But for those that somebody has made since."""
    settings = "SELECT * FROM windrow.queue ORDER BY name"
    await store.set_retention("mine", KEPT)
    before = await db.fetch(settings)
    await store.install_dialect(name)
    if name == "pgmq":
        await db.execute("SELECT pgmq.create('jobs')")
    await store.remove_dialect(name)
    assert await db.fetch(settings) == before

    await store.install_dialect(name)
    await store.set_retention("nuq.queue_scrape", KEPT)
    await store.pause_queue("nuq.queue_crawl_finished")
    await store.remove_dialect(name)
    left = await db.fetch("SELECT name, is_paused, failed_seconds FROM windrow.queue ORDER BY name")
    assert [tuple(row) for row in left] == [
        ("mine", False, 60),
        ("nuq.queue_crawl_finished", True, None),
        ("nuq.queue_scrape", False, 60),
    ]


async def test_all_dialects_live_side_by_side(store: Store, db: Any, url: str) -> None:
    before = await described(url, db)
    for name in NAMES:
        await store.install_dialect(name)
    job_id = await add(store)
    assert await tallied(store) == await counted(store)
    assert {one.name for one in await store.list_dialects() if one.is_current} == set(NAMES)
    for name in NAMES:
        await store.remove_dialect(name)
    assert await described(url, db) == before
    assert job_id in await store.get_jobs([job_id])


async def test_dialect_of_an_earlier_windrow_is_brought_up_to_date_by_migrating(
    store: Store, db: Any
) -> None:
    """Functions that had other parameters then are not left beside those of the same names."""
    await store.install_dialect("processing_jobs")
    await db.execute("UPDATE windrow.dialect SET version = 'earlier'")
    await db.execute(
        "CREATE FUNCTION windrow_dialect.lock_job(job_id uuid, is_strict boolean DEFAULT true) "
        "RETURNS windrow.job_live LANGUAGE sql AS 'SELECT NULL::windrow.job_live'"
    )
    [found] = [one for one in await store.list_dialects() if one.name == "processing_jobs"]
    assert not found.is_current

    assert await store.migrate() == ["dialect processing_jobs"]

    [found] = [one for one in await store.list_dialects() if one.name == "processing_jobs"]
    assert found.is_current
    assert await store.migrate() == []
    count = "SELECT count(*) FROM pg_proc WHERE proname = 'lock_job'"
    assert await db.fetchval(count) == 1


async def test_nothing_is_installed_over_a_table_of_the_same_name(
    store: Store, db: Any, url: str
) -> None:
    await db.execute("CREATE TABLE processing_jobs (id integer)")
    before = await described(url, db)

    with pytest.raises(StoreError, match="processing_jobs"):
        await store.install_dialect("processing_jobs")

    assert await described(url, db) == before
    assert [one for one in await store.list_dialects() if one.installed_at] == []


async def test_unknown_dialect_is_refused(store: Store) -> None:
    with pytest.raises(ConfigError, match="there is no dialect 'klingon'"):
        await store.install_dialect("klingon")
    with pytest.raises(ConfigError, match="there is no dialect 'klingon'"):
        await store.remove_dialect("klingon")


async def test_names_become_the_same_ids_as_in_python(
    dialect_database: Callable[[str], str],
) -> None:
    db = await asyncpg.connect(dialect_database("processing_jobs"))
    try:
        for name in ("acme", "", "x" * 43, "x" * 44, "é" * 100, f"{{{uuid.UUID(int=7)}}}"):
            found = await db.fetchval("SELECT windrow_dialect.as_uuid($1)", name)
            assert str(found) == owner_id(name), name
        made = [await db.fetchval("SELECT windrow_dialect.new_id()") for _ in range(2)]
        assert {one.version for one in made} == {7}
    finally:
        await db.close()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('"a\\u0000b"', '"a\\ufffdb"'),
        ('"a\\\\u0000b"', '"a\\\\u0000b"'),
        ('"\\\\\\u0000"', '"\\\\\\ufffd"'),
    ],
)
async def test_payload_that_jsonb_would_refuse_is_shown(
    dialect_database: Callable[[str], str], given: str, wanted: str
) -> None:
    db = await asyncpg.connect(dialect_database("processing_jobs"))
    try:
        shown = "SELECT windrow_dialect.as_jsonb($1::text::json) = $2::text::jsonb"
        assert await db.fetchval(shown, given, wanted)
    finally:
        await db.close()


@pytest.mark.parametrize("name", NAMES)
async def test_row_is_found_by_its_id_whatever_was_there_when_the_plan_was_made(
    dialect_database: Callable[[str], str], name: str
) -> None:
    """An empty partial index costs nothing, so a plan made then may go through all of one later:
    the condition of each must ask for more than the view does."""
    db = await asyncpg.connect(dialect_database(name))
    try:
        views = await db.fetch(
            "SELECT table_schema, table_name FROM information_schema.columns "
            "JOIN information_schema.views USING (table_schema, table_name) "
            "WHERE column_name = 'id' AND is_trigger_updatable = 'YES' "
            "AND table_schema NOT LIKE 'windrow%'"
        )
        for schema, view in views:
            look = f"EXPLAIN (COSTS OFF) SELECT * FROM {schema}.{view} WHERE id = $1"
            plan = [row[0] for row in await db.fetch(look, uuid.uuid4())]
            for line in plan:
                if not re.search(r" on job_(live|finished)", line):
                    continue
                assert re.search(r"using job_(live_pkey|finished_\w+_id_idx) on", line), line
    finally:
        await db.close()
