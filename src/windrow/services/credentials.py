"""What sites must be shown to let one in: added, listed and removed; never shown."""

from __future__ import annotations

from collections.abc import Mapping

from windrow.accounts import Accounts
from windrow.accounts.credentials import CredentialInfo, CredentialRow
from windrow.queue.checks import check_name
from windrow.services.jobs import open_queue
from windrow.settings import Settings


async def add_credential(
    settings: Settings,
    name: str,
    origin: str,
    *,
    headers: Mapping[str, str],
    cookies: Mapping[str, str],
    user: str | None = None,
    password: str = "",
    tenant: str | None = None,
) -> CredentialInfo:
    """Keep a credential, in the place of one of the same name; sealed before it leaves here."""
    from windrow.ingest.fetch.credentials import Credential
    from windrow.ingest.fetch.sealer import Sealer

    checked = check_name(name, "name of the credential")
    owner = None if tenant is None else check_name(tenant, "tenant")
    credential = Credential(origin, headers, cookies, user, password)
    sealed = Sealer(settings).seal(checked, owner, credential)
    row = CredentialRow(checked, owner, credential.origin, credential.holds, sealed)
    async with open_queue(settings) as queue:
        accounts = Accounts(queue.database)
        await accounts.credentials.put(row)
        found = await accounts.credentials.of_tenant(owner)
    return next(info for info in found if info.name == checked)


async def list_credentials(settings: Settings, tenant: str | None = None) -> list[CredentialInfo]:
    """Those of a tenant, or of none. What is in them stays sealed."""
    async with open_queue(settings) as queue:
        return await Accounts(queue.database).credentials.of_tenant(tenant)


async def remove_credential(settings: Settings, name: str, tenant: str | None = None) -> bool:
    """Forget one; whether it was there."""
    async with open_queue(settings) as queue:
        return await Accounts(queue.database).credentials.delete(name, tenant)
