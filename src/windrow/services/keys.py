"""API keys: whom a key stands for. Only the hashes of keys are kept and compared.

Some stand in the settings (`api_keys`), others are made and revoked here and kept in the database.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, get_args

from windrow.accounts import Accounts
from windrow.accounts.api_keys import ApiKeyInfo, ApiKeyRow
from windrow.accounts.usage import QuotaRow
from windrow.errors import ConfigError
from windrow.queue.checks import check_name
from windrow.queue.queue import Queue
from windrow.services.jobs import open_queue
from windrow.services.quotas import make_quota, read_quotas
from windrow.settings import Settings

Role = Literal["read", "write", "admin"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)  # each may do what those before it may
ALL_TENANTS: Final = "*"
KEPT_SECONDS: Final = 2.0  # after this a key that was made or revoked counts as such
_FORM: Final = "key, key=tenant or key=tenant:role, where the role is read, write or admin"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks: a tenant, or one that sees all of them (None), and what it may do."""

    tenant: str | None
    role: Role
    quota: QuotaRow | None = None  # of the tenant, if it has one

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


def parse_keys(text: str) -> dict[str, Identity]:
    """The keys of the setting `api_keys` by their hashes. A key alone is an admin's of all tenants
    (`*:admin`); a role that is not said is `write`."""
    return {hash_key(key): identity for key, identity in _parsed(text)}


@dataclass(frozen=True, slots=True)
class _Ring:
    keys: dict[str, Identity] = field(default_factory=dict)
    revoked: frozenset[str] = frozenset()  # sessions of the dashboard


class KeyRing:
    """All API keys and revoked sessions, read again every KEPT_SECONDS."""

    def __init__(self, queue: Queue, settings: Settings) -> None:
        self._queue = queue
        self._settings = settings
        self._configured = parse_keys(settings.api_keys)
        self._known = _Ring()
        self._until = 0.0
        self._reading: asyncio.Task[_Ring] | None = None

    async def read(self) -> dict[str, Identity]:
        """Whom each stands for, by its hash."""
        return (await self._ring()).keys

    async def is_revoked(self, session: str) -> bool:
        """Whether a session of the dashboard was logged out, here or at another server."""
        return _digest(session) in (await self._ring()).revoked

    async def revoke(self, session: str, expires_at: datetime) -> None:
        """End a session. Other servers on the database refuse it within KEPT_SECONDS."""
        await Accounts(self._queue.database).sessions.revoke(_digest(session), expires_at)
        self.forget()

    async def _ring(self) -> _Ring:
        if self._until >= time.monotonic():
            return self._known
        # One reads for all who ask meanwhile, and all of them go on at once: by a lock they would
        # one by one, and whoever came later would be served before them.
        if self._reading is None:
            self._reading = asyncio.create_task(self._renew())
        return await asyncio.shield(self._reading)

    def forget(self) -> None:
        """Read again at the next request: a key or a session was made or revoked."""
        self._until = 0.0
        self._reading = None  # what is being read may be from before

    async def _renew(self) -> _Ring:
        reading = asyncio.current_task()
        try:
            known = await self._read()
            if self._reading is reading:
                self._known, self._until = known, time.monotonic() + KEPT_SECONDS
            return known
        finally:
            if self._reading is reading:
                self._reading = None

    async def _read(self) -> _Ring:
        accounts = Accounts(self._queue.database)
        stored = {
            info.hash: Identity(info.tenant, _role(info.role))
            for info in await accounts.api_keys.all()
        }
        quotas = await read_quotas(self._queue, self._settings)
        keys = {
            hashed: replace(identity, quota=quotas.get(identity.tenant or ""))
            for hashed, identity in (stored | self._configured).items()
        }
        return _Ring(keys, await accounts.sessions.revoked())


async def create_key(
    settings: Settings,
    name: str,
    *,
    tenant: str | None = None,
    role: str = "write",
    quota: int | None = None,
    per: str = "month",
) -> str:
    """Make a key; it is told here, once, and never again. Without a tenant it is one of all. A
    `quota` is its tenant's from now on, whatever key it comes with."""
    if quota is not None and tenant is None:
        raise ConfigError("a quota is a tenant's: say whose key this is")
    granted = [] if quota is None else [make_quota(check_name(tenant, "tenant"), quota, per)]
    async with open_queue(settings) as queue:
        key = await make_key(queue, name, tenant=tenant, role=role)
        if granted:
            await Accounts(queue.database).quotas.put(granted)
    return key


async def make_key(queue: Queue, name: str, *, tenant: str | None, role: str) -> str:
    """A key that was not there before: what it is."""
    key = f"wr-{secrets.token_urlsafe(32)}"
    owner = None if tenant is None else check_name(tenant, "tenant")
    row = ApiKeyRow(check_name(name, "name of the key"), hash_key(key), owner, _role(role))
    if not await Accounts(queue.database).api_keys.insert(row):
        raise ConfigError(f"there is a key {name!r} already; revoke it first")
    return key


async def list_keys(settings: Settings) -> list[ApiKeyInfo]:
    """Those that were made, without the keys themselves."""
    async with open_queue(settings) as queue:
        return await Accounts(queue.database).api_keys.all()


async def revoke_key(settings: Settings, name: str) -> bool:
    """Let a key count no longer; whether it was there."""
    async with open_queue(settings) as queue:
        return await Accounts(queue.database).api_keys.delete(name)


def _role(text: str) -> Role:
    for role in ROLES:
        if role == text:
            return role
    raise ConfigError(f"{text!r} is no role; there are {', '.join(ROLES)}")


def hash_key(key: str) -> str:
    """Keys are long and random, so one fast hash is enough: there is nothing to guess. What is
    compared is a hash, so the time that takes says nothing about a key."""
    return _digest(key)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _parsed(text: str) -> Iterator[tuple[str, Identity]]:
    for number, item in enumerate(text.replace(",", " ").split(), 1):
        key, has_owner, owner = item.partition("=")
        tenant, _, role = owner.partition(":") if has_owner else (ALL_TENANTS, "", "admin")
        role = role or "write"
        if not key or not tenant or role not in ROLES:
            # The key itself is a secret: say which one it is by its place.
            raise ConfigError(f"api_keys: number {number} is not {_FORM}")
        checked = None if tenant == ALL_TENANTS else check_name(tenant, "tenant")
        yield key, Identity(checked, role)
