"""What is kept of pages for later scrapes: documents to hand out again (`maxAge`), and the last
version of pages whose changes are followed (`changeTracking`).

Everything is found only with the tenant it was kept for, and a document only with the options it
was made with. A version that changes are told from is kept by the transaction that completes its
job: what runs twice tells the same change twice, never none.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.pages import PageRow, page_key
from windrow.errors import FetchError, ScrapeFailed
from windrow.ingest.document import Document, Resource
from windrow.ingest.enrich.changes import GONE, compare, is_comparable
from windrow.ingest.enrich.llm import Model
from windrow.ingest.enrich.model_formats import compare_fields
from windrow.ingest.fetch import codes
from windrow.ingest.options import Format, ScrapeOptions
from windrow.pipelines.web.knowing import is_passed_by
from windrow.pipelines.web.scraping import Scraped
from windrow.queue.job import Job
from windrow.queue.queue import Queue
from windrow.queue.store import Store

LARGEST_BYTES: Final = 8 * 1024 * 1024  # of a page that is kept, compressed
FASTEST: Final = 1  # of the levels of zlib: text becomes a third of its size either way

# Options that say how a page is had, not what is made of it.
_ASIDE: Final = frozenset(
    ["maxAge", "minAge", "storeInCache", "lockdown", "timeout", "integration", "origin"]
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A page of an earlier scrape."""

    key: bytes
    scraped: Scraped
    fetched_at: datetime
    etag: str | None
    last_modified: str | None


class _Body(msgspec.Struct, omit_defaults=True):
    document: dict[str, Any]
    links: list[str]
    url: str
    redirects: tuple[str, ...] = ()
    content_type: str = ""
    text: str | None = None  # for the index, where the document has no markdown


class _Version(msgspec.Struct, omit_defaults=True):
    markdown: str
    crawl_id: str | None = None  # the last crawl that came by


def is_asked_for(options: ScrapeOptions) -> bool:
    """Whether an earlier scrape will do."""
    return options.max_age is not None or is_required(options)


def is_required(options: ScrapeOptions) -> bool:
    """Whether nothing but an earlier scrape will do."""
    return options.lockdown or options.min_age is not None


def may_be_shared(options: ScrapeOptions) -> bool:
    """Not what somebody's own headers or actions lead to, nor what tells of changes."""
    is_own = options.headers or options.actions or options.profile or options.zero_data_retention
    return not is_own and not options.wants("changeTracking")


async def recall(store: Store, url: str, options: ScrapeOptions, job: Job) -> Kept | None:
    """The page as it was kept, however old it is."""
    if not may_be_shared(options):
        return None
    row = await Catalog(store.database).pages.get(page_key(job.tenant, url, _fingerprint(options)))
    if row is None:
        return None
    body = msgspec.json.decode(zlib.decompress(row.body), type=_Body)
    document = Document.from_wire(body.document)
    document.metadata.scrape_id = job.id
    document.metadata.cache_state = "hit"
    document.metadata.cached_at = row.fetched_at.isoformat()
    resource = Resource(
        url=url,
        final_url=body.url,
        status=document.metadata.status_code,
        body=b"",
        content_type=body.content_type,
        redirects=body.redirects,
        fetched_at=row.fetched_at,
        etag=row.etag,
        last_modified=row.last_modified,
    )
    text = document.markdown if body.text is None else body.text
    scraped = Scraped(resource, document, body.links, text)
    return Kept(row.key, scraped, row.fetched_at, row.etag, row.last_modified)


def choose(kept: Kept | None, url: str, options: ScrapeOptions) -> Scraped | None:
    """The page that was kept, if it is of the age that is asked for; None: it is to be fetched.
    Raises ScrapeFailed if it may not be."""
    if kept is not None:
        age = (datetime.now(UTC) - kept.fetched_at).total_seconds() * 1000
        oldest = options.max_age if options.max_age is not None else age
        if (options.min_age or 0) <= age <= oldest and is_asked_for(options):
            return kept.scraped
    if is_required(options):
        why = "no earlier version of it is of the age that was asked for, and it may not be fetched"
        raise ScrapeFailed(FetchError(codes.NO_CACHED, url, why))
    return None


async def keep(store: Store, url: str, options: ScrapeOptions, job: Job, scraped: Scraped) -> None:
    """Keep a page that was fetched just now. One with a warning lacks something, and is made again
    when it is asked for again."""
    resource = scraped.resource
    if scraped.document.warning is not None:
        return
    if not (options.store_in_cache and may_be_shared(options) and 200 <= resource.status < 300):
        return
    body = _Body(
        scraped.document.to_wire(),
        scraped.links,
        resource.final_url,
        resource.redirects,
        resource.content_type,
        scraped.text if scraped.document.markdown is None else None,
    )
    row = PageRow(
        tenant=job.tenant,
        url=url,
        variant=_fingerprint(options),
        fetched_at=resource.fetched_at,
        body=_packed(body),
        etag=resource.etag,
        last_modified=resource.last_modified,
    )
    if len(row.body) <= LARGEST_BYTES:
        await Catalog(store.database).pages.keep(row)


async def still_good(store: Store, kept: Kept, resource: Resource) -> Scraped:
    """The page that was kept, of which its server says that it is still the same."""
    await Catalog(store.database).pages.touch(kept.key, resource.fetched_at)
    kept.scraped.document.metadata.cached_at = resource.fetched_at.isoformat()
    return kept.scraped


async def track_changes(
    queue: Queue,
    url: str,
    wanted: Format,
    job: Job,
    document: Document,
    model: Model | None,
    crawl_id: str | None = None,
) -> None:
    """Tell what has changed, and keep this version when the job is completed. `crawl_id` is the
    crawl that found the page, if one did."""
    if not is_comparable(document):
        status = document.metadata.status_code
        document.warn(f"The answer has status {status}, so it is not compared with earlier ones.")
        return
    variant = f"changes:{wanted.tag or ''}"
    catalog = Catalog(queue.database)
    row = await catalog.pages.get(page_key(job.tenant, url, variant))
    former = None if row is None else _unpacked(row)
    before = None if former is None else former.markdown
    document.change_tracking = await asyncio.to_thread(
        compare,
        document,
        before,
        None if row is None else row.fetched_at,
        with_diff="git-diff" in (wanted.modes or ()),
    )
    found_by = crawl_id or (None if former is None else former.crawl_id)
    if crawl_id is None and found_by and await is_passed_by(queue, url, job.tenant, found_by):
        document.change_tracking.visibility = "hidden"
    if before is not None and "json" in (wanted.modes or ()):
        await compare_fields(document, wanted, before, model)
    if document.metadata.status_code not in GONE:
        version = _Version(document.markdown or "", found_by)
        kept = PageRow(job.tenant, url, variant, datetime.now(UTC), _packed(version))
        # Last, because on Postgres a transaction is open from here on.
        await catalog.pages.keep(kept, tx=job.tx)


def _fingerprint(options: ScrapeOptions) -> str:
    wire = {name: value for name, value in options.to_wire().items() if name not in _ASIDE}
    if options.wants_markdown:
        wire.pop("index", None)  # the text is there either way
    wire["formats"] = sorted(
        (msgspec.to_builtins(one) for one in options.formats), key=lambda one: str(one["type"])
    )
    return hashlib.sha256(msgspec.json.encode(wire, order="deterministic")).hexdigest()[:32]


def _packed(body: _Body | _Version) -> bytes:
    return zlib.compress(msgspec.json.encode(body), FASTEST)


def _unpacked(row: PageRow) -> _Version:
    return msgspec.json.decode(zlib.decompress(row.body), type=_Version)
