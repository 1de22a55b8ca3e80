"""insert_api_key: who may use the HTTP API, by the hashes of keys."""

from __future__ import annotations

from datetime import timedelta

import pytest

from windrow.accounts import Accounts
from windrow.accounts.api_keys import ApiKeyRow
from windrow.clock import FakeClock
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("documents")


async def test_a_key_comes_back_as_it_was_kept(store: Store, clock: FakeClock) -> None:
    accounts = Accounts(store.database)
    assert await accounts.api_keys.insert(ApiKeyRow("robot", "5e55", "acme", "write"))
    assert await accounts.api_keys.insert(ApiKeyRow("boss", "b055", None, "admin"))

    boss, robot = await accounts.api_keys.all()

    assert (boss.name, boss.hash, boss.tenant, boss.role) == ("boss", "b055", None, "admin")
    assert (robot.name, robot.hash, robot.tenant, robot.role) == ("robot", "5e55", "acme", "write")
    assert robot.created_at == clock.now()
    assert "5e55" not in repr(robot)


async def test_a_name_is_one_keys_until_it_is_forgotten(store: Store) -> None:
    accounts = Accounts(store.database)
    assert await accounts.api_keys.insert(ApiKeyRow("robot", "1", "acme", "write"))
    assert not await accounts.api_keys.insert(ApiKeyRow("robot", "2", "globex", "admin"))
    assert [info.hash for info in await accounts.api_keys.all()] == ["1"]

    assert await accounts.api_keys.delete("robot")
    assert not await accounts.api_keys.delete("robot")
    assert not await accounts.api_keys.delete("ro\0bot")
    assert await accounts.api_keys.all() == []
    assert await accounts.api_keys.insert(ApiKeyRow("robot", "2", "globex", "admin"))


async def test_a_revoked_session_is_listed_until_it_expires(store: Store, clock: FakeClock) -> None:
    soon, late = clock.now() + timedelta(hours=1), clock.now() + timedelta(hours=12)
    accounts = Accounts(store.database)
    await accounts.sessions.revoke("short", soon)
    await accounts.sessions.revoke("long", late)
    await accounts.sessions.revoke("long", late)
    assert await accounts.sessions.revoked() == {"short", "long"}
    clock.advance(3600)
    assert await accounts.sessions.revoked() == {"long"}
    await accounts.sessions.revoke("new", late)
    assert await accounts.sessions.revoked() == {"long", "new"}
