"""The page cache: versions of web pages that a scrape may return again or compare with."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from windrow.db.database import Database

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


class PageCache:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def keep(self, row: PageRow, *, tx: Any = None) -> None:
        """Cache a page in place of an older version of it. With `tx`, a job's, it is cached if and
        only if the job is completed."""
        values = {
            "key": row.key,
            "tenant": row.tenant,
            "site": row.site,
            "url": row.url,
            "variant": row.variant,
            "etag": row.etag,
            "last_modified": row.last_modified,
            "fetched_at": row.fetched_at,
            "bytes": row.bytes,
            "body": row.body,
        }
        await (self._db if tx is None else self._db.joined(tx)).run("keep_page", **values)

    async def get(self, key: bytes) -> PageRow | None:
        """The page of a key (`page_key`)."""
        for row in await self._db.rows("get_page", key=key):
            return PageRow(**row)
        return None

    async def list_urls(self, tenant: str | None, site: str, limit: int) -> list[str]:
        """The addresses of cached pages of a site (`page_site`) and of its subdomains."""
        values = {"tenant": tenant, "site": site, "beyond": site[:-1] + "/", "limit": limit}
        return [row["url"] for row in await self._db.rows("list_page_urls", **values)]

    async def touch(self, key: bytes, fetched_at: datetime) -> None:
        """Record that a page was found unchanged."""
        await self._db.run("touch_page", key=key, fetched_at=fetched_at)

    async def prune(self, most: int, limit: int = 1000) -> int:
        """Delete the oldest pages, up to `limit`, until those that are left take `most` bytes; how
        many bytes they took. Idempotent, also if several do it at once."""
        rows = await self._db.rows("prune_pages", most=most, limit=limit)
        return sum(row["bytes"] for row in rows)
