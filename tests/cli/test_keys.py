"""`windrow keys`: made, listed, revoked; what a key is is told once."""

from __future__ import annotations

import asyncio

from tests.cli.conftest import Read, Windrow
from windrow import Queue
from windrow.services.keys import Identity, KeyRing, hash_key
from windrow.settings import Settings


def test_a_key_counts_until_it_is_revoked(windrow: Windrow, read: Read, store_url: str) -> None:
    made = read("keys", "create", "robot", "--tenant", "acme", "--role", "read")
    assert known(store_url) == {hash_key(made["key"]): Identity("acme", "read")}

    listed = windrow("keys", "list")
    assert "robot" in listed.stdout
    assert made["key"] not in listed.stdout
    assert windrow("keys", "create", "robot").returncode == 2

    assert windrow("keys", "revoke", "robot").stdout == "would revoke robot: add --yes\n"
    assert hash_key(made["key"]) in known(store_url)
    assert windrow("keys", "revoke", "robot", "--yes").returncode == 0
    assert windrow("keys", "revoke", "robot", "--yes").returncode == 1
    assert known(store_url) == {}


def test_a_role_that_there_is_not_is_refused(windrow: Windrow) -> None:
    refused = windrow("keys", "create", "robot", "--role", "owner")

    assert refused.returncode == 2
    assert "there are read, write, admin" in refused.stderr


def test_a_quota_is_its_tenants_and_can_be_changed(windrow: Windrow, read: Read) -> None:
    assert windrow("keys", "create", "lost", "--quota", "5").returncode == 2
    read("keys", "create", "robot", "--tenant", "acme", "--quota", "5", "--per", "day")
    assert read("keys", "list")[0]["quota"] == "5/day"

    assert "acme may use 7" in windrow("keys", "quota", "acme", "7").stdout
    assert "7/month" in windrow("keys", "list").stdout
    assert windrow("keys", "quota", "acme", "7", "--per", "year").returncode == 2
    assert windrow("keys", "quota", "acme").returncode == 2

    assert read("keys", "quota", "acme", "--none")["was_there"] is True
    assert read("keys", "list")[0]["quota"] is None


def known(url: str) -> dict[str, Identity]:
    """Whom a server on this database would know."""

    async def look() -> dict[str, Identity]:
        async with Queue.open(url) as queue:
            return await KeyRing(queue, Settings()).read()

    return asyncio.run(look())
