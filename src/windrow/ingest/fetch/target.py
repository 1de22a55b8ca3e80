"""A URL as it was given, made sure that it can be fetched at all."""

from __future__ import annotations

import re
from typing import Final

from yarl import URL

from windrow.errors import FetchError
from windrow.ingest.fetch import codes

SCHEMES: Final = frozenset({"http", "https"})

_SECRETS: Final = re.compile(r"//[^/?#]*@")


def parse_url(url: str) -> URL:
    """A URL that can be fetched."""
    try:
        parsed = URL(url.strip())
        port = parsed.port
    except (ValueError, TypeError) as error:
        raise FetchError(codes.INVALID_URL, without_secrets(url), "is not a valid URL") from error
    if parsed.scheme not in SCHEMES:
        why = f"only http and https are fetched, not {parsed.scheme or 'a URL without scheme'}"
        raise FetchError(codes.INVALID_URL, without_secrets(url), why)
    if not parsed.raw_host or port == 0:
        raise FetchError(codes.INVALID_URL, without_secrets(url), "names no host")
    return parsed


def without_secrets(url: str) -> str:
    """A URL for people to read: no user and password."""
    return _SECRETS.sub("//", url, count=1)
