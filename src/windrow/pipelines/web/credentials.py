"""The credentials of tenants' sites, for the fetches of their jobs."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from windrow.accounts import Accounts
from windrow.accounts.credentials import CredentialInfo
from windrow.ingest.fetch.credentials import Credential, Credentials
from windrow.queue.queue import Queue
from windrow.settings import Settings

if TYPE_CHECKING:
    from windrow.ingest.fetch.sealer import Sealer

KEPT_SECONDS: Final = 15.0  # after this a change is seen
KEPT_TENANTS: Final = 1_000


class Vault:
    """What tenants have, read once in a while. A credential that cannot be opened fails the fetches
    that would send it, and no others."""

    def __init__(self, queue: Queue, settings: Settings) -> None:
        self._queue = queue
        self._settings = settings
        self._sealer: Sealer | None = None
        self._kept: dict[str | None, tuple[float, Credentials]] = {}

    async def of(self, tenant: str | None) -> Credentials:
        until, credentials = self._kept.get(tenant, (0.0, None))
        if credentials is None or until < time.monotonic():
            found = await Accounts(self._queue.database).credentials.of_tenant(tenant)
            credentials = Credentials(
                sealed=[(one.origin, partial(self._open, one)) for one in found]
            )
            if len(self._kept) >= KEPT_TENANTS:
                self._kept.clear()
            self._kept[tenant] = (time.monotonic() + KEPT_SECONDS, credentials)
        return credentials

    def _open(self, one: CredentialInfo) -> Credential:
        from windrow.ingest.fetch.sealer import Sealer  # few workers have anything to open

        self._sealer = self._sealer or Sealer(self._settings)
        return self._sealer.open(one.name, one.tenant, one.origin, one.sealed)
