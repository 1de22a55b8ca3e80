"""A URL as it was given, made sure that it can be fetched at all."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final

from yarl import URL

from windrow.errors import FetchError
from windrow.ingest.fetch import codes

SCHEMES: Final = frozenset({"http", "https"})

# Anything else means something to one parser and something different to the next.
_NAME: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?", re.IGNORECASE)
_SECRETS: Final = re.compile(r"//[^/?#]*@")


def parse_url(url: str) -> URL:
    """A URL that can be fetched."""
    try:
        parsed = URL(url.strip())
        port, _ = parsed.port, parsed.host  # both are read lazily, and can fail
    except (ValueError, TypeError, IndexError) as error:  # the last is of `http://[::1]@`
        raise FetchError(codes.INVALID_URL, without_secrets(url), "is not a valid URL") from error
    if parsed.scheme not in SCHEMES:
        why = f"only http and https are fetched, not {parsed.scheme or 'a URL without scheme'}"
        raise FetchError(codes.INVALID_URL, without_secrets(url), why)
    host = parsed.raw_host or ""
    if port == 0 or not (_NAME.fullmatch(host) or _is_ipv6(host)):
        why = "names no host that there could be"
        raise FetchError(codes.INVALID_URL, without_secrets(url), why)
    return parsed


def limit_key(url: str | URL) -> str:
    """The key under which a host's limits are kept, and parked when it asks for time."""
    parsed = url if isinstance(url, URL) else parse_url(url)
    return f"host:{(parsed.raw_host or '').rstrip('.')}"


def without_secrets(url: str) -> str:
    """A URL for people to read: no user and password."""
    return _SECRETS.sub("//", url, count=1)


def _is_ipv6(host: str) -> bool:
    try:
        return ":" in host and "%" not in host and bool(IPv6Address(host))
    except ValueError:
        return False
