"""What the handlers of one worker share: the queue, one fetcher, one browser, the
robots.txt they have seen."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from windrow.ingest.browser.browser import Browser
from windrow.ingest.enrich.llm import Model
from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.options import ScrapeOptions
from windrow.ingest.web.robots import RobotsCache
from windrow.ingest.web.scope import CrawlOptions, Scope
from windrow.pipelines.web.credentials import Vault
from windrow.queue.job import Job
from windrow.queue.queue import Queue

# Of so many crawls, and of each so many pages, a worker remembers what it has run.
KEPT_CRAWLS: Final = 64
KEPT_KEYS: Final = 200_000
KEPT_NOTES: Final = 10_000
# Pages of one site at once, where nobody says how many: what browsers and other crawlers allow
# themselves.
HOST_CONCURRENCY: Final = 8
# How soon the requests of a crawl that was cancelled are stopped.
HEARTBEAT_SECONDS: Final = 1.0


class StopAsked(Exception):
    """Somebody has asked a job to stop while it runs."""


class Web:
    def __init__(
        self,
        queue: Queue,
        fetcher: Fetcher,
        vault: Vault | None = None,
        browser: Browser | None = None,
        model: Model | None = None,
        host_concurrency: int = HOST_CONCURRENCY,
        index_pages: bool = False,
    ) -> None:
        self.queue = queue
        self.fetcher = fetcher
        self.browser = browser or Browser(fetcher.guard)
        self.model = model
        self.host_concurrency = host_concurrency
        self._index_pages = index_pages and queue.store.capabilities.documents
        self._vault = vault
        self.robots = RobotsCache(fetcher)
        self._met: OrderedDict[str, set[int]] = OrderedDict()
        self._noted: OrderedDict[tuple[str, str], str] = OrderedDict()

    def not_noted(self, crawl_id: str, job_id: str, urls: Iterable[str]) -> list[str]:
        """Those that no other job has noted here lately: a menu leads to the same from each page. A
        job that runs again notes them again."""
        new = [url for url in urls if self._noted.get((crawl_id, url), job_id) == job_id]
        for url in new:
            self._noted[crawl_id, url] = job_id
        while len(self._noted) > KEPT_NOTES:
            self._noted.popitem(last=False)
        return new

    def met(self, crawl_id: str, key: str) -> set[int]:
        """The hashes of the keys that jobs of a crawl had which ran here, this one's too. Their
        group has them for certain, so it need not be asked again; it knows many more."""
        keys = self._met.setdefault(crawl_id, set())
        self._met.move_to_end(crawl_id)
        if len(self._met) > KEPT_CRAWLS:
            self._met.popitem(last=False)
        if len(keys) >= KEPT_KEYS:
            keys.clear()
        keys.add(hash(key))
        return keys

    async def is_asked_to_stop(self, job: Job) -> bool:
        """Whether a job that runs was cancelled or paused. The worker stops it too, but learns of
        it with the next renewal of its lease: a request could begin until then."""
        return (await self.queue.get(job.id)).stop_as is not None

    async def check_wanted(self, job: Job) -> None:
        """Raises StopAsked."""
        if await self.is_asked_to_stop(job):
            raise StopAsked(job.id)

    def indexes(self, options: ScrapeOptions) -> bool:
        """Whether pages with these options become searchable here."""
        return self._index_pages and options.is_indexed

    async def credentials_of(self, tenant: str | None) -> Credentials | None:
        """What a tenant's sites must be shown."""
        return None if self._vault is None else await self._vault.of(tenant)

    async def split_by_robots(
        self, scope: Scope, urls: Iterable[str], tenant: str | None
    ) -> tuple[list[str], list[str]]:
        """The URLs that may be fetched, and those that robots.txt forbids."""
        if scope.options.ignore_robots_txt:
            return list(urls), []
        credentials = await self.credentials_of(tenant)
        agent = scope.options.robots_user_agent
        allowed: list[str] = []
        blocked: list[str] = []
        for url in urls:
            robots = await self.robots.of_stranger(url, credentials)
            (allowed if robots.allows(url, agent) else blocked).append(url)
        return allowed, blocked


@lru_cache(maxsize=256)
def scope_of(start: str, options: CrawlOptions) -> Scope:
    return Scope(start, options)
