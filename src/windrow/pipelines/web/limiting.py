"""The limits that pages are under: their tenant's, their crawl's or batch's, their host's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from windrow.errors import GroupEnded
from windrow.ingest.web.urls import place_of
from windrow.queue.queue import Queue


def limit_keys(
    url: str, *, crawl_id: str | None = None, is_limited: bool = False, tenant: str | None = None
) -> list[str]:
    """The limits a page is under: its tenant's, its crawl's if that has one, its host's."""
    keys = [f"tenant:{tenant}"] if tenant else []
    if is_limited and crawl_id:
        keys.append(crawl_key(crawl_id))
    return [*keys, f"host:{place_of(url).host}"]


def crawl_key(crawl_id: str) -> str:
    return f"crawl:{crawl_id}"


async def set_crawl_limit(
    queue: Queue, crawl_id: str, delay: float | None, most: int, *, reserved: int = 0
) -> None:
    """Limit a crawl: to one page after the other with a pause between, or to `most` at once (0: as
    many as there are workers for). `reserved` of these requests are made by the crawl's root job.
    """
    key = crawl_key(crawl_id)
    if delay:
        await queue.set_limit(key, active=1 - reserved, per_second=1 / delay, burst=1)
    elif most:
        await queue.set_limit(key, active=most - reserved)


@asynccontextmanager
async def filling_group(queue: Queue, crawl_id: str) -> AsyncIterator[None]:
    """Enqueue the pages of a crawl or batch, until its group takes no more: it was cancelled, or an
    earlier run had enqueued all. Its finish job may have run before this run set the limit, so the
    limit is removed here, too."""
    try:
        yield
    except GroupEnded:
        await queue.remove_limit(crawl_key(crawl_id))
    except asyncio.CancelledError:
        group = await queue.group(crawl_id)
        if group.is_cancelled or group.ended_at is not None:
            await queue.remove_limit(crawl_key(crawl_id))
        raise
