"""What the jobs of the web carry. The names in JSON are those of NuQ's jobs, so that queries
written for these find ours."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from windrow.ingest.options import ScrapeOptions
from windrow.ingest.web.scope import CrawlOptions
from windrow.pipelines.webhooks.webhook import Webhook
from windrow.queue.job import NewJob, Priority

QUEUE: Final = "web"
SCRAPE: Final = "web.scrape"
CRAWL: Final = "web.crawl"
BATCH: Final = "web.batch"
MAP: Final = "web.map"
EXTRACT: Final = "web.extract"
FINISH: Final = "web.finish"
SCRAPE_ROW: Final = "nuq.queue_scrape"  # a kind, and its queue

# Why a page failed that turned out to be another one of its crawl: no failure to others.
RACED: Final = "SCRAPE_RACED_REDIRECT_ERROR"

# The unique key of a finish job, before the id of its crawl: the dialect `nuq` reads the id there.
ENDED_KEY: Final = "nuq.group_crawl/"

# Whoever has no name of their own.
NO_TEAM: Final = "bypass"

# A person waits for a single page; many pages nobody waits for one by one.
SINGLE_PRIORITY: Final = Priority.NOW
KICKOFF_PRIORITY: Final = Priority.COMMAND
FOUND_PRIORITY: Final = Priority.NORMAL
LISTED_PRIORITY: Final = Priority.NORMAL - 1  # of a sitemap, or of a batch of very many
MANY: Final = 1000

# The mode of a page, and the options that Windrow knows of those in a row of others.
PAGE_MODE: Final = "single_urls"
OPTION_NAMES: Final = frozenset(
    field.encode_name for field in msgspec.structs.fields(ScrapeOptions)
)


class FeedPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The source that pages become documents of."""

    collection: str
    source: str
    tags: tuple[str, ...] = ()


class BudgetPayload(msgspec.Struct, frozen=True, kw_only=True):
    """What of its tenant's quota something may use, and of which period."""

    period: datetime
    credits: int


class _Payload(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    team_id: str = msgspec.field(default_factory=lambda: NO_TEAM)
    scrape_options: ScrapeOptions = msgspec.field(
        default_factory=ScrapeOptions, name="scrapeOptions"
    )
    feed: FeedPayload | None = None
    budget: BudgetPayload | None = None  # of one that is paid for by itself, not page by page


class PagePayload(_Payload, frozen=True, kw_only=True):
    """One page; `crawl_id` is that of its crawl or batch."""

    url: str
    mode: Literal["single_urls"] = msgspec.field(default_factory=lambda: "single_urls")
    crawl_id: str | None = None
    crawler_options: CrawlOptions | None = msgspec.field(default=None, name="crawlerOptions")
    origin_url: str = ""  # where its crawl began
    depth: int = 0  # hops from there
    is_limited: bool = False  # by a limit of its crawl's own
    delay: float | None = None  # seconds between the pages of its crawl, asked for or robots.txt's
    is_told: bool = False  # to the webhook of its crawl


class CrawlPayload(_Payload, frozen=True, kw_only=True):
    """A crawl, which begins with this."""

    url: str
    crawl_id: str
    mode: Literal["kickoff"] = msgspec.field(default_factory=lambda: "kickoff")
    crawler_options: CrawlOptions = msgspec.field(
        default_factory=CrawlOptions, name="crawlerOptions"
    )
    webhook: Webhook | None = None


class BatchPayload(_Payload, frozen=True, kw_only=True):
    """Pages that were named, not found."""

    urls: tuple[str, ...]
    crawl_id: str
    mode: Literal["batch"] = msgspec.field(default_factory=lambda: "batch")
    max_concurrency: int | None = msgspec.field(default=None, name="maxConcurrency")
    webhook: Webhook | None = None


class MapPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The addresses of a site, without its pages."""

    url: str
    team_id: str = msgspec.field(default_factory=lambda: NO_TEAM)
    mode: Literal["map"] = msgspec.field(default_factory=lambda: "map")
    options: dict[str, Any] = {}
    budget: BudgetPayload | None = None


class ExtractPayload(_Payload, frozen=True, kw_only=True):
    """What pages say together, in a shape that was asked for."""

    urls: tuple[str, ...]
    mode: Literal["extract"] = msgspec.field(default_factory=lambda: "extract")
    prompt: str | None = None
    schema: Any = None
    system_prompt: str | None = msgspec.field(default=None, name="systemPrompt")
    ignores_invalid: bool = msgspec.field(default=True, name="ignoreInvalidURLs")


class FinishPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A crawl or batch that has ended."""

    crawl_id: str
    feed: FeedPayload | None = None
    has_webhook: bool = False
    is_paid: bool = False  # out of its tenant's quota


class InternalOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What NuQ's own API adds to the options of a caller."""

    zero_data_retention: bool | None = None


class RowPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The `data` of a row, as far as a scrape needs it."""

    url: str
    mode: str = PAGE_MODE
    team_id: str | None = None
    scrape_options: dict[str, Any] | None = msgspec.field(default=None, name="scrapeOptions")
    zero_data_retention: bool | None = msgspec.field(default=None, name="zeroDataRetention")
    internal_options: InternalOptions | None = msgspec.field(default=None, name="internalOptions")

    @property
    def options(self) -> ScrapeOptions:
        """The options that Windrow knows. NuQ's own API inserts the whole request, `url` and
        `__experimental_omce` included."""
        given = (self.scrape_options or {}).items()
        options = ScrapeOptions.parse(
            {name: value for name, value in given if name in OPTION_NAMES}
        )
        internal = self.internal_options or InternalOptions()
        if self.zero_data_retention or internal.zero_data_retention:
            return msgspec.structs.replace(options, zero_data_retention=True)
        return options


def finish_job(payload: CrawlPayload | BatchPayload, tenant: str | None) -> NewJob:
    """What is to be done when the last page of a crawl or batch has ended."""
    finish = FinishPayload(
        crawl_id=payload.crawl_id,
        feed=payload.feed,
        has_webhook=payload.webhook is not None,
        is_paid=payload.budget is not None,
    )
    # Whoever waits for a source waits for this too.
    tags = () if payload.feed is None else (f"source:{payload.feed.source}",)
    return NewJob(
        FINISH,
        msgspec.to_builtins(finish),
        queue=QUEUE,
        tenant=tenant,
        tags=tags,
        unique=ENDED_KEY + payload.crawl_id,
    )


def to_json(payload: msgspec.Struct) -> dict[str, Any]:
    """A payload as JSON values; options without those that are as by default."""
    wire: dict[str, Any] = msgspec.to_builtins(payload)
    options = getattr(payload, "scrape_options", None)
    if options is not None:
        wire["scrapeOptions"] = options.to_wire()
    if isinstance(payload, PagePayload):
        wire.setdefault("crawlerOptions", None)
    elif isinstance(payload, CrawlPayload):
        wire.setdefault("crawlerOptions", {})
    return wire
