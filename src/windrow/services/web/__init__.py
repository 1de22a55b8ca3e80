"""What people ask of the web, and what they are told of it."""

from __future__ import annotations

from windrow.pipelines.web.failures import why_failed
from windrow.services.web.crawls import (
    Crawl,
    CrawlErrors,
    PageError,
    cancel_crawl,
    count_raced,
    get_crawl,
    get_errors,
    list_crawls,
    list_error_answers,
    read_crawl,
    retry_failed,
    robots_warning,
    warning_of,
)
from windrow.services.web.finding import get_scrape
from windrow.services.web.pages import (
    NewPages,
    document_of,
    error_of,
    iterate_pages,
    list_pages,
)
from windrow.services.web.starting import (
    StartedBatch,
    check_webhook,
    fetch_again,
    map_site,
    scrape_one,
    start_batch,
    start_crawl,
    start_map,
    start_scrape,
    wait_or_cancel,
)

__all__ = [
    "Crawl",
    "CrawlErrors",
    "NewPages",
    "PageError",
    "StartedBatch",
    "cancel_crawl",
    "check_webhook",
    "count_raced",
    "document_of",
    "error_of",
    "fetch_again",
    "get_crawl",
    "get_errors",
    "get_scrape",
    "iterate_pages",
    "list_crawls",
    "list_error_answers",
    "list_pages",
    "map_site",
    "read_crawl",
    "retry_failed",
    "robots_warning",
    "scrape_one",
    "start_batch",
    "start_crawl",
    "start_map",
    "start_scrape",
    "wait_or_cancel",
    "warning_of",
    "why_failed",
]
