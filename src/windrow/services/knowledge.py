"""What people ask of what they know: add something, see how far it is, list, refresh, remove."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo, Place
from windrow.catalog.sources import Source, SourceCounts, SourceKind, SourceRow
from windrow.errors import (
    FileGone,
    IllegalTransition,
    InvalidOptions,
    JobNotFound,
    SourceNotFound,
)
from windrow.ingest.files.names import to_path, to_text
from windrow.ingest.files.walk import WalkOptions
from windrow.ingest.options import ScrapeOptions
from windrow.ingest.project import find_repository, tenant_of, tenant_of_remote, without_credentials
from windrow.ingest.web.scope import CrawlOptions
from windrow.ingest.web.urls import canonical, normalise
from windrow.pipelines.index.tidying import tidy_job
from windrow.pipelines.knowledge.context import source_id
from windrow.pipelines.knowledge.handing import COLLECTION as DEFAULT_COLLECTION
from windrow.pipelines.knowledge.items import QUEUE, ContentPayload, LibraryPayload, new_item
from windrow.pipelines.knowledge.libraries import PATTERNS, library_id
from windrow.pipelines.knowledge.refreshing import (
    REFRESH,
    refresh_job,
    schedule_name,
    source_jobs,
    unplan_refresh,
)
from windrow.pipelines.web.payloads import CRAWL, SCRAPE, BudgetPayload
from windrow.queue.job import LIVE, Job, JobState, Priority
from windrow.queue.queue import Queue
from windrow.services.listing import Page, list_page
from windrow.services.tenant_queue import TenantQueue

COLLECTION: Final = DEFAULT_COLLECTION
LIBRARY: Final = "library:"
DAY_SECONDS: Final = 86_400
PAGE: Final = 1000
# Documents of one source whose chunks are counted for somebody who will not wait: each is a look at
# its content, anywhere in a large table.
MOST_CUT: Final = 1000
_WEB: Final = frozenset({"http", "https"})
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True, slots=True)
class AddOptions:
    """How something is to be added; what is None is as usual."""

    collection: str = COLLECTION
    tenant: str | None = None
    title: str | None = None
    tags: Sequence[str] = ()
    refresh_seconds: int | None = None
    walk: Mapping[str, Any] = field(default_factory=dict)  # of folders: see WalkOptions
    crawl: Mapping[str, Any] = field(default_factory=dict)  # of sites: see CrawlOptions
    scrape: Mapping[str, Any] = field(default_factory=dict)  # of pages: see ScrapeOptions
    kept: Mapping[str, Any] = field(default_factory=dict)  # what else is remembered with a source
    is_page: bool = False  # of an address: that page alone
    version: str = ""  # of a library
    url: str | None = None  # of a library: where its documentation is


@dataclass(frozen=True, slots=True)
class Added:
    source: SourceRow
    job_id: str
    is_begun: bool = True  # by this; else it was under way already
    is_new: bool = True  # the source was not there before


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A source with what there is of it."""

    source: Source
    counts: SourceCounts | None
    jobs: int = 0  # that have not ended, a thousand at the most
    most: int | None = None  # documents that were counted at the most; chunks of fewer: `most_cut`
    has_more_jobs: bool = False  # older ones were not looked at

    @property
    def documents(self) -> int:
        return self.counts.documents if self.counts else 0

    @property
    def pending(self) -> int:
        """Documents whose newest content cannot be found yet."""
        return self.counts.pending if self.counts else 0

    @property
    def has_more(self) -> bool:
        """Whether there may be more documents than were counted."""
        return self.most is not None and self._counted >= self.most

    @property
    def most_cut(self) -> int | None:
        """Of how many documents, the first, the chunks were counted, if not of all."""
        return MOST_CUT if self.most is not None and self._counted > MOST_CUT else None

    @property
    def _counted(self) -> int:
        """At least the documents that were counted, skipped ones included."""
        return self.documents + self.counts.skipped if self.counts else 0


@dataclass(frozen=True, slots=True)
class SourceNotes:
    """Files that were skipped or redacted."""

    by_reason: Mapping[str, int]
    page: Sequence[DocumentInfo]
    has_more: bool


