"""Row-level security through the dialects crawl_jobs and unified_queue, with real roles (N9)."""

from __future__ import annotations

import uuid
from typing import Any

import asyncpg
import pytest

from tests.seeds import test_crawl_jobs as crawl
from tests.seeds.test_unified_queue import PostgresDb, at, enqueue, take
from tests.tenancy.conftest import Tenancy
from windrow.ids import owner_id
from windrow.queue.opening import open_store

ACME, GLOBEX = (uuid.UUID(owner_id(name)) for name in ("acme", "globex"))


@pytest.fixture
async def tenancy(tenancy: Tenancy) -> Tenancy:
    store = await open_store(tenancy.url)
    for name in ("crawl_jobs", "unified_queue"):
        await store.install_dialect(name)
    await store.close()
    return tenancy


async def column(db: Any, name: str, table: str) -> set[Any]:
    return {row[0] for row in await db.fetch(f"SELECT {name} FROM {table}")}


async def test_tenant_sees_and_cancels_its_own_crawls_only(tenancy: Tenancy) -> None:
    async with (
        tenancy.connected("acme") as acme,
        tenancy.connected("globex") as globex,
        tenancy.connected("worker") as worker,
    ):
        own = await crawl.enqueue(acme)
        other = await crawl.enqueue(globex, user_id=GLOBEX)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await crawl.enqueue(acme, user_id=GLOBEX)
        assert await column(acme, "user_id", "crawl_jobs") == {ACME}
        assert await column(globex, "user_id", "crawl_jobs") == {GLOBEX}
        assert await column(worker, "user_id", "crawl_jobs") == {ACME, GLOBEX}

        cancel = "UPDATE crawl_jobs SET status = 'cancelled' WHERE id = $1"
        assert crawl.changed(await acme.execute(cancel, other)) == 0
        assert crawl.changed(await acme.execute("DELETE FROM crawl_jobs WHERE id = $1", other)) == 0
        assert crawl.changed(await acme.execute(cancel, own)) == 1
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await crawl.work(acme)

        assert (await crawl.work(worker))["id"] == other
        await worker.execute(crawl.HEARTBEAT, other)
        await worker.execute(crawl.COMPLETE, other)
        assert await column(globex, "status", "crawl_jobs") == {"completed"}


async def test_tenant_sees_its_own_items_only(tenancy: Tenancy) -> None:
    async with (
        tenancy.connected("acme") as acme,
        tenancy.connected("globex") as globex,
        tenancy.connected("worker") as worker,
    ):
        await enqueue(PostgresDb(acme), tenant_id="acme", idempotency_key="same")
        other = await enqueue(PostgresDb(globex), tenant_id="", idempotency_key="same")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await enqueue(PostgresDb(acme), tenant_id="globex")
        assert await column(acme, "tenant_id", "unified_queue") == {"acme"}
        assert await column(globex, "tenant_id", "unified_queue") == {"globex"}
        assert await column(worker, "tenant_id", "unified_queue") == {"acme", "globex"}
        assert crawl.changed(await acme.execute("DELETE FROM unified_queue")) == 1

        row = await take(PostgresDb(worker))
        assert row is not None
        assert row["queue_id"] == other
        end = "UPDATE unified_queue SET status = 'done' WHERE queue_id = $1"
        assert crawl.changed(await acme.execute(end, other)) == 0
        assert crawl.changed(await worker.execute(end, other)) == 1
        assert at(0) > (await column(globex, "updated_at", "unified_queue")).pop()
