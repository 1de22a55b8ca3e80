"""Dialects under row-level security: tenants have what is theirs, workers everything."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.tenancy.conftest import Tenancy
from tests.tenancy.test_roles import assert_counts_are_true
from windrow import Queue
from windrow.ids import owner_id
from windrow.queue.opening import open_store
from windrow.services.postgres import disable_tenancy, enable_tenancy, tenancy_status

# A relation, how a job gets there for an owner, how it is cancelled there, how a worker claims it.
INSERTS = {
    "public.processing_jobs": "INSERT INTO public.processing_jobs (org_id, call_id, stage, status) "
    "VALUES ($1, gen_random_uuid(), 'transcribe', 'queued') RETURNING id",
    "public.crawl_jobs": "INSERT INTO public.crawl_jobs (user_id, payload) "
    "VALUES ($1, '{}') RETURNING id",
    "nuq.queue_scrape": "INSERT INTO nuq.queue_scrape (owner_id, data) "
    "VALUES ($1, '{}') RETURNING id",
    "public.unified_queue": "INSERT INTO public.unified_queue (queue_id, item_type, op, tenant_id, "
    "collection, idempotency_key, payload_json) VALUES (gen_random_uuid()::text, 'file', 'ingest', "
    "$1, 'c', 'one of ' || $1, '{}') RETURNING queue_id",
}
OWNERS = {
    "public.unified_queue": "tenant_id",
    "public.processing_jobs": "org_id",
    "public.crawl_jobs": "user_id",
    "nuq.queue_scrape": "owner_id",
}
CANCELS = {
    "public.unified_queue": "DELETE FROM public.unified_queue",
    "public.processing_jobs": "UPDATE public.processing_jobs SET status = 'cancelled'",
    "public.crawl_jobs": "UPDATE public.crawl_jobs SET status = 'cancelled'",
    "nuq.queue_scrape": "DELETE FROM nuq.queue_scrape",
}
CLAIMS = {
    "public.unified_queue": "UPDATE public.unified_queue SET status = 'in_progress', lease_until = "
    "(now() + interval '1 minute')::text, worker_id = 'hand' WHERE queue_id IN (SELECT queue_id "
    "FROM public.unified_queue WHERE status = 'pending' ORDER BY priority DESC, created_at LIMIT 1 "
    "FOR UPDATE SKIP LOCKED) RETURNING queue_id",
    "public.processing_jobs": "UPDATE public.processing_jobs SET status = 'processing', "
    "locked_at = now(), locked_by = 'hand' WHERE id = (SELECT id FROM public.processing_jobs "
    "WHERE status = 'queued' ORDER BY available_at FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id",
    "public.crawl_jobs": "UPDATE public.crawl_jobs SET status = 'processing', "
    "worker_id = gen_random_uuid(), started_at = now(), last_heartbeat = now() WHERE id = (SELECT "
    "id FROM public.crawl_jobs WHERE status = 'pending' ORDER BY priority DESC, created_at "
    "FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id",
    "nuq.queue_scrape": "UPDATE nuq.queue_scrape SET status = 'active', lock = gen_random_uuid(), "
    "locked_at = now() WHERE id = (SELECT id FROM nuq.queue_scrape WHERE status = 'queued' "
    "ORDER BY priority, created_at FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id",
}
RELATIONS = list(INSERTS)


async def install(tenancy: Tenancy, relation: str) -> None:
    schema, name = relation.split(".")
    store = await open_store(tenancy.url)
    try:
        await store.install_dialect(name if schema == "public" else schema)
    finally:
        await store.close()


def key(relation: str) -> str:
    return "queue_id" if relation == "public.unified_queue" else "id"


def named(tenant: str, relation: str) -> UUID | str:
    """A tenant as the dialect names it."""
    return tenant if relation == "public.unified_queue" else UUID(owner_id(tenant))


async def ids(connection: Any, relation: str) -> set[Any]:
    rows = await connection.fetch(f"SELECT {key(relation)} FROM {relation}")
    return {row[0] for row in rows}


@pytest.mark.parametrize("relation", RELATIONS)
async def test_tenants_share_a_dialect_and_see_their_own(tenancy: Tenancy, relation: str) -> None:
    await install(tenancy, relation)
    assert (await tenancy_status(tenancy.url)).problems == ()
    async with tenancy.connected("acme") as acme, tenancy.connected("globex") as globex:
        mine = await acme.fetchval(INSERTS[relation], named("acme", relation))
        theirs = await globex.fetchval(INSERTS[relation], named("globex", relation))
        assert await ids(acme, relation) == {mine}
        assert await ids(globex, relation) == {theirs}
        [row] = await acme.fetch(f"SELECT * FROM {relation}")
        assert row[OWNERS[relation]] == named("acme", relation)
        await acme.execute(CANCELS[relation])
        await acme.execute(f"DELETE FROM {relation} WHERE {key(relation)} = $1", theirs)
        assert await ids(globex, relation) == {theirs}
    async with tenancy.connected() as owner:
        rows = await owner.fetch("SELECT tenant, state FROM windrow.job ORDER BY tenant")
    assert rows[-1] == ("globex", "ready")
    assert [row["state"] for row in rows[:-1]] in (["cancelled"], [])
    await assert_counts_are_true(tenancy)


@pytest.mark.parametrize("relation", RELATIONS)
async def test_tenant_enqueues_through_a_dialect_only_for_itself(
    tenancy: Tenancy, relation: str
) -> None:
    await install(tenancy, relation)
    async with tenancy.connected("acme") as acme:
        for other in (named("globex", relation), named("nobody", relation)):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await acme.fetchval(INSERTS[relation], other)
        mine = await acme.fetchval(INSERTS[relation], named("acme", relation))
        with suppress(asyncpg.PostgresError):  # or it changes nothing
            other = named("globex", relation)
            await acme.execute(f"UPDATE {relation} SET {OWNERS[relation]} = $1", other)
        assert await ids(acme, relation) == {mine}
    async with tenancy.connected() as owner:
        assert [tuple(row) for row in await owner.fetch("SELECT tenant FROM windrow.job")] == [
            ("acme",)
        ]


@pytest.mark.parametrize("relation", RELATIONS)
async def test_tenant_cannot_claim_through_a_dialect(tenancy: Tenancy, relation: str) -> None:
    await install(tenancy, relation)
    async with tenancy.connected("acme") as acme:
        await acme.fetchval(INSERTS[relation], named("acme", relation))
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await acme.fetch(CLAIMS[relation])


@pytest.mark.parametrize("relation", RELATIONS)
async def test_worker_claims_jobs_of_all_tenants_through_a_dialect(
    tenancy: Tenancy, relation: str
) -> None:
    await install(tenancy, relation)
    async with (
        tenancy.connected("acme") as acme,
        tenancy.connected("globex") as globex,
        tenancy.connected("worker") as worker,
    ):
        wanted = {
            await acme.fetchval(INSERTS[relation], named("acme", relation)),
            await globex.fetchval(INSERTS[relation], named("globex", relation)),
        }
        assert await ids(worker, relation) == wanted
        claimed = {await worker.fetchval(CLAIMS[relation]) for _ in range(2)}
        assert claimed == wanted
        states = {
            row["state"] for row in await acme.fetch("SELECT state, tenant FROM windrow.job_live")
        }
        assert states == {"active"}
    await assert_counts_are_true(tenancy)


@pytest.mark.parametrize("relation", RELATIONS)
async def test_dialect_works_for_its_owner_with_row_level_security_and_without(
    tenancy: Tenancy, relation: str
) -> None:
    await install(tenancy, relation)
    async with tenancy.connected() as owner:
        first = await owner.fetchval(INSERTS[relation], named("acme", relation))
        await disable_tenancy(tenancy.url)
        second = await owner.fetchval(INSERTS[relation], named("globex", relation))
        assert {await owner.fetchval(CLAIMS[relation]) for _ in range(2)} == {first, second}
        await install(tenancy, relation)
        await enable_tenancy(tenancy.url)
        third = await owner.fetchval(INSERTS[relation], named("initech", relation))
        assert await ids(owner, relation) == {first, second, third}
    await assert_counts_are_true(tenancy)


@pytest.mark.parametrize("relation", RELATIONS)
async def test_enqueuer_does_nothing_else_through_a_dialect(
    tenancy: Tenancy, relation: str
) -> None:
    await install(tenancy, relation)
    async with tenancy.connected("enqueuer") as enqueuer:
        insert = INSERTS[relation].partition(" RETURNING")[0]
        await enqueuer.execute(insert, named("acme", relation))
        for statement in (f"SELECT * FROM {relation}", f"DELETE FROM {relation}", CLAIMS[relation]):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await enqueuer.execute(statement)
    await assert_counts_are_true(tenancy)


async def test_taken_key_of_another_tenant_cannot_be_noticed(tenancy: Tenancy) -> None:
    await install(tenancy, "public.unified_queue")
    insert = INSERTS["public.unified_queue"].replace("'one of ' || $1", "'the same'")
    async with tenancy.connected("acme") as acme, tenancy.connected("globex") as globex:
        await acme.fetchval(insert, "acme")
        await globex.fetchval(insert, "globex")
        with pytest.raises(asyncpg.UniqueViolationError):
            await globex.fetchval(insert, "globex")


async def test_tenants_send_and_delete_by_pgmq(tenancy: Tenancy, acme: Queue) -> None:
    await install(tenancy, "pgmq.meta")
    async with tenancy.connected() as owner:
        await owner.execute("SELECT pgmq.create('tasks')")
    await enable_tenancy(tenancy.url)
    async with (
        tenancy.connected("acme") as mine,
        tenancy.connected("globex") as theirs,
        tenancy.connected("worker") as worker,
    ):
        number = await mine.fetchval("""SELECT pgmq.send('tasks', '{"n": 1}'::jsonb)""")
        other = await theirs.fetchval("""SELECT pgmq.send('tasks', '{"n": 2}'::jsonb)""")
        seen = await mine.fetch("SELECT msg_id, message::text FROM pgmq.q_tasks")
        assert [tuple(row) for row in seen] == [(number, '{"n": 1}')]
        assert await mine.execute("DELETE FROM pgmq.q_tasks WHERE msg_id = $1", other) == "DELETE 0"
        for statement in (
            "SELECT * FROM pgmq.read('tasks', 30, 5)",
            "SELECT * FROM pgmq.pop('tasks')",
            "SELECT pgmq.purge_queue('tasks')",
            "SELECT * FROM pgmq.metrics('tasks')",
            "SELECT pgmq.create('mine')",
            "SELECT pgmq.drop_queue('tasks')",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await mine.fetch(statement)
        read = await worker.fetch("SELECT msg_id FROM pgmq.read('tasks', 30, 5)")
        assert {row["msg_id"] for row in read} == {number, other}
        assert await worker.fetchval("SELECT pgmq.delete('tasks', $1::bigint)", other)
        assert await mine.execute("DELETE FROM pgmq.q_tasks") == "DELETE 1"
        async with tenancy.connected("enqueuer") as enqueuer:
            await enqueuer.execute("INSERT INTO pgmq.q_tasks (vt, message) VALUES (now(), '3')")
            for statement in (
                f"SELECT pgmq.delete('tasks', {number}::bigint)",
                "DELETE FROM pgmq.q_tasks",
                "SELECT * FROM pgmq.q_tasks",
            ):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await enqueuer.fetch(statement)
    assert await acme.list() == []
    await assert_counts_are_true(tenancy)
