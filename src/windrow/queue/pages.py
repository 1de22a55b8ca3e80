"""What is kept of a web page from one scrape to the next."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

import msgspec

KEY_BYTES: Final = 16
ROW_BYTES: Final = 300  # about what a row takes besides its address and body


class PageRow(msgspec.Struct, frozen=True):
    """One version of a page. `variant` tells apart what was made of the same address."""

    tenant: str | None
    url: str
    variant: str
    fetched_at: datetime
    body: bytes  # of whoever keeps it, compressed
    etag: str | None = None
    last_modified: str | None = None

    @property
    def key(self) -> bytes:
        return page_key(self.tenant, self.url, self.variant)

    @property
    def bytes(self) -> int:
        """About what it takes in the database."""
        return len(self.body) + 2 * len(self.url) + ROW_BYTES

    @property
    def site(self) -> str | None:
        return page_site(self.url)


def page_site(url: str) -> str | None:
    """What pages are found by that are of one site: of `https://docs.example.org/a` it is
    `org.example.docs.`, so that those of a site and of its subdomains begin alike."""
    host = urlsplit(url).hostname
    return None if not host else "".join(f"{name}." for name in reversed(host.split(".")))


def page_key(tenant: str | None, url: str, variant: str) -> bytes:
    """What a page is found by: only with the tenant that it was kept for."""
    return hashlib.sha256(msgspec.json.encode([tenant, url, variant])).digest()[:KEY_BYTES]
