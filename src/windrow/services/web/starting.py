"""What people ask of the web: a page, many pages, a site, the addresses of a site.

Everything is a job: these functions enqueue it. Workers do the rest.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from windrow.accounts.usage import QuotaRow
from windrow.errors import (
    Blocked,
    DuplicateJob,
    GroupEnded,
    GroupNotFound,
    IllegalTransition,
    InvalidOptions,
    WaitTimeout,
)
from windrow.ids import new_id
from windrow.ingest.fetch.guard import Guard
from windrow.ingest.options import ScrapeOptions
from windrow.ingest.web.scope import CrawlOptions
from windrow.ingest.web.urls import normalise
from windrow.pipelines.web.answers import list_bad_answers
from windrow.pipelines.web.batch import batch_jobs
from windrow.pipelines.web.limiting import limit_keys
from windrow.pipelines.web.mapping import MapOptions
from windrow.pipelines.web.payloads import (
    BATCH,
    CRAWL,
    KICKOFF_PRIORITY,
    MAP,
    NO_TEAM,
    QUEUE,
    SCRAPE,
    SINGLE_PRIORITY,
    BatchPayload,
    CrawlPayload,
    MapPayload,
    PagePayload,
    to_json,
)
from windrow.pipelines.webhooks.webhook import Webhook
from windrow.queue.job import Job, NewJob
from windrow.queue.queue import Queue
from windrow.services.quotas import take_budget
from windrow.services.web.finding import find
from windrow.settings import Settings

# A batch is one job, whose payload has an end; longer lists are appended part by part.
MOST_URLS: Final = 20_000
# How long pages that are added to a batch wait for its first job to run.
APPEND_SECONDS: Final = 10.0
APPEND_WAIT: Final = 0.05
# Where idempotency keys become ids.
_IDEMPOTENCY: Final = uuid.UUID("5f0c6a4e-3a5c-5d0e-9d55-3b0e5e5f7a11")
# `mailto:me@example.org` has one, `localhost:8080/a` and `example.org/a:b` have none.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?!\d+(?:[/?#]|$))")


@dataclass(frozen=True, slots=True)
class StartedBatch:
    id: str
    invalid_urls: Sequence[str]


async def start_scrape(
    queue: Queue,
    url: str,
    options: Mapping[str, Any] | None = None,
    *,
    tenant: str | None = None,
    quota: QuotaRow | None = None,
    idempotency_key: str | None = None,
) -> Job:
    """Have one page scraped; the result of the job is the document. Raises QuotaExceeded. With an
    `idempotency_key` it is scraped once: see `start_batch`."""
    address = _address(url)
    payload = PagePayload(
        url=address, scrape_options=ScrapeOptions.parse(options), team_id=tenant or NO_TEAM
    )
    job = NewJob(
        SCRAPE,
        queue=QUEUE,
        priority=SINGLE_PRIORITY,
        tenant=tenant,
        limits=limit_keys(address, tenant=tenant),
        id=_run_id(SCRAPE, idempotency_key, tenant),
    )
    return await _begin(queue, job, payload, quota, idempotency_key)


async def scrape_one(
    queue: Queue,
    url: str,
    options: Mapping[str, Any] | None = None,
    *,
    tenant: str | None = None,
    timeout: float | None = None,
) -> Job:
    """Have one page scraped, and wait for it. Raises WaitTimeout; the job goes on."""
    job = await start_scrape(queue, url, options, tenant=tenant)
    return await queue.wait(job.id, timeout=timeout)


async def wait_or_cancel(queue: Queue, job_id: str, *, timeout: float) -> Job:
    """A job that has ended. When the time is up it is cancelled, as nobody waits for it any more,
    and WaitTimeout is raised."""
    try:
        return await queue.wait(job_id, timeout=timeout)
    except WaitTimeout:
        try:
            await queue.cancel(job_id, reason="nobody waits for it any more")
        except IllegalTransition:
            return await queue.get(job_id)  # it ended at the last moment
        raise


async def start_crawl(
    queue: Queue,
    url: str,
    options: Mapping[str, Any] | None = None,
    scrape_options: Mapping[str, Any] | None = None,
    *,
    webhook: str | Mapping[str, Any] | None = None,
    tenant: str | None = None,
    quota: QuotaRow | None = None,
    idempotency_key: str | None = None,
) -> str:
    """Have a site crawled; its id. Raises InvalidOptions and QuotaExceeded, and then nothing is
    begun; it ends with what is left of a quota. With an `idempotency_key` it is begun once: see
    `start_batch`."""
    crawl_id = _run_id(CRAWL, idempotency_key, tenant)
    payload = CrawlPayload(
        url=_address(url),
        crawl_id=crawl_id,
        team_id=tenant or NO_TEAM,
        crawler_options=CrawlOptions.parse(options),
        scrape_options=ScrapeOptions.parse(scrape_options),
        webhook=None if webhook is None else Webhook.parse(webhook),
    )
    await _begin(queue, _first_job(CRAWL, crawl_id, tenant), payload, quota, idempotency_key)
    return crawl_id


async def start_batch(
    queue: Queue,
    urls: Sequence[str],
    scrape_options: Mapping[str, Any] | None = None,
    *,
    max_concurrency: int | None = None,
    ignore_invalid: bool = True,
    append_to: str | None = None,
    tenant: str | None = None,
    quota: QuotaRow | None = None,
    idempotency_key: str | None = None,
    webhook: str | Mapping[str, Any] | None = None,
) -> StartedBatch:
    """Have these pages scraped, or add them to a batch that has not ended (`append_to`), whose
    webhook is told of them, too. With an `idempotency_key` it is begun once for a tenant, as long
    as it is kept: asked for again it is the same batch, and DuplicateJob if something else is asked
    for. Raises QuotaExceeded if not all of it is left of a quota."""
    valid, invalid = sort_out(urls, ignore_invalid)
    if max_concurrency is not None and max_concurrency < 1:
        raise InvalidOptions(f"maxConcurrency must be at least 1, not {max_concurrency}")
    batch_id = append_to or _run_id(BATCH, idempotency_key, tenant)
    payload = BatchPayload(
        urls=tuple(valid),
        crawl_id=batch_id,
        team_id=tenant or NO_TEAM,
        scrape_options=ScrapeOptions.parse(scrape_options),
        max_concurrency=max_concurrency,
        webhook=None if webhook is None else Webhook.parse(webhook),
    )
    if append_to is not None:
        await take_budget(queue, quota, len(valid))
        await _append(queue, payload, tenant)
    else:
        await _begin(queue, _first_job(BATCH, batch_id, tenant), payload, quota, idempotency_key)
    return StartedBatch(batch_id, invalid)


async def fetch_again(
    queue: Queue, crawl_id: str, *, tenant: str | None = None, quota: QuotaRow | None = None
) -> StartedBatch:
    """Have the pages of a crawl or batch that has ended fetched once more whose servers answered
    with an error that may pass. They are completed, and stay what they are: this is a batch of its
    own, for the same source if there is one. Asked for twice at once it is one. Raises JobNotFound,
    InvalidOptions if there are none, and QuotaExceeded."""
    root = await find(queue, crawl_id, (CRAWL, BATCH), tenant)
    bad = await list_bad_answers(queue, root.id, limit=MOST_URLS)
    passing = [one.url for one in bad if one.may_pass]
    if not passing:
        raise InvalidOptions("none of its pages answered with an error that may pass")
    valid, invalid = sort_out(passing, ignore_invalid=True)
    # Notes are only ever added, so their number says which they are.
    key = f"again {root.id} {len(valid)}"
    batch_id = _run_id(BATCH, key, root.tenant)
    former = msgspec.convert(root.payload, CrawlPayload if root.kind == CRAWL else BatchPayload)
    payload = BatchPayload(
        urls=tuple(valid),
        crawl_id=batch_id,
        team_id=former.team_id,
        scrape_options=former.scrape_options,
        feed=former.feed,
    )
    first = msgspec.structs.replace(_first_job(BATCH, batch_id, root.tenant), tags=root.tags)
    await _begin(queue, first, payload, quota, key)
    return StartedBatch(batch_id, invalid)


async def start_map(
    queue: Queue,
    url: str,
    options: Mapping[str, Any] | None = None,
    *,
    tenant: str | None = None,
    quota: QuotaRow | None = None,
) -> Job:
    """Have the addresses of a site listed; the result of the job is `{"links": […]}`. Raises
    QuotaExceeded."""
    payload = MapPayload(
        url=_address(url),
        team_id=tenant or NO_TEAM,
        options=MapOptions.parse(options).to_wire(),
        budget=await take_budget(queue, quota),
    )
    return await queue.enqueue(
        MAP, to_json(payload), queue=QUEUE, priority=SINGLE_PRIORITY, tenant=tenant
    )


async def map_site(
    queue: Queue,
    url: str,
    options: Mapping[str, Any] | None = None,
    *,
    tenant: str | None = None,
    timeout: float | None = None,
) -> Job:
    """The same, and wait for it. Raises WaitTimeout; the job goes on."""
    job = await start_map(queue, url, options, tenant=tenant)
    return await queue.wait(job.id, timeout=timeout)


def check_webhook(settings: Settings, webhook: str | Mapping[str, Any]) -> None:
    """Refuse early what would be refused when it is sent: what is wrong, and what is private.
    Raises InvalidOptions."""
    made = Webhook.parse(webhook)
    try:
        Guard.from_settings(settings).check_url(made.url)
    except Blocked as error:
        why = str(error).removeprefix(f"{error.url}: ")
        raise InvalidOptions(
            f"webhook.url: {why}; see the settings allow_hosts and allow_private_networks"
        ) from error


async def _append(queue: Queue, more: BatchPayload, tenant: str | None) -> None:
    """Add pages to a batch. Its group is made when its first job runs, which is waited for."""
    batch_id = more.crawl_id
    give_up_at = time.monotonic() + APPEND_SECONDS
    while True:
        root = await find(queue, batch_id, (BATCH,), tenant)
        try:
            await queue.enqueue_many(batch_jobs(_as_in(root, more), tenant))
        except GroupNotFound:
            if root.is_finished:
                raise GroupEnded(batch_id) from None
            if time.monotonic() > give_up_at:
                raise WaitTimeout(batch_id) from None
            await asyncio.sleep(APPEND_WAIT)
        else:
            return


def _as_in(root: Job, more: BatchPayload) -> BatchPayload:
    """Pages are told of to the webhook of the batch they are added to."""
    first = msgspec.convert(root.payload, BatchPayload)
    if more.webhook not in (None, first.webhook):
        raise InvalidOptions("webhook: the batch has another one, or none, since it was begun")
    return msgspec.structs.replace(more, webhook=first.webhook)


async def _begin(
    queue: Queue,
    new: NewJob,
    payload: PagePayload | CrawlPayload | BatchPayload,
    quota: QuotaRow | None,
    idempotency_key: str | None,
) -> Job:
    """Enqueue a page, or the first job of a crawl or batch. Who comes second with a key, or again
    after an answer was lost, finds the job of the first, whatever is left of the quota now."""
    if idempotency_key is not None and quota is not None and new.id is not None:
        for first in (await queue.get_many([new.id])).values():
            _check_same(first, to_json(payload), idempotency_key)
            return first
    wanted = len(payload.urls) if isinstance(payload, BatchPayload) else 1
    budget = await take_budget(queue, quota, wanted)
    wire = to_json(msgspec.structs.replace(payload, budget=budget))
    job = await queue.enqueue(**{**msgspec.structs.asdict(new), "payload": wire})
    if idempotency_key is not None:
        _check_same(job, wire, idempotency_key)
    return job


def _first_job(kind: str, crawl_id: str, tenant: str | None) -> NewJob:
    return NewJob(kind, queue=QUEUE, priority=KICKOFF_PRIORITY, tenant=tenant, id=crawl_id)


def _check_same(first: Job, wire: Mapping[str, Any], idempotency_key: str) -> None:
    """Raises DuplicateJob. What was left of a quota is nothing that was asked for."""
    asked = msgspec.json.decode(msgspec.json.encode(wire))
    if {**first.payload, "budget": None} != {**asked, "budget": None}:
        raise DuplicateJob(idempotency_key, first.id)


def _run_id(kind: str, idempotency_key: str | None, tenant: str | None) -> str:
    """The same for the same key, so that there can be one only."""
    if idempotency_key is None:
        return new_id()
    return str(uuid.uuid5(_IDEMPOTENCY, f"{kind}\n{tenant or ''}\n{idempotency_key}"))


def _address(url: str) -> str:
    """An address of the web; `example.org` is meant as one."""
    scheme = _SCHEME.match(url.strip())
    if scheme is not None and scheme[1].lower() not in ("http", "https"):
        raise InvalidOptions(f"{url!r} is no address of the web: only http and https are fetched")
    address = normalise(url if scheme else f"https://{url.strip()}")
    if address is None:
        raise InvalidOptions(f"{url!r} is no address of the web")
    if scheme is None and not _is_place(address):
        raise InvalidOptions(
            f"{url!r} is no address of the web: if a host has that name, say http://{url.strip()}/"
        )
    return address


def _is_place(address: str) -> bool:
    """Whether what was written without a scheme can be meant as an address: a word alone is not."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    return "." in host or ":" in host or host == "localhost" or parts.port is not None


def sort_out(urls: Sequence[str], ignore_invalid: bool) -> tuple[list[str], list[str]]:
    valid: dict[str, None] = {}
    invalid = []
    for url in urls:
        address = normalise(url)
        if address is None:
            invalid.append(url)
        else:
            valid[address] = None
    if invalid and not ignore_invalid:
        raise InvalidOptions(f"no addresses of the web: {', '.join(map(repr, invalid[:5]))}")
    if not valid:
        raise InvalidOptions("No valid URLs provided")
    if len(valid) > MOST_URLS:
        raise InvalidOptions(f"{len(valid)} URLs at once; {MOST_URLS} are the most")
    return list(valid), invalid
