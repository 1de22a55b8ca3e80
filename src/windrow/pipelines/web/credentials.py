"""The credentials of a tenant's sites, opened for the fetches of a job."""

from __future__ import annotations

from windrow.ingest.fetch.credentials import Credentials
from windrow.queue.queue import Queue
from windrow.settings import Settings


async def load_credentials(queue: Queue, settings: Settings, tenant: str | None) -> Credentials:
    """All that a tenant has, each to be sent to its own origin."""
    found = await queue.store.list_credentials(tenant)
    if not found:
        return Credentials()
    from windrow.ingest.fetch.sealing import Sealer  # makes a key where there is none

    sealer = Sealer(settings)
    return Credentials(sealer.open(one.name, one.tenant, one.origin, one.sealed) for one in found)
