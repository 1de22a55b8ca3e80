"""The ring of leaves that finished jobs lie in: emptied as a whole, and nobody waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.builders import (
    accept,
    add_completed,
    add_failed,
    add_many,
    claim,
    completion,
    exists,
    row,
    tallied,
)
from tests.conformance.test_retention import DAY, HOUR, prune
from windrow.clock import FakeClock
from windrow.db.postgres.connections import PLANNER_SETTINGS
from windrow.queue.job import JobState
from windrow.queue.postgres.pruning import KEPT, on_leaf
from windrow.queue.postgres.rows import sql
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.records import FOREVER

LEAVES = 28
PATIENCE = 30.0  # seconds; who waits for somebody that holds a snapshot waits for ever


@pytest.fixture
def url(make_database: Any, postgres_template: str) -> str:
    made: str = make_database(postgres_template)
    return made


@pytest.fixture
async def store(url: str, clock: FakeClock) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(url, clock=clock)
    yield opened
    await opened.close()


async def run(store: PostgresStore, text: str) -> list[Any]:
    async with store._database.connection() as connection:
        return list(await connection.fetch(text))


async def leaves_in_use(store: PostgresStore) -> dict[str, int]:
    """The leaves whose files are not empty, with their pages."""
    rows = await run(
        store,
        "SELECT relid::text AS name, pg_relation_size(relid) / 8192 AS pages "
        "FROM pg_partition_tree('windrow.job_finished') WHERE isleaf",
    )
    assert len(rows) == LEAVES + 1
    return {
        row["name"].removeprefix("windrow.job_finished_"): row["pages"]
        for row in rows
        if row["pages"]
    }


async def test_job_lies_in_the_leaf_of_the_hour_it_expires_in(
    store: PostgresStore, clock: FakeClock
) -> None:
    await add_completed(store, retention_seconds=HOUR)
    await add_completed(store, retention_seconds=HOUR + 3599)
    assert len(await leaves_in_use(store)) == 1
    await add_completed(store, retention_seconds=2 * HOUR)
    assert len(await leaves_in_use(store)) == 2


async def test_what_is_kept_longer_than_a_day_lies_apart(store: PostgresStore) -> None:
    await add_failed(store)
    await add_completed(store, retention_seconds=FOREVER)
    await add_completed(store, retention_seconds=DAY + 1)

    assert list(await leaves_in_use(store)) == ["kept"]


async def test_leaves_are_emptied_to_the_last_page_and_used_again_over_three_days(
    store: PostgresStore, clock: FakeClock
) -> None:
    seen: set[str] = set()
    for _ in range(72):
        await add_many(store, 20)
        await accept(store, *(completion(job) for job in await claim(store, 20)))
        await prune(store)
        in_use = await leaves_in_use(store)
        seen |= in_use.keys()
        # A day and the hour that has begun; never more, so reading by id stays cheap.
        assert len(in_use) <= 25
        clock.advance(HOUR)

    assert len(seen) == LEAVES
    clock.advance(2 * DAY)
    assert (await prune(store)).jobs > 0
    assert await leaves_in_use(store) == {}
    assert await tallied(store) == {}


async def test_leaf_that_was_not_emptied_in_time_keeps_what_has_not_expired(
    store: PostgresStore, clock: FakeClock
) -> None:
    old = await add_completed(store)
    clock.advance(LEAVES * HOUR)
    new = await add_completed(store)
    assert len(await leaves_in_use(store)) == 1
    await prune(store)

    assert not await exists(store, old)
    assert await exists(store, new)
    clock.advance(DAY + HOUR)
    await prune(store)
    assert await leaves_in_use(store) == {}


async def test_held_snapshot_lets_everything_go_on_and_the_leaf_goes_later(
    store: PostgresStore, clock: FakeClock, url: str
) -> None:
    """A long reader: pg_dump, a report. Nothing waits for it, and nothing waits for the prune."""
    await add_many(store, 500)
    done = await claim(store, 500)
    await accept(store, *(completion(job, {"n": 1}) for job in done))
    clock.advance(DAY + HOUR)
    reader = await asyncpg.connect(url)
    transaction = reader.transaction(isolation="repeatable_read")
    await transaction.start()
    assert await reader.fetchval("SELECT count(*) FROM windrow.job") == 500

    async def work() -> int:
        """Enqueue, claim, finish and look, none of which may wait."""
        n = 0
        for _ in range(20):
            async with asyncio.timeout(PATIENCE):
                job_ids = await add_many(store, 5)
                jobs = await claim(store, 5)
                await accept(store, *(completion(job) for job in jobs))
                assert len(await store.get_jobs(job_ids)) == 5
            n += 5
        return n

    other = await PostgresStore.open(url, clock=clock)
    try:
        finished, pruned = await asyncio.gather(work(), prune(other, limit=50))
        assert (finished, pruned.jobs) == (100, 500)
        assert await tallied(store) == {"default": {JobState.COMPLETED: 100}}
        assert len(await leaves_in_use(store)) == 2  # emptied, but not cut

        # The reader still sees what it saw, and everybody else that they are gone.
        assert await reader.fetchval("SELECT count(*) FROM windrow.job") == 500
        assert await store.get_jobs([done[0].id]) == {}
        await transaction.rollback()
        assert (await prune(other)).jobs == 0
        assert len(await leaves_in_use(store)) == 1
    finally:
        await reader.close()
        await other.close()


async def test_finished_jobs_without_a_leaf_are_kept_and_pruned_one_by_one(
    url: str, store: PostgresStore, clock: FakeClock
) -> None:
    former = row().id
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO windrow.job_finished (id, queue, kind, state, priority, run_at, "
            "created_at, finished_at, expires_at, max_attempts, max_crashes) VALUES "
            "(%s, 'default', 'work', 'completed', 5, now(), now(), now(), %s, 1, 1)",
            (former, clock.now()),
        )
        connection.execute("INSERT INTO windrow.job_payload VALUES (%s, '{}')", (former,))
        connection.execute("INSERT INTO windrow.tally VALUES (1, 'default', 'completed')")
    assert await exists(store, former)
    clock.advance(1)
    assert (await prune(store)).jobs == 1
    assert await tallied(store) == {}


PRUNING: dict[str, tuple[str | None, dict[str, Any], str]] = {
    "find_expired_jobs": (None, {"limit": 500, "now": None}, "job_finished_kept_expiry"),
    "find_expired_groups": (None, {"limit": 1, "now": None}, "job_group_expiry"),
    "find_expired_members": (
        None,
        {"group_id": row().id, "limit": 500},
        "job_finished_kept_group_id_id_idx",
    ),
    "scan_leaf": ("job_finished_07", {"first_page": 0, "end_page": 64, "now": None}, "Tid Range"),
    "prune_jobs": (
        "job_finished_07",
        {"ids": [row().id], "now": None},
        "job_finished_07_id_idx",
    ),
    "delete_groups": (None, {"ids": [row().id], "now": None}, "job_live_group"),
    "get_jobs": (None, {"ids": [row().id]}, "job_payload_pkey"),
    "delete_blobs": (None, {"hashes": [b"x"]}, "job_finished_07_result_hash_idx"),
}


@pytest.mark.parametrize("name", PRUNING)
def test_pruning_goes_by_index(url: str, name: str) -> None:
    leaf, values, index = PRUNING[name]
    statement = sql(name) if leaf is None else on_leaf(leaf, name)
    options = " ".join(f"-c {key}={value}" for key, value in PLANNER_SETTINGS.items())
    with (
        psycopg.connect(url, autocommit=True, options=options) as connection,
        psycopg.RawCursor(connection) as cursor,
    ):
        cursor.execute(
            f"EXPLAIN (FORMAT JSON) {statement.numbered}".encode(), statement.bind(values)
        )
        found = cursor.fetchone()
    assert found is not None
    text = json.dumps(found[0])

    assert index in text
    for bad in ("Seq Scan", "Hash Join", "Merge", "Hash Anti"):
        assert bad not in text, text


def test_kept_leaf_is_the_one_statements_name() -> None:
    assert KEPT in sql("find_expired_jobs").text
