"""What comes later is secured as well: tables of a migration, and dialects."""

from __future__ import annotations

from unittest.mock import patch

from tests.tenancy.conftest import Tenancy
from windrow.queue.migrate import Migration, load_migrations
from windrow.queue.postgres import schema
from windrow.queue.postgres.failures import PACKAGE
from windrow.services.database import migrate_database
from windrow.services.tenancy import tenancy_status

LATER = Migration(9999, "9999_later", "CREATE TABLE windrow.later (tenant text)")


async def test_migration_secures_what_it_adds(tenancy: Tenancy) -> None:
    migrations = (*load_migrations(PACKAGE), LATER)
    with (
        patch("windrow.queue.migrate.load_migrations", return_value=migrations),
        patch.object(schema, "load_migrations", return_value=migrations),
    ):
        assert await migrate_database(tenancy.url) == ["9999_later"]
        assert (await tenancy_status(tenancy.url)).problems == ()
    async with tenancy.connected() as owner:
        assert await owner.fetchval(
            "SELECT relrowsecurity FROM pg_class WHERE oid = 'windrow.later'::regclass"
        )
