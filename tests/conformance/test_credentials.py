"""put_credential: sealed bytes by tenant and name."""

from __future__ import annotations

import pytest

from windrow.clock import FakeClock
from windrow.queue.records import CredentialRow
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("documents")


def row(name: str, tenant: str | None = None, sealed: bytes = b"\0\xffsealed") -> CredentialRow:
    return CredentialRow(name, tenant, "https://docs.example", ("header X", "password"), sealed)


async def test_a_credential_comes_back_as_it_was_put(store: Store, clock: FakeClock) -> None:
    await store.put_credential(row("docs"))
    [info] = await store.list_credentials(None)
    assert (info.name, info.tenant, info.origin) == ("docs", None, "https://docs.example")
    assert (info.holds, info.sealed) == (("header X", "password"), b"\0\xffsealed")
    assert info.changed_at == clock.now()
    assert "sealed" not in repr(info)


async def test_one_of_the_same_name_takes_the_place_of_the_other(
    store: Store, clock: FakeClock
) -> None:
    await store.put_credential(row("docs"))
    clock.advance(5)
    await store.put_credential(row("docs", sealed=b"new"))
    [info] = await store.list_credentials(None)
    assert (info.sealed, info.changed_at) == (b"new", clock.now())


async def test_tenants_have_names_of_their_own(store: Store) -> None:
    for name, tenant in [("b", None), ("a", None), ("a", "acme"), ("ü", "acme")]:
        await store.put_credential(row(name, tenant))
    assert [info.name for info in await store.list_credentials(None)] == ["a", "b"]
    assert [info.name for info in await store.list_credentials("acme")] == ["a", "ü"]
    assert await store.list_credentials("globex") == []
    assert not await store.delete_credential("b", "acme")
    assert await store.delete_credential("a", "acme")
    assert not await store.delete_credential("a", "acme")
    assert not await store.delete_credential("a\0", None)
    assert [info.name for info in await store.list_credentials(None)] == ["a", "b"]
