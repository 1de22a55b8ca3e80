"""Who may be connected to: the internet, and what the operator allowed besides.

The check that counts is at the socket: `Guard.open_socket` is handed the very address that is
about to be connected to, so a name that resolves differently the second time gains nothing, and
redirects, odd spellings and addresses inside addresses all come through the same door.
`check_url` says the same earlier where it can be known from the URL alone.
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from typing import Any, Final, Self

from yarl import URL

from windrow.errors import Blocked, ConfigError
from windrow.ingest.fetch.addresses import (
    Address,
    Network,
    is_public,
    is_within,
    parse_host_address,
)
from windrow.ingest.fetch.target import parse_url, without_secrets
from windrow.settings import Settings

# Names that are somebody's own by their ending; resolvers of some networks do answer for them.
PRIVATE_NAMES: Final = (
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "lan",
    "home.arpa",
)

KEPT_HOSTS: Final = 10_000  # that were found to be fine; most pages are of few hosts

_ENTRY: Final = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?", re.IGNORECASE)


class ForbiddenAddress(OSError):
    """The address belongs to a private network or to this machine."""

    def __init__(self) -> None:
        # The same words for every address: who tries several learns only that none may be used.
        super().__init__(errno.EACCES, "leads into a private network, which is not allowed")

    def __str__(self) -> str:
        return str(self.strerror)


class Guard:
    """What may be connected to. Without arguments: public addresses only."""

    def __init__(self, *, allow_private: bool = False, allow: Iterable[str] = ()) -> None:
        self.allow_private = allow_private
        self._networks: list[Network] = []
        self._names: set[str] = set()
        self._domains: set[str] = set()
        self._judged: dict[str, bool] = {}
        for entry in allow:
            self._allow(entry)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(
            allow_private=settings.allow_private_networks,
            allow=settings.allow_hosts.replace(",", " ").split(),
        )

    def check_url(self, url: str) -> None:
        """Raise `Blocked` if this URL cannot be allowed, whatever its name resolves to."""
        self.check(parse_url(url))

    def check(self, target: URL) -> bool:
        """The same for a URL that is parsed already; whether its host is one that `is_open`."""
        host = target.raw_host or ""
        is_open = self._judged.get(host)
        if is_open is None:
            is_open = self.is_open(host)
            if not is_open and (why := self._objection(host)):
                raise Blocked(without_secrets(str(target)), why)
            if len(self._judged) >= KEPT_HOSTS:
                self._judged.clear()
            self._judged[host] = is_open
        return is_open

    def _objection(self, host: str) -> str | None:
        plain = _plain(host)
        if any(_is_under(plain, name) for name in PRIVATE_NAMES):
            return "is a name of a private network, which is not allowed"
        try:
            address = parse_host_address(host)
        except ValueError as error:
            return f"has a host that is no address: {error}"
        is_forbidden = address is not None and not self.admits(address)
        return str(ForbiddenAddress()) if is_forbidden else None

    def is_open(self, host: str) -> bool:
        """Whether the operator allowed this host by name, whatever its address."""
        if self.allow_private:
            return True
        host = _plain(host)
        return host in self._names or any(_is_under(host, domain) for domain in self._domains)

    def admits(self, address: Address) -> bool:
        """Whether this address may be connected to."""
        if self.allow_private or is_public(address):
            return True
        return is_within(address, self._networks)

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket for an entry of getaddrinfo, if it may be connected to."""
        family, kind, protocol, _, where = info
        if not self.admits(ip_address(where[0])):
            raise ForbiddenAddress
        return socket.socket(family, kind, protocol)

    def _allow(self, entry: str) -> None:
        entry = entry.strip()
        try:
            self._networks.append(ip_network(entry, strict=False))
            return
        except ValueError:
            if not _ENTRY.fullmatch(entry):
                raise ConfigError(
                    f"allow_hosts: {entry!r} is neither a host, *.domain nor a network"
                ) from None
        if entry.startswith("*."):
            self._domains.add(_plain(entry[2:]))
        else:
            self._names.add(_plain(entry))


def _plain(host: str) -> str:
    return host.rstrip(".").lower()


def _is_under(host: str, name: str) -> bool:
    return host == name or host.endswith("." + name)
