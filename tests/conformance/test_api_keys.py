"""insert_api_key: who may use the HTTP API, by the hashes of keys."""

from __future__ import annotations

from datetime import timedelta

import pytest

from windrow.clock import FakeClock
from windrow.queue.records import ApiKeyRow
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("documents")


async def test_a_key_comes_back_as_it_was_kept(store: Store, clock: FakeClock) -> None:
    assert await store.insert_api_key(ApiKeyRow("robot", "5e55", "acme", "write"))
    assert await store.insert_api_key(ApiKeyRow("boss", "b055", None, "admin"))

    boss, robot = await store.list_api_keys()

    assert (boss.name, boss.hash, boss.tenant, boss.role) == ("boss", "b055", None, "admin")
    assert (robot.name, robot.hash, robot.tenant, robot.role) == ("robot", "5e55", "acme", "write")
    assert robot.created_at == clock.now()
    assert "5e55" not in repr(robot)


async def test_a_name_is_one_keys_until_it_is_forgotten(store: Store) -> None:
    assert await store.insert_api_key(ApiKeyRow("robot", "1", "acme", "write"))
    assert not await store.insert_api_key(ApiKeyRow("robot", "2", "globex", "admin"))
    assert [info.hash for info in await store.list_api_keys()] == ["1"]

    assert await store.delete_api_key("robot")
    assert not await store.delete_api_key("robot")
    assert not await store.delete_api_key("ro\0bot")
    assert await store.list_api_keys() == []
    assert await store.insert_api_key(ApiKeyRow("robot", "2", "globex", "admin"))


async def test_a_revoked_session_is_listed_until_it_expires(store: Store, clock: FakeClock) -> None:
    soon, late = clock.now() + timedelta(hours=1), clock.now() + timedelta(hours=12)
    await store.revoke_session("short", soon)
    await store.revoke_session("long", late)
    await store.revoke_session("long", late)
    assert await store.list_revoked_sessions() == {"short", "long"}
    clock.advance(3600)
    assert await store.list_revoked_sessions() == {"long"}
    await store.revoke_session("new", late)
    assert await store.list_revoked_sessions() == {"long", "new"}
