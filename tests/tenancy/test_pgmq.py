"""Row-level security through PGMQ: tenants send and look, workers read."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from tests.tenancy.conftest import Tenancy
from windrow import Queue
from windrow.queue.opening import open_store
from windrow.services.postgres import enable_tenancy, tenancy_status


@pytest.fixture
async def tenancy(tenancy: Tenancy) -> Tenancy:
    store = await open_store(tenancy.url)
    await store.install_dialect("pgmq")
    await store.close()
    async with tenancy.connected() as owner:
        await owner.execute("SELECT pgmq.create('jobs')")
        await owner.execute("SELECT pgmq.enable_notify_insert('jobs', 0)")
    await enable_tenancy(tenancy.url)
    return tenancy


async def messages(db: Any) -> list[str]:
    found = await db.fetch("SELECT message FROM pgmq.q_jobs ORDER BY msg_id")
    return [row["message"] for row in found]


async def test_tenants_send_and_see_their_own_messages(tenancy: Tenancy) -> None:
    async with (
        tenancy.connected("acme") as acme,
        tenancy.connected("globex") as globex,
        tenancy.connected("worker") as worker,
    ):
        assert await acme.fetchval("SELECT * FROM pgmq.send('jobs', '1')") == 1
        await globex.execute("SELECT pgmq.send_batch('jobs', ARRAY['2', '3']::jsonb[])")
        await globex.execute("INSERT INTO pgmq.q_jobs (vt, message) VALUES (now(), '4')")
        assert await messages(acme) == ["1"]
        assert await messages(globex) == ["2", "3", "4"]
        assert await messages(worker) == ["1", "2", "3", "4"]


async def test_tenants_read_nothing_and_workers_all(tenancy: Tenancy) -> None:
    async with tenancy.connected("acme") as acme, tenancy.connected("worker") as worker:
        await acme.execute("SELECT pgmq.send('jobs', '1')")
        for call in (
            "read('jobs', 30, 1)",
            "pop('jobs')",
            "delete('jobs', 1)",
            "purge_queue('jobs')",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await acme.execute(f"SELECT pgmq.{call}")
        [row] = await worker.fetch("SELECT * FROM pgmq.read('jobs', 30, 5)")
        assert await worker.fetchval("SELECT pgmq.archive('jobs', $1::bigint)", row["msg_id"])
        assert await acme.fetchval("SELECT message FROM pgmq.a_jobs") == "1"


async def test_tenants_enqueue_as_before_where_pgmq_is(tenancy: Tenancy) -> None:
    async with Queue.open(tenancy.url_of("acme")) as queue:
        await queue.enqueue("work", {"n": 1}, queue="jobs")
    async with tenancy.connected("globex") as globex, tenancy.connected("acme") as acme:
        assert await messages(globex) == []
        assert len(await messages(acme)) == 1


async def test_nothing_is_left_open(tenancy: Tenancy) -> None:
    assert (await tenancy_status(tenancy.url)).problems == ()
