"""The owner of the tables need not be a superuser: it may make roles, and that is all."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from tests.conftest import MakeDatabase
from tests.tenancy.conftest import ROLES, Tenancy
from tests.tenancy.test_dialects import INSERTS, install
from tests.tenancy.test_roles import assert_counts_are_true
from windrow import Queue
from windrow.errors import NotAllowed
from windrow.services.database import migrate_database
from windrow.services.postgres import disable_tenancy, enable_tenancy


@pytest.fixture
def owned(
    postgres_url: str, make_database: MakeDatabase, roles: tuple[str, str]
) -> Iterator[Tenancy]:
    """An empty database of a role of its own."""
    suffix, password = roles
    name = f"owner_{suffix}"
    url = make_database()
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            sql.SQL("CREATE ROLE {} LOGIN CREATEROLE PASSWORD {}").format(
                sql.Identifier(name), sql.Literal(password)
            )
        )
        admin.execute(
            sql.SQL("ALTER DATABASE {} OWNER TO {}").format(
                sql.Identifier(parts.path[1:]), sql.Identifier(name)
            )
        )
    yield Tenancy(urlunsplit(parts._replace(netloc=f"{name}:{password}@{host}")), suffix, password)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(sql.Identifier(name)))
        admin.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            sql.SQL("ALTER DATABASE {} OWNER TO CURRENT_USER").format(
                sql.Identifier(parts.path[1:])
            )
        )
        admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


async def test_owner_without_other_powers_switches_it_on_and_acts_for_tenants(
    owned: Tenancy,
) -> None:
    await migrate_database(owned.url)
    assert (await enable_tenancy(owned.url)).problems == ()
    await install(owned, "public.processing_jobs")
    await disable_tenancy(owned.url)
    assert (await enable_tenancy(owned.url)).problems == ()
    async with owned.connected() as owner:
        for known_as in ("acme", "globex"):
            await owner.execute(f"GRANT {ROLES[known_as][0]} TO {owned.role(known_as)}")
            await owner.execute(
                "INSERT INTO windrow.tenant_role VALUES ($1, $2)", owned.role(known_as), known_as
            )
    async with Queue.open(owned.url) as queue, Queue.open(owned.url_of("acme")) as acme:
        mine = await queue.as_tenant("acme").enqueue("work")
        await queue.enqueue("work", tenant="globex")
        assert [job.id for job in await acme.list()] == [mine.id]
        with pytest.raises(NotAllowed):
            await acme.enqueue("work", tenant="globex")
        await acme.cancel(mine.id)
        assert len(await queue.list()) == 2
    async with owned.connected("acme") as connection:
        org = await connection.fetchval("SELECT windrow_dialect.as_uuid('acme')")
        assert await connection.fetchval(INSERTS["public.processing_jobs"], org)
    await assert_counts_are_true(owned)
