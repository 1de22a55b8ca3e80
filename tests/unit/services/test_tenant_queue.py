"""What a tenant may put into the queue by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.errors import InvalidJob
from windrow.queue.job import NewJob
from windrow.queue.queue import Queue
from windrow.services.tenant_queue import TenantQueue
from windrow.services.working import open_own_handlers
from windrow.settings import Settings


async def test_tenant_enqueues_nothing_that_windrow_itself_handles(
    sqlite_template: Path, tmp_path: Path
) -> None:
    """An item of the unified queue names a file of the machine, or a tenant that is to go."""
    path = tmp_path / "jobs.db"
    path.write_bytes(sqlite_template.read_bytes())
    settings = Settings(database_url=f"sqlite:///{path}", data_dir=str(tmp_path))
    async with Queue.open(settings.database_url) as queue:
        async with open_own_handlers(settings, queue) as handlers:
            kinds = sorted(one.kind for one in handlers)
        assert {"folder.ingest", "delete_tenant.delete", "index.write", "web.scrape"} <= {*kinds}
        tenant = TenantQueue(queue, "acme")
        for kind in kinds:
            with pytest.raises(InvalidJob, match="made by Windrow"):
                await tenant.enqueue(NewJob(kind, {"folder_path": "/etc"}))
        mine = await tenant.enqueue(NewJob("archive", {}))
        with pytest.raises(InvalidJob, match="made by Windrow"):
            await tenant.edit(mine.id, {"kind": "folder.ingest", "payload": {"folder_path": "/"}})
