"""J7: a tenant's role sees, enqueues and cancels only its rows; workers see all."""

from __future__ import annotations

import asyncpg
import pytest

from tests.tenancy.conftest import Tenancy
from windrow import Done, NewJob, Queue, Worker, handler
from windrow.errors import ConfigError, GroupNotFound, JobNotFound, NotAllowed
from windrow.queue.job import JobState


async def assert_counts_are_true(tenancy: Tenancy) -> None:
    async with tenancy.connected() as owner:
        tallied = await owner.fetch(
            "SELECT queue, state, sum(n)::bigint AS n FROM windrow.tally GROUP BY 1, 2 "
            "HAVING sum(n) <> 0 ORDER BY 1, 2"
        )
        counted = await owner.fetch(
            "SELECT queue, state, count(*) AS n FROM windrow.job GROUP BY 1, 2 ORDER BY 1, 2"
        )
    assert [tuple(row) for row in tallied] == [tuple(row) for row in counted]


async def test_tenants_role_sees_only_its_own_jobs(acme: Queue, globex: Queue) -> None:
    mine = await acme.enqueue("work", {"secret": "of acme"}, tags=["a"])
    theirs = await globex.enqueue("work", {"secret": "of globex"}, tags=["a"])
    assert (mine.tenant, theirs.tenant) == ("acme", "globex")
    assert [job.id for job in await acme.list()] == [mine.id]
    assert [job.id for job in await acme.list(tag="a")] == [mine.id]
    assert (await acme.get(mine.id)).payload == {"secret": "of acme"}
    with pytest.raises(JobNotFound):
        await acme.get(theirs.id)


async def test_tenants_role_cannot_change_jobs_of_others(acme: Queue, globex: Queue) -> None:
    theirs = await globex.enqueue("work")
    for verb in (acme.cancel, acme.retry, acme.delete, acme.pause_job, acme.resume_job):
        with pytest.raises(JobNotFound):
            await verb(theirs.id)
    with pytest.raises(JobNotFound):
        await acme.edit(theirs.id, priority=9)
    job = await globex.get(theirs.id)
    assert (job.state, job.priority) == (JobState.READY, 5)


async def test_group_keys_are_those_of_the_tenants_own_groups(
    acme: Queue, globex: Queue, tenancy: Tenancy
) -> None:
    mine, theirs = await acme.create_group(max_jobs=2), await globex.create_group()
    urls = [NewJob("page", group=mine.id, group_key=key) for key in ("a", "b", "a", "c")]
    inserted = await acme.enqueue_many(urls)
    assert [one.outcome for one in inserted] == ["inserted", "inserted", "left_out", "left_out"]
    assert await acme.keep_group_keys(mine.id, ["a", "d"], job=inserted[0].id) == {"a", "d"}

    await globex.enqueue("page", group=theirs.id, group_key="a")
    with pytest.raises(GroupNotFound):
        await globex.keep_group_keys(mine.id, ["e"], job=inserted[0].id)
    with pytest.raises(GroupNotFound):
        await globex.enqueue("page", group=mine.id, group_key="e")
    async with tenancy.connected("acme") as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch("SELECT * FROM windrow.group_key")
    await assert_counts_are_true(tenancy)


async def test_tenants_role_changes_its_own_jobs(acme: Queue, tenancy: Tenancy) -> None:
    job = await acme.enqueue("work", {"n": 1})
    await acme.edit(job.id, payload={"n": 2}, priority=7)
    await acme.pause_job(job.id)
    await acme.resume_job(job.id)
    await acme.cancel(job.id, reason="not needed")
    found = await acme.get(job.id)
    assert (found.state, found.payload) == (JobState.CANCELLED, {"n": 2})
    assert [error.message for error in found.errors] == ["not needed"]
    await acme.retry(job.id)
    await acme.delete(job.id)
    assert await acme.list() == []
    await assert_counts_are_true(tenancy)


async def test_tenant_cannot_enqueue_for_another(acme: Queue, globex: Queue) -> None:
    with pytest.raises(NotAllowed):
        await acme.enqueue("work", tenant="globex")
    with pytest.raises(NotAllowed):
        await acme.enqueue_many([NewJob("work"), NewJob("work", tenant="globex")])
    assert await acme.list() == await globex.list() == []


async def test_worker_runs_jobs_of_all_tenants(
    acme: Queue, globex: Queue, worker: Queue, tenancy: Tenancy
) -> None:
    @handler("work")
    async def work(job: object) -> Done:
        return Done({"ok": True})

    ids = [(await acme.enqueue("work")).id, (await globex.enqueue("work")).id]
    await acme.enqueue_many([NewJob("work") for _ in range(100)])
    await Worker(worker, [work], concurrency=4).run(until_idle=True)
    assert (await worker.get(ids[1])).tenant == "globex"
    assert (await acme.wait(ids[0], timeout=10)).result == {"ok": True}
    assert (await acme.counts())[JobState.COMPLETED] == 101
    assert (await globex.counts())[JobState.COMPLETED] == 1
    await assert_counts_are_true(tenancy)


