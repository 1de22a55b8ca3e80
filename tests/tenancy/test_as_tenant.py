"""`queue.as_tenant`: one pool for many tenants, each transaction acting for one of them."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests import pgbouncer
from tests.tenancy.conftest import Tenancy
from windrow import NewJob, Queue
from windrow.errors import ConfigError, JobNotFound, NotAllowed


@pytest.mark.parametrize("known_as", [None, "api"])
async def test_each_request_sees_the_rows_of_its_tenant(
    tenancy: Tenancy, known_as: str | None
) -> None:
    async with Queue.open(tenancy.url_of(known_as) if known_as else tenancy.url) as queue:
        acme, globex = queue.as_tenant("acme"), queue.as_tenant("globex")
        mine = await acme.enqueue("work", {"n": 1})
        await globex.enqueue_many([NewJob("work") for _ in range(60)])
        assert [job.id for job in await acme.list()] == [mine.id]
        assert len(await globex.list()) == 60
        with pytest.raises(JobNotFound):
            await globex.cancel(mine.id)
        await acme.cancel(mine.id)
        assert (await acme.get(mine.id)).tenant == "acme"
        with pytest.raises(NotAllowed):
            await acme.enqueue("work", tenant="globex")


async def test_requests_at_once_never_mix_tenants(tenancy: Tenancy) -> None:
    async with Queue.open(f"{tenancy.url_of('api')}?pool_size=3") as queue:

        async def request(number: int) -> None:
            name = f"tenant-{number % 5}"
            scoped = queue.as_tenant(name)
            await scoped.enqueue("work")
            assert {job.tenant for job in await scoped.list()} == {name}

        await asyncio.gather(*(request(number) for number in range(60)))


async def test_api_role_without_a_tenant_sees_nothing(tenancy: Tenancy, owner: Queue) -> None:
    await owner.enqueue("work", tenant="acme")
    await owner.enqueue("work")
    async with Queue.open(tenancy.url_of("api")) as queue:
        assert await queue.as_tenant("nobody").list() == []
        assert await queue.list() == []
        with pytest.raises(NotAllowed):
            await queue.enqueue("work")


async def test_nothing_of_a_tenant_stays_in_the_session(tenancy: Tenancy) -> None:
    async with Queue.open(f"{tenancy.url}?pool_size=1") as queue:
        await queue.as_tenant("acme").enqueue("work")
        with pytest.raises(NotAllowed):
            await queue.as_tenant("acme").enqueue("work", tenant="globex")
        await queue.enqueue("work", tenant="globex")
        assert len(await queue.list()) == 2


async def test_tenant_is_said_behind_a_pooler_in_transaction_mode(
    tenancy: Tenancy, pgbouncer_url: str
) -> None:
    url = pgbouncer.through(pgbouncer_url, tenancy.url)
    async with Queue.open(url) as queue:

        async def request(number: int) -> None:
            name = f"tenant-{number % 3}"
            await queue.as_tenant(name).enqueue("work")
            assert {job.tenant for job in await queue.as_tenant(name).list()} == {name}

        await asyncio.gather(*(request(number) for number in range(30)))


async def test_queue_may_be_opened_for_one_tenant(tenancy: Tenancy, globex: Queue) -> None:
    await globex.enqueue("work")
    async with Queue.open(tenancy.url_of("api"), tenant="acme") as queue:
        job = await queue.enqueue("work")
        assert [one.id for one in await queue.list()] == [job.id]
        with pytest.raises(ConfigError):
            queue.as_tenant("globex")


async def test_callers_transaction_acts_for_the_tenant_only_meanwhile(
    tenancy: Tenancy, owner: Queue
) -> None:
    acme = owner.as_tenant("acme")
    connection = await asyncpg.connect(tenancy.url)
    try:
        async with connection.transaction():
            job = await acme.enqueue("work", tx=connection)
            assert await connection.fetchval("SELECT current_setting('role')") == "none"
            with pytest.raises(NotAllowed):
                await acme.enqueue("work", tenant="globex", tx=connection)
            await connection.execute("CREATE TABLE of_the_caller (n integer)")
    finally:
        await connection.close()
    assert [one.id for one in await acme.list()] == [job.id]


async def test_without_row_level_security_there_is_no_tenants_queue(
    make_database: object, store_url: str
) -> None:
    async with Queue.open(store_url) as queue:
        with pytest.raises((ConfigError, NotAllowed)):
            await queue.as_tenant("acme").enqueue("work")
        assert await queue.list() == []


def test_blocking_queue_acts_for_a_tenant_too(tenancy: Tenancy) -> None:
    with Queue.sync(tenancy.url_of("api"), tenant="acme") as queue:
        assert queue.enqueue("work").tenant == "acme"
    with Queue.sync(tenancy.url_of("api")) as queue:
        assert [job.tenant for job in queue.as_tenant("acme").list()] == ["acme"]
        assert queue.as_tenant("globex").list() == []
