"""`web.map`: the addresses of a site, from its first page, its sitemaps and what was scraped of it
before; without its pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any, Final, Literal

import msgspec

from windrow.errors import FetchError, InvalidOptions, RateLimited
from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.options import Location, ScrapeOptions
from windrow.ingest.web.discovery import ShownHeaders, read_sitemaps, sitemap_urls
from windrow.ingest.web.robots import ALLOWS_ALL
from windrow.ingest.web.scope import CrawlOptions, Scope, Verdict, explain
from windrow.pipelines.web.context import Web
from windrow.pipelines.web.knowing import known_urls
from windrow.pipelines.web.paying import pay
from windrow.pipelines.web.payloads import MapPayload
from windrow.pipelines.web.scraping import scrape
from windrow.queue.job import Job
from windrow.queue.outcome import Done

MAX_LINKS: Final = 100_000
_WORD: Final = re.compile(r"\w+")


class MapOptions(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
):
    """What a map is asked for; the names on the wire are those of Firecrawl's v2."""

    search: str | None = None  # those that are about it come first
    sitemap: Literal["include", "skip", "only"] = "include"
    include_subdomains: bool = True
    ignore_query_parameters: bool = True
    filter_by_path: bool = True  # of a start that is not the site's own: only what lies under it
    limit: int = 5000
    timeout: int | None = None  # milliseconds
    headers: dict[str, str] = {}  # for the site itself, not for others that it names
    location: Location | None = None  # only its languages count
    use_index: bool = True  # what is known of the site from before, too

    @classmethod
    def parse(cls, wanted: Any = None) -> MapOptions:
        """Options from JSON values. Raises InvalidOptions, which names what is wrong."""
        try:
            options = msgspec.convert({} if wanted is None else wanted, cls)
        except msgspec.ValidationError as error:
            raise InvalidOptions(explain(str(error))) from error
        if not 1 <= options.limit <= MAX_LINKS:
            raise InvalidOptions(f"limit must be from 1 to {MAX_LINKS}, not {options.limit}")
        return options

    def to_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = msgspec.to_builtins(self)
        return wire

    @property
    def sent_headers(self) -> dict[str, str]:
        languages = (self.location and self.location.languages) or []
        if not languages or any(name.lower() == "accept-language" for name in self.headers):
            return self.headers
        return {**self.headers, "Accept-Language": ", ".join(languages)}


async def map_site(web: Web, job: Job, payload: MapPayload) -> Done:
    options = MapOptions.parse(payload.options)
    links = await find_links(web, job, payload.url, options)
    await pay(web, job, payload.budget)
    return Done({"links": links})


async def find_links(web: Web, job: Job, url: str, options: MapOptions) -> list[str]:
    """The addresses of a site, each once: the start, its links, those of the sitemaps, then those
    that are known from before; with `search`, those that are about it first."""
    scope = _scope(url, options)
    found: dict[str, str] = {}
    credentials = await web.credentials_of(job.tenant)
    if options.sitemap != "only":
        await _add_first_page(web, job, scope, options, found, credentials)
    if options.sitemap != "skip":
        await _add_sitemaps(web, scope, options, found, credentials)
    if options.sitemap != "only" and options.use_index:
        async with aclosing(known_urls(web.queue, scope, job.tenant)) as known:
            async for urls in known:
                _add(scope, found, urls)
                if len(found) >= MAX_LINKS:
                    break
    return order(found.values(), options.search)[: options.limit]


def order(urls: Iterable[str], search: str | None) -> list[str]:
    """Those whose address has more words of the search first, else as they came."""
    words = {word.lower() for word in _WORD.findall(search or "")}
    if not words:
        return list(urls)

    def score(url: str) -> int:
        text = url.lower()
        return -sum(word in text for word in words)

    return sorted(urls, key=score)


def _scope(url: str, options: MapOptions) -> Scope:
    asked = CrawlOptions(
        crawl_entire_domain=not options.filter_by_path,
        allow_subdomains=options.include_subdomains,
        ignore_query_parameters=options.ignore_query_parameters,
    )
    start = Scope(url, asked).address(url)
    if start is None:
        raise InvalidOptions(f"{url!r} is no address of the web")
    return Scope(start, asked)


async def _add_first_page(
    web: Web,
    job: Job,
    scope: Scope,
    options: MapOptions,
    found: dict[str, str],
    credentials: Credentials | None,
) -> None:
    page = ScrapeOptions(headers=options.sent_headers)
    scraped = await scrape(web, scope.start, page, job_id=job.id, credentials=credentials)
    final = scope.address(scraped.resource.final_url) or scope.start
    _add(scope, found, [final if scope.is_own(final) else scope.start, *scraped.links])


async def _add_sitemaps(
    web: Web,
    scope: Scope,
    options: MapOptions,
    found: dict[str, str],
    credentials: Credentials | None,
) -> None:
    try:
        robots = await web.robots.of(scope.start, credentials)
    except (FetchError, RateLimited):
        robots = ALLOWS_ALL  # there is none to be had, but there may be a sitemap
    sitemaps = sitemap_urls(scope.start, robots.sitemaps)
    shown = ShownHeaders(scope.start, options.sent_headers)
    async with aclosing(read_sitemaps(web.fetcher, sitemaps, credentials, shown)) as pages:
        async for urls in pages:
            _add(scope, found, urls)
            if len(found) >= MAX_LINKS:
                return


def _add(scope: Scope, found: dict[str, str], urls: Iterable[str]) -> None:
    for one in urls:
        url = scope.address(one)
        if url is not None and scope.admits(url, 0) is Verdict.ADMITTED:
            found.setdefault(scope.key(url), url)
