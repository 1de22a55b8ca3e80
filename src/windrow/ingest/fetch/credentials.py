"""What a site must be shown to let one in: headers, cookies, a user and a password.

A credential belongs to one origin (scheme, host and port) and is sent nowhere else, wherever a
redirect leads. Its values are in no `repr`, message or listing.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from yarl import URL

from windrow.errors import ConfigError, FetchError
from windrow.ingest.fetch.target import parse_url

# Names of headers and cookies (RFC 9110, token); a value is one line.
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_COOKIE_VALUE: Final = re.compile(r"[^\s;,\x00-\x1f\x7f]*")
# Who sets these breaks the request, or names another host than the one that is bound.
_NOT_TO_BE_SET: Final = frozenset(
    {"connection", "content-length", "cookie", "host", "transfer-encoding", "upgrade"}
)


@dataclass(frozen=True, slots=True)
class Credential:
    origin: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    cookies: Mapping[str, str] = field(default_factory=dict, repr=False)
    user: str | None = field(default=None, repr=False)
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", origin_of(self.origin))
        for name, value in self.headers.items():
            _check(name, value, "header")
            if name.lower() in _NOT_TO_BE_SET:
                raise ConfigError(f"header {name} is not one to be set by a credential")
        for name, value in self.cookies.items():
            _check(name, value, "cookie")
            if not _COOKIE_VALUE.fullmatch(value):
                raise ConfigError(f"the value of cookie {name} has characters that none can have")
        if self.user is not None and (":" in self.user or not self.user.isprintable()):
            raise ConfigError("the name of the user cannot be sent: it has a colon in it")
        if not (self.headers or self.cookies or self.user is not None):
            raise ConfigError("a credential needs a header, a cookie or a user")

    @property
    def holds(self) -> tuple[str, ...]:
        """What there is in it, by name, for people to read."""
        named = [f"header {name}" for name in self.headers]
        named += [f"cookie {name}" for name in self.cookies]
        return (*named, *(["password"] if self.user is not None else []))

    def to_headers(self) -> dict[str, str]:
        """What to send to its origin."""
        sent = dict(self.headers)
        if self.user is not None:
            both = f"{self.user}:{self.password}".encode()
            sent["Authorization"] = f"Basic {base64.b64encode(both).decode('ascii')}"
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return sent


class Credentials:
    """Several, each for its own origin, and opened only when something is sent there."""

    def __init__(
        self,
        credentials: Iterable[Credential] = (),
        *,
        sealed: Iterable[tuple[str, Callable[[], Credential]]] = (),
    ) -> None:
        self._openers: dict[str, list[Callable[[], Credential]]] = {}
        for one in credentials:
            self._openers.setdefault(one.origin, []).append(partial(_as_it_is, one))
        for origin, opener in sealed:
            self._openers.setdefault(origin, []).append(opener)
        self._headers: dict[str, Mapping[str, str]] = {}

    def __bool__(self) -> bool:
        return bool(self._openers)

    def __repr__(self) -> str:
        return f"Credentials({', '.join(sorted(self._openers))})"

    def headers_for(self, url: URL) -> Mapping[str, str]:
        """What to send to where a URL leads; nothing, if nothing is bound to its origin."""
        origin = str(url.origin())
        if origin not in self._openers:
            return {}
        if origin not in self._headers:
            together: dict[str, str] = {}
            for opener in self._openers[origin]:
                put_headers(together, opener().to_headers())
            self._headers[origin] = together
        return self._headers[origin]


def _as_it_is(credential: Credential) -> Credential:
    return credential


def put_headers(headers: dict[str, str], more: Mapping[str, str]) -> None:
    """Put these in the place of what is there, however they are written; cookies are added up."""
    for name, value in more.items():
        lower = name.lower()
        same = next((other for other in headers if other.lower() == lower), None)
        before = headers.pop(same) if same is not None else ""
        headers[name] = f"{before}; {value}" if before and lower == "cookie" else value


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL: what a credential is bound to."""
    try:
        parsed = parse_url(url)
    except FetchError as error:
        raise ConfigError(f"a credential is bound to an origin: {error}") from error
    if parsed.raw_user is not None or parsed.raw_password is not None:
        raise ConfigError("a credential is bound to an origin: no user and password in it")
    return str(parsed.origin())


def _check(name: str, value: str, what: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise ConfigError(f"{name!r} is no name of a {what}")
    if any(character in value for character in "\r\n\0") or not value:
        raise ConfigError(f"the value of {what} {name} must be one line that is not empty")