async def test_tenants_have_unique_keys_of_their_own(acme: Queue, globex: Queue) -> None:
    mine = await acme.enqueue("work", unique="one")
    theirs = await globex.enqueue("work", unique="one")
    again = await globex.enqueue("work", unique="one")
    assert mine.id != theirs.id == again.id
    await acme.enqueue("work", {"n": 2}, unique="one", on_conflict="replace")
    assert (await acme.get(mine.id)).payload == {"n": 2}
    assert (await globex.get(theirs.id)).payload is None


async def test_groups_belong_to_their_tenant(
    acme: Queue, globex: Queue, worker: Queue, tenancy: Tenancy
) -> None:
    group = await acme.create_group(then=NewJob("finish"))
    member = await acme.enqueue("work", group=group.id)
    assert group.tenant == "acme"
    assert await globex.groups() == []
    with pytest.raises(GroupNotFound):
        await globex.group(group.id)
    with pytest.raises(NotAllowed):
        await globex.enqueue("work", group=group.id)
    with pytest.raises(GroupNotFound):
        await globex.cancel_group(group.id)
    lease = await worker.claim(limit=10)
    assert [job.id for job in lease.jobs] == [member.id]
    await lease.complete(lease.jobs[0])
    [finish] = await acme.list(state="ready")
    assert (finish.kind, finish.tenant) == ("finish", "acme")
    assert (await acme.group(group.id)).state == "completed"


async def test_cancelling_its_group_ends_a_tenants_members(acme: Queue, tenancy: Tenancy) -> None:
    group = await acme.create_group()
    job = await acme.enqueue("work", group=group.id)
    await acme.cancel_group(group.id)
    assert (await acme.get(job.id)).state is JobState.CANCELLED
    assert (await acme.group(group.id)).state == "cancelled"
    await assert_counts_are_true(tenancy)


async def test_tenant_follows_only_its_own_events(acme: Queue, globex: Queue) -> None:
    theirs = await globex.enqueue("work")
    mine = await acme.enqueue("work")
    await acme.cancel(mine.id)
    seen = [event async for event in acme.events("0", follow=False)]
    assert {event.job_id for event in seen} == {mine.id}
    assert theirs.id not in {event.job_id for event in seen}


async def test_tenant_neither_claims_nor_sees_limits(acme: Queue, owner: Queue) -> None:
    await owner.set_limit("shared", active=1)
    held = await acme.enqueue("work", limits=["shared"])
    assert held.state is JobState.HELD
    with pytest.raises(NotAllowed):
        await acme.claim()
    with pytest.raises(NotAllowed):
        await acme.limits()
    with pytest.raises(NotAllowed):
        await acme.pause("default")
    [job] = (await owner.claim()).jobs
    assert job.id == held.id
    assert [one.id for one in await acme.list(state="active")] == [held.id]


async def test_large_result_is_read_by_its_tenant_alone(
    acme: Queue, globex: Queue, worker: Queue
) -> None:
    await acme.enqueue("work")
    lease = await worker.claim()
    await lease.complete(lease.jobs[0], {"text": "x" * 2_000_000})
    job = await acme.get(lease.jobs[0].id)
    assert len(job.result["text"]) == 2_000_000
    await globex.enqueue("work")
    async with globex.store._database.connection() as connection:  # type: ignore[attr-defined]
        assert await connection.fetchval("SELECT count(*) FROM windrow.blob") == 0


async def test_deleting_its_job_leaves_a_blob_that_another_tenant_uses(
    acme: Queue, globex: Queue, worker: Queue
) -> None:
    ids = [(await acme.enqueue("work")).id, (await globex.enqueue("work")).id]
    lease = await worker.claim(limit=2)
    for job in lease.jobs:
        await lease.complete(job, {"text": "y" * 2_000_000})
    await acme.delete(ids[0])
    assert len((await globex.get(ids[1])).result["text"]) == 2_000_000


async def test_enqueuer_enqueues_for_any_tenant_and_sees_nothing(
    tenancy: Tenancy, acme: Queue, owner: Queue
) -> None:
    async with Queue.open(tenancy.url_of("enqueuer")) as enqueuer:
        job = await enqueuer.enqueue("work", tenant="acme", unique="one")
        again = await enqueuer.enqueue("work", tenant="acme", unique="one")
        nobodys = await enqueuer.enqueue("work")
        assert again.id == job.id
        for look in (enqueuer.list(), enqueuer.get(job.id), enqueuer.cancel(job.id)):
            with pytest.raises(NotAllowed):
                await look
        group = await owner.create_group()
        with pytest.raises(NotAllowed):
            await enqueuer.enqueue("work", group=group.id)
    assert [one.id for one in await acme.list()] == [job.id]
    assert (await owner.get(nobodys.id)).tenant is None
    await assert_counts_are_true(tenancy)


async def test_enqueuer_of_a_tenant_enqueues_for_it_alone(tenancy: Tenancy, acme: Queue) -> None:
    async with Queue.open(tenancy.url_of("acme_enqueuer")) as enqueuer:
        job = await enqueuer.enqueue("work")
        with pytest.raises(NotAllowed):
            await enqueuer.enqueue("work", tenant="globex")
    assert [one.id for one in await acme.list()] == [job.id]


async def test_stranger_may_do_nothing(tenancy: Tenancy) -> None:
    with pytest.raises((NotAllowed, ConfigError)):
        async with Queue.open(tenancy.url_of("stranger")) as queue:
            await queue.list()
