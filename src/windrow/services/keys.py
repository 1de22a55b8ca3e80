"""API keys: whom a key stands for. Only the hashes of keys are kept and compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

from windrow.errors import ConfigError
from windrow.queue.checks import check_name
from windrow.settings import Settings

Role = Literal["read", "write", "admin"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)  # each may do what those before it may
ALL_TENANTS: Final = "*"
_FORM: Final = "key, key=tenant or key=tenant:role, where the role is read, write or admin"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks: a tenant, or one that sees all of them (None), and what it may do."""

    tenant: str | None
    role: Role

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


def parse_keys(text: str) -> dict[str, Identity]:
    """The keys of the setting `api_keys` by their hashes. A key alone is an admin's of all tenants
    (`*:admin`); a role that is not said is `write`."""
    return {hash_key(key): identity for key, identity in _parsed(text)}


def read_keys(settings: Settings) -> dict[str, Identity]:
    return parse_keys(settings.api_keys)


def hash_key(key: str) -> str:
    """Keys are long and random, so one fast hash is enough: there is nothing to guess."""
    return hashlib.sha256(key.encode()).hexdigest()


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
