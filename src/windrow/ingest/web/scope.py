"""What a crawl is asked for (`CrawlOptions`), and which URLs are its own (`Scope`).

A scope is made once per start URL and asks nothing of anybody: robots.txt, and whether a page was
seen already, are decided elsewhere.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

from windrow.errors import InvalidOptions
from windrow.ingest.web.urls import (
    drop_query,
    has_skipped_extension,
    normalise,
    page_key,
    place_of,
    without_www,
)
from windrow.patterns import compile_patterns

MAX_DELAY_SECONDS: Final = 60.0

_UNKNOWN: Final = "Object contains unknown field"

SitemapUse = Literal["include", "skip", "only"]


class CrawlOptions(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
):
    """What a crawl is asked for; the names on the wire are those of Firecrawl's v2."""

    include_paths: tuple[str, ...] = ()  # regular expressions, one of which must match
    exclude_paths: tuple[str, ...] = ()  # none of which may match; tried first
    # On the whole URL, else on its path.
    regex_on_full_url: bool = msgspec.field(default=False, name="regexOnFullURL")
    max_discovery_depth: int | None = None  # hops from the start, or from a page of the sitemap
    limit: int = 10_000  # pages
    crawl_entire_domain: bool = False  # else only what lies under the start
    allow_subdomains: bool = False
    allow_external_links: bool = False  # one hop out of the site
    sitemap: SitemapUse = "include"
    llms_txt: bool = True  # look for llms.txt as well
    ignore_query_parameters: bool = False
    deduplicate_similar_urls: bool = msgspec.field(default=True, name="deduplicateSimilarURLs")
    ignore_robots_txt: bool = False
    robots_user_agent: str | None = None
    delay: float | None = None  # seconds between pages, one at a time
    max_concurrency: int | None = None

    @classmethod
    def parse(cls, wanted: Any = None) -> CrawlOptions:
        """Options from JSON values. Raises InvalidOptions, which names what is wrong."""
        try:
            options = msgspec.convert({} if wanted is None else wanted, cls, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidOptions(explain(str(error))) from error
        options.check()
        return options

    def to_wire(self) -> dict[str, Any]:
        """The options as JSON values, without those that are as by default."""
        wire: dict[str, Any] = msgspec.to_builtins(self)
        return wire

    def check(self) -> None:
        _check_least(self.limit, 1, "limit")
        _check_least(self.max_discovery_depth, 0, "maxDiscoveryDepth")
        _check_least(self.max_concurrency, 1, "maxConcurrency")
        if self.delay is not None and not 0 < self.delay <= MAX_DELAY_SECONDS:
            raise InvalidOptions(
                f"delay must be more than 0 and at most {MAX_DELAY_SECONDS:g} seconds, "
                f"not {self.delay:g}"
            )
        compile_patterns(self.include_paths, "includePaths")
        compile_patterns(self.exclude_paths, "excludePaths")


class Verdict(StrEnum):
    """Whether a URL belongs to a crawl, and if not, why."""

    ADMITTED = "admitted"
    NOT_A_PAGE = "not a page"
    TOO_DEEP = "too deep"
    EXCLUDED = "excluded"
    NOT_INCLUDED = "not included"
    ELSEWHERE = "elsewhere"  # another site
    ABOVE_START = "above the start"


class Scope:
    """Which URLs belong to the crawl that begins at `start`, a normalised URL."""

    def __init__(self, start: str, options: CrawlOptions) -> None:
        self.start = start
        self.options = options
        self._site = without_www(place_of(start).site)
        self._prefix = _prefix_of(place_of(start).path)
        self._includes = compile_patterns(options.include_paths, "includePaths")
        self._excludes = compile_patterns(options.exclude_paths, "excludePaths")

    @property
    def has_patterns(self) -> bool:
        """Whether `admits` searches with regular expressions, which can take long."""
        return bool(self._includes or self._excludes)

    def address(self, url: str, base: str | None = None) -> str | None:
        """The URL as this crawl fetches it, or None if it is none of the web."""
        made = normalise(url, base)
        return drop_query(made) if made and self.options.ignore_query_parameters else made

    def key(self, url: str) -> str:
        """The name under which a URL counts as seen in this crawl."""
        return page_key(
            url,
            similar=self.options.deduplicate_similar_urls,
            ignore_query=self.options.ignore_query_parameters,
        )

    def admits(self, url: str, depth: int, found_on: str | None = None) -> Verdict:
        """Whether a URL, `depth` hops from the start, belongs to the crawl. `found_on` is the page
        that leads to it; None is a sitemap."""
        if has_skipped_extension(url):
            return Verdict.NOT_A_PAGE
        deepest = self.options.max_discovery_depth
        if deepest is not None and depth > deepest:
            return Verdict.TOO_DEEP
        if (refused := self._refused_by_pattern(url)) is not None:
            return refused
        return self._refused_by_place(url, found_on) or Verdict.ADMITTED

    def is_own(self, url: str) -> bool:
        """Whether a URL is of the start's site, or of a subdomain if these are allowed."""
        site = without_www(place_of(url).site)
        return site == self._site or (
            self.options.allow_subdomains and site.endswith(f".{self._site}")
        )

    def _refused_by_pattern(self, url: str) -> Verdict | None:
        if not self.has_patterns:
            return None
        text = url if self.options.regex_on_full_url else place_of(url).path
        if any(pattern.is_in(text) for pattern in self._excludes):
            return Verdict.EXCLUDED
        if self._includes and not any(pattern.is_in(text) for pattern in self._includes):
            return Verdict.NOT_INCLUDED
        return None

    def _refused_by_place(self, url: str, found_on: str | None) -> Verdict | None:
        place = place_of(url)
        if without_www(place.site) == self._site:
            is_below = self.options.crawl_entire_domain or self._is_below(place.path)
            return None if is_below else Verdict.ABOVE_START
        if self.is_own(url):
            return None
        is_one_hop = found_on is not None and self.is_own(found_on)
        return None if self.options.allow_external_links and is_one_hop else Verdict.ELSEWHERE

    def _is_below(self, path: str) -> bool:
        if self._prefix.endswith("/"):
            return path.startswith(self._prefix)
        return path == self._prefix or path.startswith(f"{self._prefix}/")


def _prefix_of(path: str) -> str:
    """What the paths of a crawl begin with: of `/docs/` that, of `/docs/index.html` its folder,
    of `/docs` that and what is under it."""
    folder, _, last = path.rpartition("/")
    return f"{folder}/" if "." in last.strip(".") else path


def _check_least(value: int | None, least: int, name: str) -> None:
    if value is not None and value < least:
        raise InvalidOptions(f"{name} must be at least {least}, not {value}")


def explain(message: str) -> str:
    """msgspec's message, with the option's own name first."""
    if message.startswith(_UNKNOWN):
        return message.replace(_UNKNOWN, "Unrecognized key in body:")
    what, _, where = message.partition(" - at `$.")
    return f"{where.rstrip('`')}: {what}" if where else what
