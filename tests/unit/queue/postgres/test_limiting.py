"""What only rows that can be locked make possible, and necessary."""

from __future__ import annotations

import asyncio

import psycopg

from tests.builders import add, claim_one, complete
from tests.unit.queue.postgres.test_scheduling import until_it_waits
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.records import LimitRow


async def use(store: PostgresStore, key: str) -> None:
    """Let a job come and go, so that its key has a row and a slot that means nothing."""
    await add(store, limits=(key,))
    await store.promote_jobs()
    await complete(store, await claim_one(store))


async def test_key_that_somebody_counts_is_not_forgotten_and_holds_nobody_up(
    store: PostgresStore, url: str
) -> None:
    for key in ("free", "locked"):
        await use(store, key)
    with psycopg.connect(url) as other:
        other.execute("SELECT FROM windrow.job_limit WHERE key = 'locked' FOR UPDATE")
        async with asyncio.timeout(10):
            assert await store.prune_limits() == (1, "")
        slots = other.execute("SELECT key FROM windrow.job_slot").fetchall()
    assert slots == [("locked",)]
    assert await store.prune_limits() == (1, "")
    with psycopg.connect(url) as other:
        assert other.execute("SELECT count(*) FROM windrow.job_slot").fetchone() == (0,)


async def test_limit_that_is_set_while_its_key_is_forgotten_is_not_lost(
    store: PostgresStore, url: str
) -> None:
    await use(store, "api")
    with psycopg.connect(url) as other:
        other.execute("DELETE FROM windrow.job_limit WHERE key = 'api'")
        setting = asyncio.create_task(store.set_limit(LimitRow("api", active=1)))
        await until_it_waits(url)
        assert not setting.done()
    async with asyncio.timeout(10):
        await setting
    assert [(one.key, one.active) for one in await store.list_limits()] == [("api", 1)]


async def test_promotion_that_waited_for_a_key_that_was_forgotten_goes_on(
    store: PostgresStore, url: str
) -> None:
    await use(store, "api")
    await add(store, limits=("api",))
    with psycopg.connect(url) as other:
        other.execute("DELETE FROM windrow.job_limit WHERE key = 'api'")
        promoting = asyncio.create_task(store.promote_jobs())
        await until_it_waits(url)
        assert not promoting.done()
    async with asyncio.timeout(10):
        assert await promoting == 1
