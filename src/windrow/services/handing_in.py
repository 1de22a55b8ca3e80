"""Taking in what people and other crawlers hand over: files, texts with their addresses, and the
pages that Firecrawl's webhooks tell of. What cannot be read is said of each, and keeps nothing else
from being taken."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from windrow.catalog import Catalog
from windrow.catalog.sources import SourceRow
from windrow.errors import IngestError, InvalidOptions
from windrow.ingest.files.content import (
    FileContent,
    FileText,
    SizeLimits,
    reason_too_large,
    to_text,
)
from windrow.ingest.web.urls import canonical, normalise
from windrow.pipelines.index.sessions import note
from windrow.pipelines.knowledge.handing import Handed, hand_in, open_handed, pages_source
from windrow.pipelines.webhooks.sending import sign
from windrow.queue.queue import Queue
from windrow.services.knowledge import COLLECTION

logger = logging.getLogger(__name__)

PAGE_EVENTS: Final = frozenset({"crawl.page", "batch_scrape.page"})
CRAWL_EVENTS: Final = frozenset(
    f"{what}.{event}"
    for what in ("crawl", "batch_scrape")
    for event in ("started", "completed", "failed", "cancelled")
)
NAME_CHARACTERS: Final = 60  # of a file, in the id of its source
LONGEST_NAME: Final = 1000
FAILED_FROM: Final = 400  # of the status of a page
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")
# Where the ids of deliveries become ids of jobs.
_DELIVERIES: Final = uuid.UUID("6f1d8a52-94a3-5c0a-8f9e-0c1b3a7d2e44")
# Each conversion may take a core.
_threads: Final = ThreadPoolExecutor(2, thread_name_prefix="windrow-uploads")


@dataclass(frozen=True, slots=True)
class Upload:
    name: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one of many: the source it is of, or why there is none."""

    name: str
    source: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The job that makes it searchable, if anything was taken, and what became of each."""

    job_id: str | None
    taken: Sequence[Taken]


@dataclass(frozen=True, slots=True)
class TextOptions:
    tenant: str | None = None
    collection: str = COLLECTION
    tags: tuple[str, ...] = ()
    kept: Mapping[str, Any] = field(default_factory=dict)  # what is remembered with a source


@dataclass(frozen=True, slots=True)
class Page:
    """A page that somebody else has fetched."""

    url: str
    text: str
    title: str = ""
    language: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None  # why there is no page


async def take_files(queue: Queue, files: Sequence[Upload], options: TextOptions) -> Receipt:
    """Have files found. Each is a source of its own by its name: a file of the same name takes the
    place of the one before. Of two that come together the first is taken, and the other refused."""
    taken: list[Taken] = []
    handed: list[Handed] = []
    sources: list[SourceRow] = []
    for file in files:
        name = _clean(file.name)[-LONGEST_NAME:] or "upload"
        if any(one.uri == name for one in handed):
            taken.append(Taken(name, error="another file of this name came with it"))
            continue
        try:
            read = await asyncio.get_running_loop().run_in_executor(_threads, _read, name, file)
        except IngestError as error:
            taken.append(Taken(name, error=str(error)))
            continue
        source = _file_source(name, options)
        sources.append(source)
        taken.append(Taken(name, source.id))
        handed.append(
            Handed(
                source,
                name,
                _clean(read.text),
                title=_clean(read.title or "") or name,
                language=_language(read),
                metadata={"content_type": read.described.content_type},
            )
        )
    if not handed:
        return Receipt(None, taken)
    await Catalog(queue.database).sources.put(sources)
    job_id = await hand_in(queue, options.tenant, handed, title=_titled(handed))
    return Receipt(job_id, taken)


async def take_pages(
    queue: Queue,
    pages: Sequence[Page],
    options: TextOptions,
    *,
    id: str | None = None,
    session: str | None = None,
) -> Receipt:
    """Have pages found that somebody else has fetched. Those of one site are one source; a page
    that was handed in before is replaced. One that could not be fetched is passed over: what was
    there before is better than what a server says of an error."""
    taken: list[Taken] = []
    handed: list[Handed] = []
    for page in pages:
        address = normalise(page.url)
        if address is None:
            taken.append(Taken(page.url, error="this is no address of the web"))
        elif page.error is not None:
            taken.append(Taken(page.url, error=page.error))
            logger.warning("%s is not indexed: %s", address, page.error)
        elif not page.text.strip():
            taken.append(Taken(page.url, error="there is no text in it"))
        else:
            source = pages_source(options.tenant, address, options.collection, options.kept)
            taken.append(Taken(page.url, source.id))
            handed.append(
                Handed(
                    source,
                    canonical(address, keeps_slash=True),
                    _clean(page.text),
                    title=_clean(page.title) or address,
                    language=page.language,
                    tags=options.tags,
                    metadata=page.metadata,
                )
            )
    if session is not None:
        await note(queue, session, "page", [one.uri for one in handed])
        await note(queue, session, "source", [one.source.id for one in handed])
        await note(queue, session, "failed", [_place(one.name) for one in taken if one.error])
    if not handed:
        return Receipt(None, taken)
    await _add_missing(queue, {one.source.id: one.source for one in handed}, options.tenant)
    title = _titled(handed)
    job_id = await hand_in(queue, options.tenant, handed, title=title, id=id, session=session)
    return Receipt(job_id, taken)


def why_failed(status: Any, error: str = "") -> str | None:
    """Why a page could not be fetched, by the status of the answer and what is said of it."""
    code = int(status) if str(status).isdecimal() else 0
    if code >= FAILED_FROM:
        return f"it was answered with {code}" + (f": {error}" if error else "")
    return error or None


def is_signed(body: bytes, signature: str | None, secret: str) -> bool:
    """Whether a delivery was signed by somebody who has the secret. Without one nobody has."""
    if not secret or not signature:
        return False
    return hmac.compare_digest(sign(body, secret.encode()).encode(), signature.strip().encode())


async def take_event(
    queue: Queue, event: Mapping[str, Any], body: bytes, options: TextOptions
) -> Receipt:
    """Take the pages that a webhook tells of. The same delivery again changes nothing, as long as
    its job is kept, which is a week. Raises InvalidOptions."""
    kind, data = event.get("type"), event.get("data")
    if not isinstance(kind, str):
        raise InvalidOptions("type: Required")
    if kind in CRAWL_EVENTS:
        await _note_event(queue, event, kind, options.tenant)
    if kind not in PAGE_EVENTS:
        return Receipt(None, ())
    if not isinstance(data, list):
        raise InvalidOptions("data: Expected a list of documents")
    named = event.get("webhookId")
    delivery = named if isinstance(named, str) and named else hashlib.sha256(body).hexdigest()
    job_id = str(uuid.uuid5(_DELIVERIES, f"{options.tenant or ''}\n{delivery}"))
    if await queue.get_many([job_id]):
        return Receipt(job_id, ())
    session = await _session(queue, event, options.tenant)
    found = [_event_page(one, event, session) for one in data]
    pages = [page for page in found if page]
    return await take_pages(queue, pages, options, id=job_id, session=session)


async def _session(queue: Queue, event: Mapping[str, Any], tenant: str | None) -> str | None:
    """The session of the crawl that an event is of, if it says of which."""
    crawl = _clean(_first(event.get("id")))
    return await open_handed(queue, tenant, crawl) if crawl else None


async def _note_event(
    queue: Queue, event: Mapping[str, Any], kind: str, tenant: str | None
) -> None:
    """Of one that is told twice the first counts."""
    session = await _session(queue, event, tenant)
    if session is not None:
        at = datetime.now(UTC).isoformat()
        await note(queue, session, "event", [f"{kind.rpartition('.')[2]} {at}"])


def _read(name: str, file: Upload) -> FileText:
    """Raises IngestError."""
    most = SizeLimits().of_name(name)
    if len(file.body) > most:
        raise InvalidOptions(reason_too_large(len(file.body), most))
    read = to_text(name, FileContent(file.body, 0, hashlib.sha256(file.body).hexdigest()))
    if not read.text.strip():
        raise InvalidOptions("there is no text in it")
    return read


def _language(read: FileText) -> str:
    converted = read.described.language in ("html", "pdf", "office", "notebook")
    return "markdown" if converted else read.described.language or "markdown"


def _file_source(name: str, options: TextOptions) -> SourceRow:
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    short = _UNFIT.sub("_", name)[-NAME_CHARACTERS:].strip("_") or "upload"
    return SourceRow(
        tenant=options.tenant,
        id=f"file_{short}_{digest}",
        collection=options.collection,
        kind="upload",
        uri=f"upload:{name}",
        title=name,
        options=options.kept,
        tags=options.tags,
    )


async def _add_missing(queue: Queue, sources: Mapping[str, SourceRow], tenant: str | None) -> None:
    """Those that are there stay as people have made them."""
    catalog = Catalog(queue.database)
    known = {one.id for one in await catalog.sources.get(tenant or "", list(sources))}
    if missing := [row for id, row in sources.items() if id not in known]:
        await catalog.sources.put(missing)


def _event_page(document: Any, event: Mapping[str, Any], session: str | None) -> Page | None:
    """A document of Firecrawl's; None if it says neither what nor where."""
    if not isinstance(document, dict):
        return None
    metadata = document.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    url = _first(said.get("url"), said.get("sourceURL"), document.get("url"))
    if not url:
        return None
    error = _first(said.get("error"), document.get("error"), event.get("error"))
    if not event.get("success", True):
        error = error or "it could not be fetched"
    return Page(
        url=url,
        text=_first(document.get("markdown"), document.get("content")),
        title=_first(document.get("title"), said.get("title")),
        language=_first(said.get("language")),
        metadata={
            "crawl": session or "",
            "description": _first(document.get("description"), said.get("description")),
        },
        error=why_failed(said.get("statusCode"), error),
    )


def _place(url: str) -> str:
    """As the page would be known."""
    address = normalise(url)
    return url if address is None else canonical(address, keeps_slash=True)


def _first(*values: Any) -> str:
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def _titled(handed: Sequence[Handed]) -> str:
    more = f" and {len(handed) - 1} more" if len(handed) > 1 else ""
    return f"{handed[0].uri}{more}"


def _clean(text: str) -> str:
    """As databases take it."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
