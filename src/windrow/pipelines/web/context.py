"""What the handlers of one worker share: the queue, one fetcher, the robots.txt they have seen."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.web.robots_cache import RobotsCache
from windrow.ingest.web.scope import CrawlOptions, Scope
from windrow.ingest.web.urls import place_of
from windrow.pipelines.web.credentials import Vault
from windrow.queue.queue import Queue


class Web:
    def __init__(self, queue: Queue, fetcher: Fetcher, vault: Vault | None = None) -> None:
        self.queue = queue
        self.fetcher = fetcher
        self._vault = vault
        self.robots = RobotsCache(fetcher)

    async def credentials_of(self, tenant: str | None) -> Credentials | None:
        """What a tenant's sites must be shown."""
        return None if self._vault is None else await self._vault.of(tenant)

    async def split_by_robots(
        self, scope: Scope, urls: Iterable[str]
    ) -> tuple[list[str], list[str]]:
        """The URLs that may be fetched, and those that robots.txt forbids."""
        if scope.options.ignore_robots_txt:
            return list(urls), []
        agent = scope.options.robots_user_agent
        allowed: list[str] = []
        blocked: list[str] = []
        for url in urls:
            robots = await self.robots.of_stranger(url)
            (allowed if robots.allows(url, agent) else blocked).append(url)
        return allowed, blocked


@lru_cache(maxsize=256)
def scope_of(start: str, options: CrawlOptions) -> Scope:
    return Scope(start, options)


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
