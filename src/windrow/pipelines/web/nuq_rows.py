"""Rows that others insert into `nuq.queue_scrape`: scrapes, whose documents are their results.

The queue of NuQ beside the queue `web`: its workers may take the same rows. The links of a page are
not followed: in NuQ whoever runs a crawl enqueues its pages.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from windrow.errors import InvalidOptions
from windrow.ingest.options import ScrapeOptions
from windrow.ingest.web.urls import normalise
from windrow.pipelines.web.context import HEARTBEAT_SECONDS, Web
from windrow.pipelines.web.page import scrape_page
from windrow.pipelines.web.payloads import NO_TEAM, SCRAPE_ROW, PagePayload
from windrow.queue.job import Job
from windrow.queue.outcome import Done, Snooze
from windrow.worker.registry import Handler, handler

PAGE_MODE: Final = "single_urls"
OPTION_NAMES: Final = frozenset(
    field.encode_name for field in msgspec.structs.fields(ScrapeOptions)
)


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


def make_row_handler(web: Web) -> Handler:
    @handler(
        SCRAPE_ROW,
        queue=SCRAPE_ROW,
        preset="nuq",
        heartbeat=HEARTBEAT_SECONDS,
        max_attempts=1,
    )
    async def scrape_row(job: Job, payload: RowPayload) -> Done | Snooze:
        if payload.mode != PAGE_MODE:
            raise InvalidOptions(
                f"mode {payload.mode!r} is not supported in {SCRAPE_ROW}: insert a row with mode "
                f"{PAGE_MODE!r} for each page, or begin the crawl by `windrow crawl` or /v2/crawl"
            )
        url = normalise(payload.url)
        if url is None:
            raise InvalidOptions(f"{payload.url!r} is not an http or https URL")
        page = PagePayload(
            url=url,
            team_id=payload.team_id or NO_TEAM,
            scrape_options=payload.options,
        )
        return await scrape_page(web, job, page)

    return scrape_row
