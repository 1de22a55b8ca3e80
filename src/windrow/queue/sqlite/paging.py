"""What is kept of web pages."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from windrow.db.statements import load_statements
from windrow.queue.pages import PageRow
from windrow.queue.sqlite.rows import to_micros, to_time
from windrow.queue.sqlite.work import PACKAGE, Work, statement

_NUMBER: Final = re.compile(r"\$(\d+)")


def keep_page(work: Work, row: PageRow) -> None:
    work.run("keep_page", _values(row))


def kept_by_place(row: PageRow) -> tuple[Any, ...]:
    """The statement and its values as a job's transaction takes them: by place, not by name."""
    found = load_statements(PACKAGE)["keep_page"]
    return _NUMBER.sub(r"?\1", found.numbered), *found.bind(_values(row))


def get_page(work: Work, key: bytes) -> PageRow | None:
    for row in work.named_rows(statement("get_page"), {"key": key}):
        return PageRow(**{**dict(row), "fetched_at": to_time(row["fetched_at"])})
    return None


def list_page_urls(work: Work, tenant: str | None, site: str, limit: int) -> list[str]:
    values = {"tenant": tenant, "site": site, "beyond": site[:-1] + "/", "limit": limit}
    return [url for (url,) in work.rows("list_page_urls", values)]


def touch_page(work: Work, key: bytes, fetched_at: datetime) -> None:
    work.run("touch_page", {"key": key, "fetched_at": to_micros(fetched_at)})


def prune_pages(work: Work, most: int, limit: int) -> int:
    return sum(size for (size,) in work.rows("prune_pages", {"most": most, "limit": limit}))


def _values(row: PageRow) -> dict[str, Any]:
    return {
        "key": row.key,
        "tenant": row.tenant,
        "site": row.site,
        "url": row.url,
        "variant": row.variant,
        "etag": row.etag,
        "last_modified": row.last_modified,
        "fetched_at": to_micros(row.fetched_at),
        "bytes": row.bytes,
        "body": row.body,
    }
