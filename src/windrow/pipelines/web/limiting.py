"""The limits that pages are under: their tenant's, their crawl's or batch's, their host's."""

from __future__ import annotations

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


async def set_crawl_limit(queue: Queue, crawl_id: str, delay: float | None, most: int) -> bool:
    """Limit a crawl: to one page after the other with a pause between, or to so many at once (0: as
    many as there are workers for). Whether it has a limit now."""
    if delay:
        await queue.set_limit(crawl_key(crawl_id), active=1, per_second=1 / delay, burst=1)
    elif most:
        await queue.set_limit(crawl_key(crawl_id), active=most)
    return bool(delay or most)