async def add(
    queue: Queue,
    what: str,
    options: AddOptions | None = None,
    *,
    budget: BudgetPayload | None = None,
) -> Added:
    """Have something ingested: an address, a path, or `library:NAME`. For people on this machine
    only, whose files it reads: others call `add_site`. What is fetched for it may use this of its
    tenant's quota. Raises FileGone and InvalidOptions, and then nothing is begun.
    """
    chosen = options or AddOptions()
    return await _begin(queue, await describe(what, chosen), chosen, budget)


async def add_site(
    queue: Queue,
    url: str,
    options: AddOptions | None = None,
    *,
    budget: BudgetPayload | None = None,
) -> Added:
    """Have a site or a page ingested. Whatever the text says, it is never taken for a path: this is
    what callers from elsewhere are served by. Raises InvalidOptions, and then nothing is begun."""
    chosen = options or AddOptions()
    return await _begin(queue, _site(url, chosen), chosen, budget)


def is_web(what: str) -> bool:
    """Whether a text is meant as an address that can be fetched; schemes have no case."""
    scheme = _SCHEME.match(what)
    return scheme is not None and scheme[1].lower() in _WEB


async def _begin(
    queue: Queue, source: SourceRow, chosen: AddOptions, budget: BudgetPayload | None
) -> Added:
    catalog = Catalog(queue.database)
    known = await catalog.sources.get(source.tenant or "", [source.id])
    if known:
        source = _as_before(source, known[0], chosen)
    elif source.kind == "project" and "git_remote" in source.options:
        source = await _told_apart(queue, source)
    await catalog.sources.put([source])
    await plan_refresh(queue, source)
    [job, *_] = source_jobs(source, priority=Priority.COMMAND, budget=budget)
    [inserted] = await queue.enqueue_many([job])
    return Added(source, inserted.id, is_begun=inserted.outcome != "existing", is_new=not known)


async def describe(what: str, options: AddOptions) -> SourceRow:
    """What would be added. Raises FileGone and InvalidOptions."""
    if _SCHEME.match(what):
        return _site(what, options)
    if what.startswith(LIBRARY):
        return _library(what.removeprefix(LIBRARY), options)
    return await asyncio.to_thread(_on_disk, what, options)


async def add_text(
    queue: Queue, text: str, options: AddOptions | None = None, *, source_type: str = "note"
) -> Added:
    """Have a text kept as a note. Raises InvalidOptions, and then nothing is begun."""
    if not text.strip():
        raise InvalidOptions("there is nothing in this note")
    chosen = options or AddOptions()
    uri = f"note:{chosen.collection}/{source_type}"
    source = SourceRow(
        chosen.tenant, source_id(uri), chosen.collection, "note", uri, title=source_type
    )
    catalog = Catalog(queue.database)
    known = await catalog.sources.get(source.tenant or "", [source.id])
    if not known:
        await catalog.sources.put([source])
    payload = ContentPayload(
        source=source.id,
        content=text,
        source_type=source_type,
        title=chosen.title,
        tags=tuple(chosen.tags),
    )
    job = new_item("content", "ingest", chosen.collection, payload, tenant=chosen.tenant)
    [inserted] = await queue.enqueue_many([job])
    return Added(source, inserted.id, is_new=not known)


async def list_sources(
    queue: Queue, *, tenant: str | None = None, collection: str | None = None
) -> list[SourceInfo]:
    """All of them, by tenant and id; of one tenant, or of all. Every document is counted."""
    counted = await Catalog(queue.database).documents.count(tenant, collection)
    counts = {(one.tenant, one.source): one for one in counted}
    found = await _read_sources(queue, tenant, collection)
    return [SourceInfo(one, counts.get((one.tenant, one.id))) for one in found]


async def list_notes(
    queue: Queue, source: SourceRow, *, after: str | None = None, limit: int
) -> SourceNotes:
    """What of a source was skipped or redacted: how many for each reason, and a page of the files,
    behind the address `after`."""
    counts: Counter[str] = Counter()
    page: list[DocumentInfo] = []
    has_more = False
    place: Place | None = None
    while found := await Catalog(queue.database).documents.page(
        source.tenant, source.collection, source.id, after=place, limit=PAGE, only_noted=True
    ):
        for document in found:
            counts[reason_of(document).partition(":")[0]] += 1
            if after is None or document.uri > after:
                has_more = len(page) == limit
                page += [] if has_more else [document]
        place = Place(found[-1].source, found[-1].uri, found[-1].branch)
    return SourceNotes(dict(counts.most_common()), page, has_more)


