"""A database with row-level security and real roles: two tenants, a worker, an API, an enqueuer."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import psycopg
import pytest
from psycopg import sql

from tests.conftest import CopyDatabase
from tests.postgres_server import (
    create_database,
    database_name,
    drop_database,
    scram_verifier,
)
from windrow import Queue
from windrow.services.postgres import enable_tenancy

# By whom a role is known here, the group it is a member of, and its tenant.
ROLES = {
    "acme": ("windrow_tenant", "acme"),
    "globex": ("windrow_tenant", "globex"),
    "worker": ("windrow_worker", None),
    "api": ("windrow_api", None),
    "enqueuer": ("windrow_enqueuer", None),
    "acme_enqueuer": ("windrow_enqueuer", "acme"),
    "stranger": (None, None),
}


@dataclass(frozen=True)
class Tenancy:
    url: str  # as the owner
    suffix: str
    password: str

    def role(self, known_as: str) -> str:
        return f"{known_as}_{self.suffix}"

    def url_of(self, known_as: str) -> str:
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        login = f"{self.role(known_as)}:{self.password}@{host}"
        return urlunsplit(parts._replace(netloc=login))

    @asynccontextmanager
    async def connected(self, known_as: str | None = None) -> AsyncIterator[Any]:
        connection = await asyncpg.connect(self.url_of(known_as) if known_as else self.url)
        try:
            yield connection
        finally:
            await connection.close()


@pytest.fixture
def tenancy(copy_database: CopyDatabase, tenancy_template: tuple[str, tuple[str, str]]) -> Tenancy:
    """Its roles are those of other tests, too: whoever changes their rights changes them back."""
    template, roles = tenancy_template
    return Tenancy(copy_database(template), *roles)


@pytest.fixture(scope="session")
def tenancy_template(
    postgres_url: str, postgres_template: str
) -> Iterator[tuple[str, tuple[str, str]]]:
    """The name of a database to copy that has it switched on, and the roles that it knows."""
    with made_roles(postgres_url) as roles:
        made = Tenancy(create_database(postgres_url, postgres_template), *roles)
        try:
            # In a thread of its own: a fixture may be asked for from inside a running loop.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, _switch_on(made)).result()
            yield database_name(made.url), roles
        finally:
            drop_database(postgres_url, made.url)


async def _switch_on(made: Tenancy) -> None:
    await enable_tenancy(made.url)
    async with made.connected() as owner:
        for known_as, (group, tenant) in ROLES.items():
            if group:
                await owner.execute(f"GRANT {group} TO {made.role(known_as)}")
            if tenant:
                await owner.execute(
                    "INSERT INTO windrow.tenant_role VALUES ($1, $2)", made.role(known_as), tenant
                )


@pytest.fixture
def roles(postgres_url: str) -> Iterator[tuple[str, str]]:
    """Roles of the test's own."""
    with made_roles(postgres_url) as made:
        yield made


@contextmanager
def made_roles(postgres_url: str) -> Iterator[tuple[str, str]]:
    """Roles that log in: what their names end in, and their password."""
    suffix, password = secrets.token_hex(4), secrets.token_hex(8)
    verifier = sql.Literal(scram_verifier(password, iterations=1))
    names = [sql.Identifier(f"{known_as}_{suffix}") for known_as in ROLES]
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        for name in names:
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(name, verifier))
    yield suffix, password
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        for name in names:
            admin.execute(sql.SQL("DROP ROLE {}").format(name))


@pytest.fixture
async def owner(tenancy: Tenancy) -> AsyncIterator[Queue]:
    async with Queue.open(tenancy.url) as queue:
        yield queue


@pytest.fixture
async def acme(tenancy: Tenancy) -> AsyncIterator[Queue]:
    async with Queue.open(tenancy.url_of("acme")) as queue:
        yield queue


@pytest.fixture
async def globex(tenancy: Tenancy) -> AsyncIterator[Queue]:
    async with Queue.open(tenancy.url_of("globex")) as queue:
        yield queue


@pytest.fixture
async def worker(tenancy: Tenancy) -> AsyncIterator[Queue]:
    async with Queue.open(tenancy.url_of("worker")) as queue:
        yield queue
