"""The tools: each reads its arguments, asks a service as whoever calls, and shows the answer.

Their docstrings and the descriptions of their arguments are what a model is told about them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from windrow.errors import InvalidOptions, NotPermitted, StoreError, WindrowError
from windrow.index.home import Mode
from windrow.mcp import views
from windrow.queue.queue import Queue
from windrow.search.request import SearchRequest
from windrow.services.explaining import explain
from windrow.services.keys import Identity, Role
from windrow.services.knowledge import (
    COLLECTION,
    Added,
    AddOptions,
    add,
    add_site,
    add_text,
    find_source,
    get_info,
    is_settled,
    is_web,
    list_sources,
)
from windrow.services.overview import OwnPlace
from windrow.services.reading import read_document
from windrow.services.searching import Searching
from windrow.services.tenant_queue import TenantQueue

logger = logging.getLogger(__name__)

MOST_SOURCES: Final = 200
MOST_CHARACTERS: Final = 100_000
LARGEST_RESULT: Final = 20_000  # bytes of a job's result that are shown
LONGEST_WAIT: Final = 60.0
LOOK_SECONDS: Final = 0.1
BROKEN: Final = "the database did not answer as it should; the server's log has more"

Collection = Annotated[str | None, Field(description="Only this collection; null: all of them.")]
Identify = Callable[[Context[Any, Any]], Identity]


@dataclass(frozen=True, slots=True)
class Tools:
    """`identify` says who calls; a tenant sees and adds its own only."""

    queue: Queue
    searching: Searching
    identify: Identify

    async def search(
        self,
        ctx: Context[Any, Any],
        query: Annotated[str, Field(description="A question or a few words.")],
        mode: Annotated[
            Mode,
            Field(
                description="hybrid: by meaning and words, which is best for most; semantic: by "
                "meaning alone; keyword: by words alone; exact: text as it is written."
            ),
        ] = "hybrid",
        limit: Annotated[int, Field(ge=1, le=50)] = 5,
        collection: Collection = None,
        source: Annotated[
            str | None,
            Field(description="Only this source: its id, address or title, as in list_sources."),
        ] = None,
        path: Annotated[
            str | None,
            Field(description="A glob: src/**/*.py, or https://example.org/docs/**."),
        ] = None,
        language: Annotated[
            str | None, Field(description="Of code or text: python, markdown, …")
        ] = None,
        branch: Annotated[str | None, Field(description="Of repositories.")] = None,
        tags: Annotated[list[str] | None, Field(description="All of these.")] = None,
        since: Annotated[
            datetime | None, Field(description="Documents dated from then on; ISO 8601.")
        ] = None,
        until: Annotated[datetime | None, Field(description="Documents dated up to then.")] = None,
    ) -> views.Hits:
        """Search everything that was ingested (sites, folders, code, notes) for the passages that
        fit best, at most one of each document. Read more of a document with read_document."""
        with _told(self, ctx, "read") as caller:
            sources: tuple[str, ...] = ()
            if source is not None:
                info = await find_source(self.queue, source, tenant=caller.tenant)
                sources = (info.source.id,)
            request = SearchRequest(
                query=query,
                mode=mode,
                limit=limit,
                tenant=caller.tenant,
                collections=() if collection is None else (collection,),
                sources=sources,
                path=path,
                languages=() if language is None else (language,),
                branch=branch,
                tags=tuple(tags or ()),
                since=_moment(since),
                until=_moment(until),
            )
            return views.show_hits(await self.searching.search(request))

    async def read_document(
        self,
        ctx: Context[Any, Any],
        document: Annotated[
            str,
            Field(description="Id of a document from search, or its URL or path in its source."),
        ],
        source: Annotated[
            str | None, Field(description="Id of its source, if several have such a path.")
        ] = None,
        branch: Annotated[str | None, Field(description="Of a repository.")] = None,
        start: Annotated[int, Field(ge=0, description="The first character to read.")] = 0,
        length: Annotated[
            int, Field(ge=1, le=MOST_CHARACTERS, description="Characters to read.")
        ] = 20_000,
    ) -> views.DocumentText:
        """Read the text of a document, as Markdown or code. Long ones come in parts: go on with
        start = next_start until that is null."""
        with _told(self, ctx, "read") as caller:
            reading = await read_document(
                self.queue,
                document,
                tenant=caller.tenant,
                source=source,
                branch=branch,
                start=start,
                length=length,
            )
            return views.show_reading(reading)

    async def list_sources(
        self, ctx: Context[Any, Any], collection: Collection = None
    ) -> views.Sources:
        """List what was added to be searched: sites, pages, folders, projects, files, notes,
        libraries, with how many documents each has."""
        with _told(self, ctx, "read") as caller:
            found = await list_sources(self.queue, tenant=caller.tenant, collection=collection)
            shown = [views.show_source(info) for info in found[:MOST_SOURCES]]
            return views.Sources(sources=shown, total=len(found))

    async def add_source(
        self,
        ctx: Context[Any, Any],
        what: Annotated[
            str | None,
            Field(
                description="A URL (its whole site, or with is_page that page alone), the path of "
                "a file or folder where this server runs, or library:NAME for the documentation "
                "of an installed Python package."
            ),
        ] = None,
        text: Annotated[
            str | None, Field(description="A note to keep, instead of `what`; Markdown.")
        ] = None,
        title: Annotated[str | None, Field(description="What to call it.")] = None,
        tags: Annotated[list[str] | None, Field(description="To search by.")] = None,
        collection: Annotated[
            str, Field(description="Where to put it, to be searched apart from others.")
        ] = COLLECTION,
        is_page: Annotated[bool, Field(description="Of a URL: that page alone.")] = False,
        max_pages: Annotated[
            int | None, Field(ge=1, le=100_000, description="Of a site: no more pages than that.")
        ] = None,
        wait_seconds: Annotated[
            float,
            Field(ge=0, le=LONGEST_WAIT, description="How long to wait for it to be searchable."),
        ] = 10.0,
    ) -> views.AddedSource:
        """Add something so that it can be searched: a URL, a file or folder, or a text. It is
        ingested in the background, durably; adding the same again looks at it anew. If
        is_searchable is false, job_status and list_sources tell how far it is."""
        with _told(self, ctx, "write") as caller:
            if (what is None) == (text is None):
                raise InvalidOptions("give either `what` or `text`")
            options = AddOptions(
                collection=collection,
                tenant=caller.tenant,
                title=title,
                tags=tuple(tags or ()),
                is_page=is_page,
                crawl={} if max_pages is None or is_page else {"limit": max_pages},
            )
            if text is not None:
                added = await add_text(self.queue, text, options)
            else:
                added = await self._add(caller, what or "", options)
            return await self._see_through(added, wait_seconds)

    async def _add(self, caller: Identity, what: str, options: AddOptions) -> Added:
        """Addresses of the web are for everybody; the files of this machine are not for tenants."""
        if caller.tenant is None and caller.may("admin"):
            return await add(self.queue, what, options)
        if not is_web(what):
            raise NotPermitted(
                "only URLs and texts can be added with this key: files and folders of the server, "
                "and its libraries, take an admin's key of all tenants"
            )
        return await add_site(self.queue, what, options)

    async def _see_through(self, added: Added, seconds: float) -> views.AddedSource:
        """What came of it, once all of it can be found or the time is up."""
        until = time.monotonic() + seconds
        while True:
            job = await self.queue.get(added.job_id)
            info = await get_info(self.queue, added.source.tenant, added.source.id)
            is_done = job.is_finished and await is_settled(
                self.queue, added.source.tenant, added.source.id
            )
            if (is_done and not info.pending) or time.monotonic() >= until:
                break
            await asyncio.sleep(LOOK_SECONDS)
        dropped = job.result.get("dropped") if isinstance(job.result, dict) else None
        return views.AddedSource(
            job=job.id,
            state=str(job.state),
            is_searchable=is_done and not info.pending,
            error=job.error or (str(dropped) if dropped else None),
            source=views.show_source(info),
        )

    async def queue_status(self, ctx: Context[Any, Any]) -> views.QueueStatus:
        """Show how busy the queue is: its queues with the number of jobs in each state, the
        workers that are alive and what runs now."""
        with _told(self, ctx, "read") as caller:
            return views.show_queues(await OwnPlace(self.queue, caller.tenant).glance())

    async def job_status(
        self,
        ctx: Context[Any, Any],
        job: Annotated[str, Field(description="Id of a job, as add_source gives it.")],
    ) -> views.JobStatus:
        """Show how far a job is, what came of it, and why it does not run if it does not."""
        with _told(self, ctx, "read") as caller:
            found = await TenantQueue(self.queue, caller.tenant).get(job)
            # The reasons speak of workers and limits, which are not a tenant's to see.
            reasons = await explain(self.queue, found) if caller.tenant is None else []
            is_short = len(found.result_json or "") <= LARGEST_RESULT
            return views.show_job(found, reasons, found.result if is_short else None)


TOOLS: Final[dict[str, Literal["reads", "adds"]]] = {
    "search": "reads",
    "read_document": "reads",
    "list_sources": "reads",
    "add_source": "adds",
    "queue_status": "reads",
    "job_status": "reads",
}


@contextmanager
def _told(tools: Tools, ctx: Context[Any, Any], role: Role) -> Iterator[Identity]:
    """Who calls, if that may be; what goes wrong is said in words that the model can act on."""
    caller = tools.identify(ctx)
    if not caller.may(role):
        raise ToolError(f"this caller may only {caller.role}; it takes the role {role}")
    try:
        yield caller
    except StoreError as error:
        logger.error("a tool failed: %s: %s", type(error).__name__, error)
        raise ToolError(BROKEN) from error
    except WindrowError as error:
        raise ToolError(str(error)) from error


def _moment(at: datetime | None) -> float | None:
    if at is None:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