def reason_of(document: DocumentInfo) -> str:
    """Why a file was skipped, or what was taken out of it."""
    if document.skipped is not None:
        return document.skipped
    kinds = document.metadata["redacted"]
    return "redacted: " + ", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items()))


async def list_some(
    queue: Queue, *, tenant: str | None, after: tuple[str, str], limit: int, most: int
) -> list[SourceInfo]:
    """A page of them, by tenant and id. Of each `most` documents are counted, without their chunks:
    it takes no longer when there are a million."""
    catalog = Catalog(queue.database)
    page = await catalog.sources.page(tenant, after=after, limit=limit)
    counted = await catalog.sources.count(page, most=most, with_chunks=False)
    return [SourceInfo(one, counts, most=most) for one, counts in zip(page, counted, strict=True)]


async def find_source(queue: Queue, named: str, *, tenant: str | None = None) -> SourceInfo:
    """One source, by its id or the beginning of that, its address, or its title. Raises
    SourceNotFound."""
    found = await _named(queue, named, tenant)
    if len(found) > 1:
        raise _several(named, [one.id for one in found])
    return await _describe(queue, found[0])


async def find_source_id(queue: Queue, named: str, *, tenant: str | None = None) -> str:
    """The id of what is named so; sources of several tenants may share it. Raises
    SourceNotFound."""
    ids = {one.id for one in await _named(queue, named, tenant)}
    if len(ids) > 1:
        raise _several(named, sorted(ids))
    return ids.pop()


async def _named(queue: Queue, named: str, tenant: str | None) -> list[Source]:
    """Those that a name is the best name of; at least one."""
    by_path = to_text(await asyncio.to_thread(os.path.abspath, named))
    everything = await _read_sources(queue, tenant)
    for is_it in (
        lambda one: one.id == named,
        lambda one: one.uri in (named, by_path),
        lambda one: one.title == named,
        lambda one: len(named) >= 4 and one.id.startswith(named),
    ):
        if found := [one for one in everything if is_it(one)]:
            return found
    raise SourceNotFound(named)


def _several(named: str, ids: Sequence[str]) -> SourceNotFound:
    return SourceNotFound(named, f"it is several: {', '.join(ids)}")


async def get_info(
    queue: Queue, tenant: str | None, id: str, *, most: int | None = None
) -> SourceInfo:
    """How far a source is. With `most`, for somebody who will not wait: so many of its documents
    are counted, and the jobs that are found in a moment. Raises SourceNotFound."""
    found = await Catalog(queue.database).sources.get(tenant or "", [id])
    if not found:
        raise SourceNotFound(id)
    return await _describe(queue, found[0], most=most)


async def refresh_source(queue: Queue, source: SourceRow) -> str:
    """Have a source looked at again, with the options it was added with; the job's id."""
    if source.kind in ("note", "upload"):
        raise InvalidOptions(f"a {source.kind} has nothing to be looked at again")
    [inserted] = await queue.enqueue_many([refresh_job(source)])
    return inserted.id


async def refresh_now(
    queue: Queue, source: SourceRow, *, budget: BudgetPayload | None = None
) -> str:
    """The same without a step between, for who follows it: the id of what does it."""
    if source.kind in ("note", "upload"):
        raise InvalidOptions(f"a {source.kind} has nothing to be looked at again")
    [job, *_] = source_jobs(source, priority=Priority.COMMAND, budget=budget)
    [inserted] = await queue.enqueue_many([job])
    return inserted.id


async def change_source(queue: Queue, source: Source, **changes: Any) -> None:
    """Give a source another title, tags, options, or time between looks."""
    named = {one.name: getattr(source, one.name) for one in msgspec.structs.fields(SourceRow)}
    row = SourceRow(**{**named, **changes})
    await Catalog(queue.database).sources.put([row])
    if row.refresh_seconds is None:
        await unplan_refresh(queue, row)
    else:
        await plan_refresh(queue, row)


