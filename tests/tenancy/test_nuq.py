"""Tenants through the dialect `nuq`: what each sees, enqueues and cancels is its own."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.seeds import nuq
from tests.tenancy.conftest import Tenancy
from windrow import Queue
from windrow.ids import owner_id
from windrow.pipelines.index.sessions import open_session
from windrow.services.database import install_dialect

RELATIONS = ("queue_scrape", "queue_scrape_backlog", "group_crawl", "queue_crawl_finished")
ACME, GLOBEX = UUID(owner_id("acme")), UUID(owner_id("globex"))


async def _fill(db: Any, owner: UUID) -> UUID:
    """A group with a job that waits and one that is held, as a tenant adds them."""
    group = await nuq.add_group(db, owner)
    await nuq.add(db, owner=owner, group=group)
    await db.fetchval(nuq.ADD_TO_BACKLOG, "{}", 0, owner, group, None)
    return group


async def test_tenants_see_and_write_their_own_through_nuq(tenancy: Tenancy) -> None:
    await install_dialect(tenancy.url, "nuq")
    async with tenancy.connected("acme") as acme, tenancy.connected("globex") as globex:
        group = await _fill(acme, ACME)
        await nuq.add(acme)  # whose it is the session says
        await _fill(globex, GLOBEX)
        for relation, count in zip(RELATIONS, (2, 1, 1, 0), strict=True):
            query = f"SELECT owner_id FROM nuq.{relation}"
            assert [row["owner_id"] for row in await acme.fetch(query)] == [ACME] * count
        with pytest.raises(asyncpg.PostgresError):
            await nuq.add(acme, owner=GLOBEX)
        assert (
            await globex.execute("DELETE FROM nuq.group_crawl WHERE id = $1", group) == "DELETE 0"
        )
        cancel = "UPDATE nuq.group_crawl SET status = 'cancelled' WHERE id = $1"
        assert await globex.execute(cancel, group) == "UPDATE 0"
        assert await acme.execute(cancel, group) == "UPDATE 1"
        statuses = await acme.fetch("SELECT status::text FROM nuq.queue_scrape ORDER BY 1")
        assert [row["status"] for row in statuses] == ["failed", "failed", "queued"]
        left = await globex.fetch("SELECT status::text FROM nuq.queue_scrape")
        assert [row["status"] for row in left] == ["queued"]


async def test_tenants_read_the_sessions_of_their_own_crawls(tenancy: Tenancy) -> None:
    await install_dialect(tenancy.url, "nuq")
    async with Queue.open(tenancy.url) as queue:
        for tenant in ("acme", "globex"):
            payload = {"url": f"http://{tenant}/"}
            await queue.enqueue("web.crawl", payload, queue="default", tenant=tenant)
            [root] = (await queue.claim(["default"])).jobs
            group = await queue.create_group(root=root, hold=True, tenant=tenant)
            await open_session(queue, group.id)
    query = "SELECT base_url FROM webhook.crawl_sessions"
    seen_by = {"acme": ["acme"], "globex": ["globex"], "worker": ["acme", "globex"]}
    for role, tenants in seen_by.items():
        async with tenancy.connected(role) as reader:
            shown = {row["base_url"] for row in await reader.fetch(query)}
        assert shown == {f"http://{tenant}/" for tenant in tenants}


async def test_tenants_claim_nothing_through_nuq_and_workers_all(tenancy: Tenancy) -> None:
    await install_dialect(tenancy.url, "nuq")
    async with tenancy.connected("acme") as acme, tenancy.connected("worker") as worker:
        await nuq.add(acme)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await nuq.take(acme)
        job = await nuq.take(worker)
        assert await nuq.renew(worker, job)
        assert await nuq.finish(worker, job, {"ok": True})
        assert (await nuq.see(acme, job["id"]))["status"] == "completed"
