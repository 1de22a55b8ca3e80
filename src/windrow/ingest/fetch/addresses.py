"""Which addresses are out on the internet, and which are somebody's own network."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from string import hexdigits
from typing import Final

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