async def remove_source(queue: Queue, source: SourceRow) -> int:
    """Remove a source with its documents, what waits to be done for it, and what fetches it; how
    many documents there were."""
    await unplan_refresh(queue, source)
    async for job in iterate_jobs(queue, source.tenant, source.id):
        if job.state is JobState.ACTIVE and job.kind not in (CRAWL, SCRAPE):
            continue  # it ends by itself, and soon
        with suppress(IllegalTransition, JobNotFound):
            await queue.cancel(job.id, reason="its source is removed")
    counts = await _count(queue, source, with_chunks=False)
    await Catalog(queue.database).sources.delete(source.tenant, [source.id])
    return counts.documents


async def remove_document(queue: Queue, document: DocumentInfo) -> None:
    """Remove one document, which is found no more. What is looked at again, a site or a folder,
    brings it back if it still has it."""
    await Catalog(queue.database).documents.delete([document.id])
    await queue.enqueue_many([tidy_job()])


async def plan_refresh(queue: Queue, source: SourceRow) -> None:
    """Have a source looked at again and again, if it is to be."""
    if source.refresh_seconds is None:
        return
    await queue.schedule(
        schedule_name(source),
        REFRESH,
        {"source": source.id},
        every=source.refresh_seconds,
        queue=QUEUE,
        tenant=source.tenant,
        priority=Priority.SCAN,
        unique=f"{REFRESH}:{source.id}",
    )


async def is_settled(queue: Queue, tenant: str | None, id: str) -> bool:
    """Whether nothing is to be done for a source any more, before the index."""
    async for _ in iterate_jobs(queue, tenant, id):
        return False
    return True


async def iterate_jobs(
    queue: Queue, tenant: str | None, id: str, states: Iterable[JobState] = LIVE
) -> AsyncIterator[Job]:
    """The jobs that work for a source, newest first. Sources of two tenants may have one id."""
    after = None
    tag, wanted = f"source:{id}", list(states)
    while page := await queue.list(tag=tag, tenant=tenant, state=wanted, after=after, limit=PAGE):
        for job in page:
            if job.tenant == tenant:
                yield job
        after = page[-1].id


async def _read_sources(
    queue: Queue, tenant: str | None, collection: str | None = None
) -> list[Source]:
    found: list[Source] = []
    after = ("", "")
    while page := await Catalog(queue.database).sources.page(
        tenant, collection, after=after, limit=PAGE
    ):
        found += page
        after = (page[-1].tenant or "", page[-1].id)
    return found


async def _describe(queue: Queue, source: Source, *, most: int | None = None) -> SourceInfo:
    if most is None:
        counts = await _count(queue, source)
        return SourceInfo(source, counts, await _count_jobs(queue, source))
    counts = await _count(queue, source, most=most, with_chunks=False)
    first = await _count(queue, source, most=min(most, MOST_CUT))
    counts = msgspec.structs.replace(counts, chunks=first.chunks)
    page = await _find_jobs(queue, source)
    jobs = [job for job in page.jobs if job.tenant == source.tenant]
    return SourceInfo(source, counts, len(jobs), most, page.after is not None)


async def _count(
    queue: Queue, source: SourceRow, *, most: int | None = None, with_chunks: bool = True
) -> SourceCounts:
    [counts] = await Catalog(queue.database).sources.count(
        [source], most=most, with_chunks=with_chunks
    )
    return counts


async def _find_jobs(queue: Queue, source: Source) -> Page:
    """No index finds jobs by a tag: among many others the newest are looked through."""
    wanted = {"tag": f"source:{source.id}", "state": [*LIVE]}
    return await list_page(TenantQueue(queue, source.tenant), wanted, after=None, limit=PAGE)


async def _count_jobs(queue: Queue, source: Source) -> int:
    count = 0
    async for _ in iterate_jobs(queue, source.tenant, source.id):
        count += 1
        if count == PAGE:
            break
    return count


def _site(url: str, options: AddOptions) -> SourceRow:
    address = _address(url)
    CrawlOptions.parse(dict(options.crawl))
    ScrapeOptions.parse(dict(options.scrape))
    kind: SourceKind = "page" if options.is_page else "site"
    parts = {"crawl": dict(options.crawl), "scrape": dict(options.scrape)}
    kept = {name: one for name, one in parts.items() if one}
    row = _row(options, kind, address, address, kept)
    return msgspec.structs.replace(row, id=source_id(canonical(address)))


