"""What comes later is secured as well: tables of a migration, and dialects."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from tests.migrations import later_migrations
from tests.tenancy.conftest import Tenancy
from windrow.queue.postgres import schema
from windrow.queue.postgres.gating import SCHEMA, function_name
from windrow.queue.postgres.rows import sql
from windrow.services.database import migrate_database
from windrow.services.postgres import tenancy_status

LATER = ["CREATE TABLE windrow.later (tenant text)"]


async def test_migration_secures_what_it_adds(tenancy: Tenancy) -> None:
    with later_migrations("postgres", LATER) as names:
        assert await migrate_database(tenancy.url) == names
        assert (await tenancy_status(tenancy.url)).problems == ()
    async with tenancy.connected() as owner:
        assert await owner.fetchval(
            "SELECT relrowsecurity FROM pg_class WHERE oid = 'windrow.later'::regclass"
        )


async def test_migration_that_ends_before_its_tables_are_secured_has_not_happened(
    tenancy: Tenancy,
) -> None:
    with later_migrations("postgres", LATER) as names:
        with (
            patch.object(schema, "enable_rls", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            await migrate_database(tenancy.url)

        assert await migrate_database(tenancy.url) == names
        assert (await tenancy_status(tenancy.url)).problems == ()


async def test_migrating_brings_functions_of_an_older_version_up_to_date(tenancy: Tenancy) -> None:
    async with tenancy.connected() as owner:
        name = function_name(sql("pause_jobs"))
        await owner.execute(f'DROP FUNCTION {SCHEMA}."{name}" CASCADE')
    assert (await tenancy_status(tenancy.url)).problems != ()

    assert await migrate_database(tenancy.url) == []

    assert (await tenancy_status(tenancy.url)).problems == ()
