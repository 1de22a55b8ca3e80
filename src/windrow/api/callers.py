"""Who asks: `Reader`, `Writer` and `Admin` are what an endpoint asks for, and get a `Caller`.

Without any key there is one caller, who may do everything, and only on this machine: refused are
requests from elsewhere, requests that a proxy on this machine passes on, and requests that a web
page of another site makes somebody's browser send (by their Host and Origin).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import Depends
from starlette.requests import HTTPConnection

from windrow.accounts.usage import QuotaRow
from windrow.api.errors import ApiError
from windrow.api.limits import Guesses, RateLimit
from windrow.queue.queue import Queue
from windrow.services.keys import Identity, KeyRing, Role, hash_key
from windrow.services.tenant_queue import TenantQueue

NO_KEY: Final = (
    "No API key is configured, so only this machine is served: set "
    "WINDROW_API_KEYS or run `windrow keys create` to serve others"
)
_EVERYTHING: Final = Identity(None, "admin")
# What proxies and content delivery networks add to requests.
_OF_PROXIES: Final = frozenset(
    {
        "cdn-loop",
        "client-ip",
        "forwarded",
        "forwarded-for",
        "front-end-https",
        "true-client-ip",
        "via",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-host",
        "x-nf-client-connection-ip",
        "x-proxyuser-ip",
        "x-real-ip",
        "x-remote-addr",
        "x-remote-ip",
        "x-request-start",
        "x-scheme",
    }
)
_PREFIXES_OF_PROXIES: Final = (
    "cf-",
    "fastly-",
    "fly-",
    "tailscale-",
    "wl-proxy-",
    "x-amz-cf-",
    "x-amzn-",
    "x-appengine-",
    "x-arr-",
    "x-azure-",
    "x-envoy-",
    "x-forwarded",
    "x-goog-",
    "x-original-",
    "x-vercel-",
)


@dataclass(frozen=True, slots=True)
class Caller:
    queue: Queue
    identity: Identity

    @property
    def tenant(self) -> str | None:
        return self.identity.tenant

    @property
    def quota(self) -> QuotaRow | None:
        return self.identity.quota

    @property
    def jobs(self) -> TenantQueue:
        """The queue as this caller may use it."""
        return TenantQueue(self.queue, self.tenant, is_admin=self.identity.may("admin"))


async def identify(connection: HTTPConnection) -> Identity:
    """Who asks. Raises ApiError 401, 403 or 429."""
    ring: KeyRing = connection.app.state.keys
    keys = await ring.read()
    if not keys:
        check_is_local(connection)
        return _EVERYTHING
    scheme, _, key = connection.headers.get("authorization", "").partition(" ")
    key = key.strip() if scheme.lower() == "bearer" else ""
    hashed = hash_key(key)
    if key:
        guesses: Guesses = connection.app.state.guesses
        guesses.count(connection, key, hashed, is_right=hashed in keys)
    identity = keys.get(hashed) if key else None
    if identity is None:
        raise ApiError(401, "UNAUTHORIZED", "Unauthorized: Invalid token")
    rates: RateLimit = connection.app.state.rates
    rates.count(hashed)
    return identity


@lru_cache(maxsize=1000)
def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _asks(role: Role) -> Callable[[HTTPConnection], Awaitable[Caller]]:
    async def caller(connection: HTTPConnection) -> Caller:
        identity = await identify(connection)
        if not identity.may(role):
            said = f"This key may only {identity.role}; it takes one with the role {role}"
            raise ApiError(403, "FORBIDDEN", said)
        return Caller(connection.app.state.queue, identity)

    caller.role = role  # type: ignore[attr-defined]  # for who lists the endpoints
    return caller


def check_is_local(connection: HTTPConnection) -> None:
    client = "" if connection.client is None else connection.client.host
    asked = host_of(f"//{connection.headers.get('host', '')}")
    origin = connection.headers.get("origin")
    page = "localhost" if origin is None else host_of(origin)
    is_forwarded = _speaks_old_http(connection) or any(map(_is_of_proxy, connection.headers))
    if is_forwarded or not (is_loopback(client) and is_loopback(asked) and is_loopback(page)):
        raise ApiError(403, "FORBIDDEN", NO_KEY)


def _speaks_old_http(connection: HTTPConnection) -> bool:
    """As nginx does to what is behind it, and without a header of proxies, unless it is told to."""
    return bool(connection.scope.get("http_version") == "1.0")


def _is_of_proxy(header: str) -> bool:
    """Whether a request with this header came through a proxy, so that its client is elsewhere."""
    return header in _OF_PROXIES or header.startswith(_PREFIXES_OF_PROXIES)


@lru_cache(maxsize=1000)
def host_of(address: str) -> str:
    """The host of an address that anybody may have written; empty if it has none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


Reader = Annotated[Caller, Depends(_asks("read"))]
Writer = Annotated[Caller, Depends(_asks("write"))]
Admin = Annotated[Caller, Depends(_asks("admin"))]