def _address(url: str) -> str:
    if not is_web(url):
        raise InvalidOptions(
            f"{url!r} is not supported: only addresses that begin with http:// or https:// are"
        )
    address = normalise(url)
    if address is None:
        raise InvalidOptions(f"{url!r} is no address of the web")
    return address


def _library(name: str, options: AddOptions) -> SourceRow:
    name, _, version = name.partition("==")
    version = version or options.version
    payload = LibraryPayload(library_name=name, library_version=version)
    title = f"{name} {version}".strip()
    uri = options.url or f"library:{title}"
    if options.url and _SCHEME.match(options.url):
        uri = _address(options.url)
    elif options.url:
        uri = to_text(os.path.abspath(os.path.expanduser(options.url)))
    row = _row(options, "library", uri, title, {})
    kept = {
        "library_name": name,
        "library_version": version,
        "crawl": dict(options.crawl),
        "patterns": list(PATTERNS),
    }
    return msgspec.structs.replace(row, id=library_id(payload), options=kept)


def _on_disk(what: str, options: AddOptions) -> SourceRow:
    path = Path(os.path.abspath(os.path.expanduser(what)))
    if path.is_file():
        kept = {name: True for name in ("include_secrets",) if options.walk.get(name)}
        return _row(options, "file", to_text(path), to_text(path.name), kept)
    if not path.is_dir():
        raise FileGone(os.fspath(path))
    repository = find_repository(path)
    try:
        walk = msgspec.convert(dict(options.walk), WalkOptions)
    except msgspec.ValidationError as error:
        raise InvalidOptions(str(error)) from None
    title = to_text(path.name)
    if repository is None or repository.root != path:
        return _row(options, "folder", to_text(path), title, msgspec.to_builtins(walk))
    kept = msgspec.to_builtins(walk)
    remote = repository.remote
    if remote:
        kept["git_remote"] = without_credentials(remote)
    kept["project"] = tenant_of(path, remote)
    return _row(options, "project", to_text(path), title, kept)


async def _told_apart(queue: Queue, source: SourceRow) -> SourceRow:
    """A clone of what another project is a clone of already is known by its place, too."""
    others = [
        info.source.uri
        for info in await list_sources(queue, tenant=source.tenant or "")
        if info.source.kind == "project" and info.source.uri != source.uri
        if info.source.options.get("git_remote") == source.options["git_remote"]
    ]
    if not others:
        return source
    project = tenant_of_remote(source.options["git_remote"], _place(source.uri, others))
    return msgspec.structs.replace(source, options={**source.options, "project": project})


def _place(uri: str, others: Sequence[str]) -> str:
    """A path, from the folder on that it and others are in."""
    paths = [os.fspath(to_path(one)) for one in (uri, *others)]
    return os.path.relpath(paths[0], os.path.commonpath(paths))


def _row(
    options: AddOptions, kind: SourceKind, uri: str, title: str, kept: Mapping[str, Any]
) -> SourceRow:
    return SourceRow(
        tenant=options.tenant,
        id=source_id(uri),
        collection=options.collection,
        kind=kind,
        uri=uri,
        title=options.title or title,
        options={**kept, **options.kept},
        tags=tuple(options.tags),
        refresh_seconds=options.refresh_seconds,
    )


def _as_before(new: SourceRow, known: Source, options: AddOptions) -> SourceRow:
    """A source that is added again keeps what is not said anew."""
    if known.collection != new.collection:
        raise InvalidOptions(
            f"{known.uri} is in the collection {known.collection!r} already: remove it there first"
        )
    kept = {**known.options, **new.options}
    if known.options.get("git_remote") == new.options.get("git_remote"):
        kept |= {name: known.options[name] for name in ("project",) if name in known.options}
    said_kind = "folder" if known.kind == "folder" and new.kind == "project" else new.kind
    return msgspec.structs.replace(
        new,
        kind=said_kind,
        title=options.title or known.title,
        options=kept,
        tags=tuple(options.tags) or known.tags,
        refresh_seconds=options.refresh_seconds or known.refresh_seconds,
    )
