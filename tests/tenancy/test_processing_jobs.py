"""J7: row-level security by org_id, through processing_jobs and by its printed statements."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from tests.seeds.test_processing_jobs import CALL, CLAIM, COMPLETE, ENQUEUE, FAIL, seconds
from tests.tenancy.conftest import Tenancy
from windrow import Queue
from windrow.ids import owner_id
from windrow.queue.opening import open_store

ACME, GLOBEX = owner_id("acme"), owner_id("globex")


@pytest.fixture
async def tenancy(tenancy: Tenancy) -> Tenancy:
    store = await open_store(tenancy.url)
    await store.install_dialect("processing_jobs")
    await store.close()
    return tenancy


async def orgs(db: Any) -> set[str]:
    return {str(row[0]) for row in await db.fetch("select org_id from processing_jobs")}


async def test_j7_tenant_enqueues_and_sees_only_its_own_rows(tenancy: Tenancy) -> None:
    async with (
        tenancy.connected("acme") as acme,
        tenancy.connected("globex") as globex,
        tenancy.connected("worker") as worker,
    ):
        await acme.execute(ENQUEUE, ACME, CALL, "analyze", "{}")
        await globex.execute(ENQUEUE, GLOBEX, CALL, "analyze", "{}")
        await globex.execute(
            "insert into processing_jobs (call_id, stage, status) values ($1, 'a', 'queued')", CALL
        )

        assert await orgs(acme) == {ACME}
        assert await orgs(globex) == {GLOBEX}
        assert await orgs(worker) == {ACME, GLOBEX}
        assert await globex.fetchval("select count(*) from processing_jobs") == 2


async def test_j7_tenant_cannot_write_rows_of_another(tenancy: Tenancy, owner: Queue) -> None:
    async with tenancy.connected("acme") as acme, tenancy.connected("globex") as globex:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await acme.execute(ENQUEUE, GLOBEX, CALL, "analyze", "{}")
        await globex.execute(ENQUEUE, GLOBEX, CALL, "analyze", "{}")
        job_id = await globex.fetchval("select id from processing_jobs")

        for statement in (
            "update processing_jobs set status = 'failed' where id = $1",
            "delete from processing_jobs where id = $1",
        ):
            assert (await acme.execute(statement, job_id)).endswith(" 0")

        assert await globex.fetchval("select status from processing_jobs") == "queued"


async def test_j7_worker_runs_the_rows_of_all_by_the_printed_statements(tenancy: Tenancy) -> None:
    async with (
        tenancy.connected("acme") as acme,
        tenancy.connected("globex") as globex,
        tenancy.connected("worker") as worker,
    ):
        await acme.execute(ENQUEUE, ACME, CALL, "analyze", "{}")
        await globex.execute(ENQUEUE, GLOBEX, CALL, "analyze", "{}")

        first, second = [await worker.fetchrow(CLAIM, "w1") for _ in range(2)]
        assert await acme.fetchval("select status from processing_jobs") == "processing"
        assert await acme.fetchval("select locked_by from processing_jobs") == "w1"
        await worker.execute(COMPLETE, first["id"])
        await worker.execute(FAIL, second["id"], "boom", seconds(60))

        assert await acme.fetchval("select status from processing_jobs") == "done"
        assert await globex.fetchval("select last_error from processing_jobs") == "boom"


async def test_j7_tenant_claims_nothing(tenancy: Tenancy) -> None:
    async with tenancy.connected("acme") as acme:
        await acme.execute(ENQUEUE, ACME, CALL, "analyze", "{}")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await acme.fetchrow(CLAIM, "acme")
