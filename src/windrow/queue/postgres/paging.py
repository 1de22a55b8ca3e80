"""What is kept of web pages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from windrow.queue.pages import PageRow
from windrow.queue.postgres.rows import as_utc, sql
from windrow.queue.postgres.verbs import Verbs


class Paging(Verbs):
    async def keep_page(self, row: PageRow, *, tx: Any = None) -> None:
        if tx is None:
            await self._run("keep_page", **_values(row))
            return
        found = sql("keep_page")
        await tx.execute(found.numbered, *found.bind(_values(row)))

    async def get_page(self, key: bytes) -> PageRow | None:
        for row in await self._run("get_page", key=key):
            return PageRow(
                tenant=row["tenant"],
                url=row["url"],
                variant=row["variant"],
                fetched_at=as_utc(row["fetched_at"]),
                body=row["body"],
                etag=row["etag"],
                last_modified=row["last_modified"],
            )
        return None

    async def list_page_urls(self, tenant: str | None, site: str, limit: int) -> list[str]:
        values = {"tenant": tenant, "site": site, "beyond": site[:-1] + "/", "limit": limit}
        return [row["url"] for row in await self._run("list_page_urls", **values)]

    async def touch_page(self, key: bytes, fetched_at: datetime) -> None:
        await self._run("touch_page", key=key, fetched_at=fetched_at)

    async def prune_pages(self, most: int, limit: int = 1000) -> int:
        return sum(row["bytes"] for row in await self._run("prune_pages", most=most, limit=limit))


def _values(row: PageRow) -> dict[str, Any]:
    return {
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
