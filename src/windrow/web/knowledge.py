"""What is known: add something, search, look at sources and what is in them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo, Place
from windrow.catalog.sources import Source
from windrow.errors import InvalidOptions, InvalidSearch, JobNotFound, SearchError, WindrowError
from windrow.ids import is_id
from windrow.index.home import MODES
from windrow.search.request import MOST, Found, SearchAnswer, SearchRequest
from windrow.search.snippets import readable
from windrow.services import knowledge
from windrow.services.browsing import own_source
from windrow.services.handing_in import Taken, TextOptions, Upload, take_files
from windrow.services.reading import find_document, read_document
from windrow.services.searching import Searching
from windrow.services.web.crawls import Crawl, get_crawl, source_of
from windrow.web.markdown import render_markdown
from windrow.web.pages import Look, counted

PLACES: Final = 20  # found at first, and more with each step
MOST_SOURCES: Final = 200  # to choose from
MOST_DOCUMENTS: Final = 100
PAGE: Final = 100  # sources
MOST_COUNTED: Final = 200  # documents of each source in the list, which may have a hundred
MOST_MEASURED: Final = 5_000  # documents of one source on its own page
MOST_CRAWLS: Final = 100  # that go on, and that a source's is looked for among
LONGEST_TEXT: Final = 50_000
_MARKDOWN: Final = frozenset({"", "markdown", "html", "pdf", "office", "notebook"})
_HEADING: Final = re.compile(r"#{1,6} [^\n]*\n+(?=.)")
_FILTERS: Final = ("collection", "source", "path", "language", "tag")


async def show_add(look: Look) -> Response:
    look.viewer.require("write")
    return _add_page(look, {})


def _add_page(
    look: Look,
    given: Mapping[str, str],
    why: str = "",
    refused: Sequence[Taken] = (),
    status: int = 200,
) -> Response:
    """The forms; the one that was sent with what was typed, and with what is wrong with it."""
    given = {"do": "", **given}
    return look.render("add.html", status=status, given=given, why=why, refused=refused)


async def add(look: Look) -> Response:
    form = await look.form("write")
    try:
        return await _add(look, form)
    except WindrowError as error:
        return _add_page(look, _typed(form), str(error), status=400)


def _typed(form: FormData) -> dict[str, str]:
    return {name: value for name, value in form.items() if isinstance(value, str)}


async def _add(look: Look, form: FormData) -> Response:
    options = knowledge.AddOptions(
        collection=str(form.get("collection") or knowledge.COLLECTION),
        tenant=look.viewer.tenant,
        tags=tuple(str(form.get("tags", "")).replace(",", " ").split()),
    )
    match form.get("do"):
        case "site":
            crawl = _numbers(form, limit="limit", depth="maxDiscoveryDepth")
            options = dataclasses.replace(options, crawl=crawl)
            url = str(form.get("url", "")).strip()
            added = await knowledge.add_site(look.queue, url, options)
            return look.back(f"/ui/runs/{added.job_id}", "The source is being taken in")
        case "note":
            text = str(form.get("text", "")).strip()
            if not text:
                raise InvalidOptions("the note is empty")
            added = await knowledge.add_text(look.queue, text, options)
        case "files":
            return await _take_files(look, form, options)
        case _:
            raise InvalidOptions("say what is to be added")
    return look.back(f"/ui/sources/{added.source.id}", "The source is being taken in")


def _numbers(form: FormData, **names: str) -> dict[str, int]:
    found = {}
    for name, key in names.items():
        given = str(form.get(name, "")).strip()
        if given and not given.isdecimal():
            raise InvalidOptions(f"{name} must be a number, not {given!r}")
        if given:
            found[key] = int(given)
    return found


async def _take_files(look: Look, form: FormData, options: knowledge.AddOptions) -> Response:
    given = [one for one in form.getlist("files") if isinstance(one, UploadFile) and one.filename]
    if not given:
        raise InvalidOptions("choose a file first")
    files = [Upload(one.filename or "upload", await one.read()) for one in given]
    texts = TextOptions(
        tenant=options.tenant, collection=options.collection, tags=tuple(options.tags)
    )
    receipt = await take_files(look.queue, files, texts)
    refused = [one for one in receipt.taken if one.error]
    if refused:
        taken = len(files) - len(refused)
        why = f"{taken} taken in, {len(refused)} refused:"
        return _add_page(look, _typed(form), why, refused, status=200 if taken else 400)
    return look.back("/ui/sources", f"{counted(len(files), 'file is', 'files are')} being taken in")


async def show_search(look: Look) -> Response:
    query = look.query
    answer: SearchAnswer | None = None
    trouble = ""
    if query.get("q"):
        searching: Searching = look.request.app.state.searching
        try:
            answer = await searching.search(_request(look))
        except SearchError as error:
            trouble = str(error)
    sources, collections = await _places_to_search(look)
    return look.render(
        "search.html",
        sources=sources,
        collections=collections,
        filtered=any(name in query for name in _FILTERS)
        or query.get("mode") not in (None, MODES[0]),
        more=_more(query, answer),
        answer=answer,
        trouble=trouble,
        modes=MODES,
        shown=[(one, _highlighted(one), _words(one)) for one in answer.results] if answer else [],
    )


async def _places_to_search(look: Look) -> tuple[dict[str, str], list[str]]:
    """The sources to choose from, by their ids, and the collections; with those that were asked
    for, whether there are so many or not."""
    query, tenant = look.query, look.viewer.tenant
    catalog = Catalog(look.queue.database)
    found = await catalog.sources.page(tenant, limit=MOST_SOURCES)
    named = sorted((one.title or one.uri, one.id) for one in found)
    sources = {id: title for title, id in named}
    collections = {one.name for one in await catalog.collections.find(tenant)}
    collections |= {one.collection for one in found}
    if "source" in query:
        sources.setdefault(query["source"], query["source"])
    if "collection" in query:
        collections.add(query["collection"])
    return sources, sorted(collections)


def _more(query: Mapping[str, str], answer: SearchAnswer | None) -> str | None:
    """The same question for more places, if there may be some."""
    limit = _limit(query)
    if answer is None or len(answer.results) < limit or limit >= MOST:
        return None
    return f"/ui/search?{urlencode({**query, 'limit': limit + PLACES})}"


def _limit(query: Mapping[str, str]) -> int:
    given = query.get("limit", "")
    return min(max(int(given), PLACES), MOST) if given.isdecimal() else PLACES


def _request(look: Look) -> SearchRequest:
    query = look.query
    mode = query.get("mode", "hybrid")
    if mode not in MODES:
        raise InvalidSearch(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    return SearchRequest(
        query=query["q"],
        mode=mode,  # type: ignore[arg-type]
        tenant=look.viewer.tenant,
        limit=_limit(query),
        collections=(query["collection"],) if "collection" in query else (),
        sources=(query["source"],) if "source" in query else (),
        path=query.get("path"),
        languages=(query["language"],) if "language" in query else (),
        tags=(query["tag"],) if "tag" in query else (),
    )


def _highlighted(one: Found) -> Markup:
    """The snippet with what was looked for marked, and without the signs of Markdown around it."""
    shown = readable if _is_markdown(one.uri, one.language) else str
    parts, last = [], _heading_end(one)
    for start, end in one.highlights:
        before, found = one.snippet[last:start], one.snippet[start:end]
        parts.append(Markup("{}<mark>{}</mark>").format(shown(before), found))
        last = end
    return Markup("").join([*parts, Markup("{}").format(shown(one.snippet[last:]))])


def _heading_end(one: Found) -> int:
    """Where the text begins below a heading, which is shown above the snippet already."""
    heading = _HEADING.match(one.snippet)
    first = one.highlights[0][0] if one.highlights else len(one.snippet)
    return heading.end() if heading and heading.end() <= first else 0


def _is_markdown(uri: str, language: str) -> bool:
    """Whether a text is Markdown, or was made so. What a web page says is the language of its
    readers."""
    return uri.startswith(("http://", "https://")) or language in _MARKDOWN


def _words(one: Found) -> list[str]:
    """What of the question stands in the snippet, each once."""
    found = (one.snippet[start:end].lower() for start, end in one.highlights)
    return list(dict.fromkeys(found))


async def show_sources(look: Look) -> Response:
    tenant, query = look.viewer.tenant, look.query
    found = await knowledge.list_some(
        look.queue,
        tenant=tenant,
        after=(query.get("after_tenant", tenant or ""), query.get("after", "")),
        limit=PAGE,
        most=MOST_COUNTED,
    )
    more = _behind(found[-1].source) if len(found) == PAGE else None
    return look.render("sources.html", sources=found, more=more)


def _behind(source: Source) -> dict[str, str]:
    return {"after": source.id, "after_tenant": source.tenant or ""}


async def show_source(look: Look) -> Response:
    source = await own_source(look.queue, look.request.path_params["id"], look.viewer.tenant)
    info = await knowledge.get_info(look.queue, source.tenant, source.id, most=MOST_MEASURED)
    after = Place(source.id, look.query.get("after", ""), look.query.get("branch", ""))
    documents = await Catalog(look.queue.database).documents.page(
        source.tenant, source.collection, source.id, after=after, limit=MOST_DOCUMENTS
    )
    return look.render(
        "source.html",
        info=info,
        documents=documents,
        next=_next_documents(documents),
        crawl=await _last_crawl(look, source, documents),
    )


async def _last_crawl(
    look: Look, source: Source, documents: Sequence[DocumentInfo]
) -> Crawl | None:
    """The crawl of a site that goes on, if it is one of the newest that do; or else the last one
    that a document is of."""
    if source.kind != "site":
        return None
    groups = await look.queue.groups(state="active", tenant=source.tenant, limit=MOST_CRAWLS)
    roots = await look.queue.get_many([group.root for group in groups if group.root])
    named = [root.id for root in roots.values() if source_of(root) == source.id]
    named += [str(one.metadata.get("crawl", "")) for one in documents[:1]]
    for id in filter(is_id, named):
        with suppress(JobNotFound):
            return await get_crawl(look.queue, id, tenant=source.tenant)
    return None


def _next_documents(documents: Sequence[DocumentInfo]) -> str | None:
    """The page with those behind these, by their addresses."""
    if len(documents) < MOST_DOCUMENTS:
        return None
    return f"?{urlencode({'after': documents[-1].uri, 'branch': documents[-1].branch})}"


async def change_source(look: Look) -> Response:
    form = await look.form("write")
    source = await own_source(look.queue, look.request.path_params["id"], look.viewer.tenant)
    if form.get("do") == "remove":
        count = await knowledge.remove_source(look.queue, source)
        return look.back(
            "/ui/sources",
            f"The source is removed, with {count} document{'' if count == 1 else 's'}",
        )
    await knowledge.refresh_source(look.queue, source)
    return look.back(f"/ui/sources/{source.id}", "The source is looked at again")


async def show_document(look: Look) -> Response:
    id = look.request.path_params["id"]
    reading = await read_document(look.queue, id, tenant=look.viewer.tenant, length=LONGEST_TEXT)
    document = reading.document
    is_markdown = _is_markdown(document.uri, document.language)
    text = render_markdown(reading.text) if is_markdown else None
    return look.render("document.html", reading=reading, text=text)


async def change_document(look: Look) -> Response:
    form = await look.form("write")
    id = look.request.path_params["id"]
    document = await find_document(look.queue, id, tenant=look.viewer.tenant)
    if form.get("do") != "remove":
        raise InvalidOptions("there is no such thing to do with a document")
    await knowledge.remove_document(look.queue, document)
    return look.back(f"/ui/sources/{document.source}", f"{document.title or id} is removed")
