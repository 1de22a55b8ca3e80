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
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from string import hexdigits
from typing import Any, Final, Self

from yarl import URL

from windrow.errors import Blocked, ConfigError
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

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Beyond what `is_global` knows, which also differs between versions of Python.
NOT_PUBLIC: Final[tuple[Network, ...]] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # "this network"; 0.0.0.0 reaches the machine itself
        "100.64.0.0/10",  # carriers' own, and metadata at 100.100.100.200
        "168.63.129.16/32",  # the host of a virtual machine, in one cloud
        "192.0.0.0/24",  # protocol assignments, metadata at 192.0.0.192
        "192.88.99.0/24",  # relays of 6to4
        "198.18.0.0/15",  # benchmarks
        "::/96",  # IPv4-compatible: nobody is there, some stacks connect to the IPv4 address
        "64:ff9b:1::/48",  # NAT64 of a network's own
        "100::/64",  # discarded
        "2001::/23",  # protocol assignments, Teredo among them
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "fec0::/10",  # site-local, of old
    )
)
NAT64: Final = IPv6Network("64:ff9b::/96")


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


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet, the address inside of it as well."""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        inner = _inner(address)
        if inner is not None:
            return is_public(inner)
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    return not is_within(address, NOT_PUBLIC)


def is_within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def parse_host_address(host: str) -> Address | None:
    """The address that a URL's host is, in any way of writing it that browsers and libc take.

    None for a name. A host that ends in a number and is no address is none at all: ValueError.
    """
    host = host.removeprefix("[").removesuffix("]").rstrip(".")
    if ":" in host:
        return ip_address(host)
    labels = host.split(".")
    if not _is_number(labels[-1]):
        return None
    return _parse_ipv4(labels)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to this one end at."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def _is_number(label: str) -> bool:
    if label.isascii() and label.isdigit():
        return True
    return label[:2].lower() == "0x" and all(digit in hexdigits for digit in label[2:])


def _parse_ipv4(labels: list[str]) -> IPv4Address:
    """As `inet_aton` does: decimal, octal and hexadecimal parts, the last one filling the rest."""
    if len(labels) > 4:
        raise ValueError("an IPv4 address has four parts at most")
    *front, last = [_parse_number(label) for label in labels]
    if any(part > 255 for part in front) or last >= 256 ** (4 - len(front)):
        raise ValueError("a part of the IPv4 address is too large")
    value = last
    for place, part in enumerate(front):
        value += part << (8 * (3 - place))
    return IPv4Address(value)


def _parse_number(label: str) -> int:
    if not _is_number(label):
        raise ValueError(f"{label!r} is no part of an IPv4 address")
    if label[:2].lower() == "0x":
        return int(label[2:] or "0", 16)
    return int(label, 8) if label.startswith("0") else int(label)
