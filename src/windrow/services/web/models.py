"""What is asked of the web in words: fields out of pages, and the options of a crawl. Both take a
language model (`llm_url`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from windrow.accounts.usage import QuotaRow
from windrow.errors import InvalidOptions, ModelMissing
from windrow.ingest.enrich.llm import Model, check_schema
from windrow.ingest.enrich.model_formats import MISSING
from windrow.ingest.options import ScrapeOptions
from windrow.ingest.web.scope import CrawlOptions
from windrow.pipelines.web.payloads import (
    EXTRACT,
    NO_TEAM,
    QUEUE,
    SINGLE_PRIORITY,
    ExtractPayload,
    to_json,
)
from windrow.queue.job import Job
from windrow.queue.queue import Queue
from windrow.services.quotas import take_budget
from windrow.services.web.finding import find
from windrow.services.web.starting import sort_out
from windrow.settings import Settings

MOST_URLS: Final = 10
# What a wish may decide; the rest, like whom to ignore and how fast to go, is not for a model.
_PATTERNS: Final = {"type": "array", "items": {"type": "string"}}
CRAWL_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "includePaths": {**_PATTERNS, "description": "regular expressions found in wanted paths"},
        "excludePaths": {**_PATTERNS, "description": "regular expressions found in unwanted paths"},
        "maxDiscoveryDepth": {"type": ["integer", "null"], "minimum": 0},
        "limit": {"type": ["integer", "null"], "minimum": 1},
        "crawlEntireDomain": {"type": ["boolean", "null"]},
        "allowSubdomains": {"type": ["boolean", "null"]},
        "allowExternalLinks": {"type": ["boolean", "null"]},
        "sitemap": {"enum": ["include", "skip", "only", None]},
        "ignoreQueryParameters": {"type": ["boolean", "null"]},
        "deduplicateSimilarURLs": {"type": ["boolean", "null"]},
    },
}
WISH: Final = (
    "The text is no page but the address at which a crawl of a site begins. Choose the options of "
    "that crawl. Only what the wish asks for is set, all else is left out. The wish: "
)


def check_model(settings: Settings) -> None:
    """Raises ModelMissing."""
    if not settings.llm_url:
        raise ModelMissing(f"no language model is set: {MISSING}")


async def start_extract(
    queue: Queue,
    settings: Settings,
    urls: Sequence[str],
    *,
    prompt: str | None = None,
    schema: Any = None,
    system_prompt: str | None = None,
    ignore_invalid: bool = True,
    scrape_options: Mapping[str, Any] | None = None,
    tenant: str | None = None,
    quota: QuotaRow | None = None,
) -> tuple[str, Sequence[str]]:
    """Have what pages say put into a shape; its id, and the URLs that are none."""
    check_model(settings)
    if prompt is None and schema is None:
        raise InvalidOptions("prompt: say what is wanted, by a prompt or a schema")
    if any(url.endswith("*") for url in urls):
        raise InvalidOptions("urls: whole sites (/*) are not extracted from; crawl them")
    valid, invalid = sort_out(urls, ignore_invalid)
    if len(valid) > MOST_URLS:
        raise InvalidOptions(f"urls: {len(valid)} at once; {MOST_URLS} are the most")
    check_schema(schema)
    payload = ExtractPayload(
        urls=tuple(valid),
        team_id=tenant or NO_TEAM,
        scrape_options=ScrapeOptions.parse(scrape_options),
        prompt=prompt,
        schema=schema,
        system_prompt=system_prompt,
        ignores_invalid=ignore_invalid,
        budget=await take_budget(queue, quota, len(valid)),
    )
    job = await queue.enqueue(
        EXTRACT, to_json(payload), queue=QUEUE, priority=SINGLE_PRIORITY, tenant=tenant
    )
    return job.id, invalid


async def get_extract(queue: Queue, extract_id: str, *, tenant: str | None = None) -> Job:
    """Raises JobNotFound."""
    return await find(queue, extract_id, (EXTRACT,), tenant)


async def choose_crawl_options(settings: Settings, url: str, wish: str) -> dict[str, Any]:
    """The options of a crawl by what somebody says they want, as JSON values. Raises ModelMissing,
    and EnrichError if the model does not find any that are good."""
    check_model(settings)
    model = Model.from_settings(settings)
    if model is None:
        raise ModelMissing(f"no language model is set: {MISSING}")
    async with model:
        chosen = await model.fill(url, CRAWL_SCHEMA, f"{WISH}{wish}")
    given = {name: value for name, value in chosen.items() if value not in (None, [])}
    return CrawlOptions.parse(given).to_wire()
