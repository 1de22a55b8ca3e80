"""put_credential: sealed bytes by tenant and name."""

from __future__ import annotations

import pytest

from windrow.accounts import Accounts
from windrow.accounts.credentials import CredentialRow
from windrow.clock import FakeClock
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("documents")


def row(name: str, tenant: str | None = None, sealed: bytes = b"\0\xffsealed") -> CredentialRow:
    return CredentialRow(name, tenant, "https://docs.example", ("header X", "password"), sealed)


async def test_a_credential_comes_back_as_it_was_put(store: Store, clock: FakeClock) -> None:
    accounts = Accounts(store.database)
    await accounts.credentials.put(row("docs"))
    [info] = await accounts.credentials.of_tenant(None)
    assert (info.name, info.tenant, info.origin) == ("docs", None, "https://docs.example")
    assert (info.holds, info.sealed) == (("header X", "password"), b"\0\xffsealed")
    assert info.changed_at == clock.now()
    assert "sealed" not in repr(info)


async def test_one_of_the_same_name_takes_the_place_of_the_other(
    store: Store, clock: FakeClock
) -> None:
    accounts = Accounts(store.database)
    await accounts.credentials.put(row("docs"))
    clock.advance(5)
    await accounts.credentials.put(row("docs", sealed=b"new"))
    [info] = await accounts.credentials.of_tenant(None)
    assert (info.sealed, info.changed_at) == (b"new", clock.now())


async def test_tenants_have_names_of_their_own(store: Store) -> None:
    accounts = Accounts(store.database)
    for name, tenant in [("b", None), ("a", None), ("a", "acme"), ("ü", "acme")]:
        await accounts.credentials.put(row(name, tenant))
    assert [info.name for info in await accounts.credentials.of_tenant(None)] == [
        "a",
        "b",
    ]
    assert [info.name for info in await accounts.credentials.of_tenant("acme")] == [
        "a",
        "ü",
    ]
    assert await accounts.credentials.of_tenant("globex") == []
    assert not await accounts.credentials.delete("b", "acme")
    assert await accounts.credentials.delete("a", "acme")
    assert not await accounts.credentials.delete("a", "acme")
    assert not await accounts.credentials.delete("a\0", None)
    assert [info.name for info in await accounts.credentials.of_tenant(None)] == [
        "a",
        "b",
    ]
