"""Sources and their documents on the dashboard."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from tests.api.server import Server
from tests.dashboard.conftest import ADMIN
from tests.dashboard.test_pages import TOKEN, admin, token_of
from tests.web.site import SiteServer
from windrow import Queue
from windrow.catalog import Catalog
from windrow.catalog.contents import ContentRow, Written
from windrow.catalog.documents import DocumentRow
from windrow.catalog.sources import SourceRow
from windrow.ids import new_id
from windrow.search.request import SearchAnswer
from windrow.search.snippets import readable
from windrow.services.web import start_crawl
from windrow.settings import Settings
from windrow.web.knowledge import _more
from windrow.web.sessions import COOKIE
from windrow.web.site import create_site

__all__ = ["admin"]

ANYTHING: Any = None
ADDRESSES = re.compile(r'<a href="/ui/documents/[^"]+">(\S+)</a>')


def keep_notes(server: Server, count: int) -> SourceRow:
    """A source with so many documents, which can be found."""
    source = SourceRow(None, new_id(), "barn", "note", f"note:barn/{new_id()}", "notes")

    async def keep() -> None:
        async with Queue.open(server.database) as queue:
            catalog = Catalog(queue.database)
            await catalog.sources.put([source])
            rows = [
                DocumentRow(
                    id=new_id(),
                    tenant=None,
                    collection="barn",
                    source=source.id,
                    uri=f"note:{n:04}",
                    title=f"n{n}",
                    pending=new_id(),
                )
                for n in range(count)
            ]
            texts = [ContentRow(row.pending or "", None, "barn", row.uri) for row in rows]
            await catalog.documents.put(rows, texts)
            await catalog.contents.switch([Written(one.id, 1, "space") for one in texts])

    asyncio.run(keep())
    return source


def test_documents_of_a_source_are_shown_page_by_page(server: Server, admin: httpx.Client) -> None:
    here = f"/ui/sources/{keep_notes(server, 250).id}"
    shown: list[str] = []
    page = admin.get(here).text
    assert "100 of 250, by address" in page
    while True:
        shown += ADDRESSES.findall(page)
        link = re.search(r'<a href="([^"]+)" rel="next">', page)
        if link is None:
            break
        page = admin.get(here + link[1].replace("&amp;", "&")).text
    assert len(set(shown)) == len(shown) == 250
    assert "From the first" in page


def test_one_document_is_removed_and_the_others_stay(server: Server, admin: httpx.Client) -> None:
    here = f"/ui/sources/{keep_notes(server, 2).id}"
    [first, second] = re.findall(r'<a href="(/ui/documents/[^"]+)">', admin.get(here).text)
    assert f'action="{first}"' in admin.get(first).text
    form = {"do": "remove", "token": token_of(admin)}
    answer = admin.post(first, data=form)
    assert "n0 is removed" in answer.text
    assert first not in answer.text
    assert second in answer.text
    assert admin.post(first, data=form).status_code == 404


def test_a_crawl_that_is_begun_is_shown_and_leads_to_its_source_and_back(
    server: Server, admin: httpx.Client, site_server: SiteServer
) -> None:
    site = site_server.site()
    site.page("/", links=["/slow"])
    is_seen = threading.Event()
    site.page("/slow", until=is_seen)
    form = {"do": "site", "url": site.url, "token": token_of(admin)}
    begun = admin.post("/ui/add", data=form)
    assert "/ui/runs/" in str(begun.url)
    assert "The source is being taken in" in begun.text
    assert 'class="state active"' in begun.text
    [source] = re.findall(r'href="(/ui/sources/[^"]+)">this source', begun.text)
    for name in ("The crawl that goes on", "The last crawl"):
        deadline = time.monotonic() + 60
        while f'href="{begun.url.path}">{name}' not in admin.get(source).text:
            assert time.monotonic() < deadline, name
        is_seen.set()


def test_a_crawl_that_no_worker_has_begun_has_a_page_and_is_cancelled(tmp_path: Path) -> None:
    async def ask() -> None:
        async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
            app = create_site(queue, Settings(api_keys=ADMIN, data_dir=str(tmp_path)))
            cookies = {COOKIE: await app.state.sessions.begin(ADMIN) or ""}
            here = f"/ui/runs/{await start_crawl(queue, 'https://example.org')}"
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://a.test", cookies=cookies
            ) as client:
                page = (await client.get(here)).text
                assert "https://example.org" in page
                assert 'class="state active"' in page
                form = {"do": "cancel", "token": TOKEN.findall(page)[0]}
                assert (await client.post(here, data=form)).status_code == 303
                assert 'class="state cancelled"' in (await client.get(here)).text

    asyncio.run(ask())


def test_search_is_narrowed_by_the_names_of_sources_and_shows_more(
    server: Server, admin: httpx.Client
) -> None:
    source = keep_notes(server, 1)
    start = admin.get("/ui/search").text
    assert "Ask in your own words" in start
    page = admin.get("/ui/search", params={"q": "hay", "source": source.id}).text
    assert f'<option value="{source.id}" selected>notes</option>' in page
    assert '<details id="filters" open>' in page
    assert "<option>barn</option>" in page
    assert '<details id="filters">' in start


def test_more_places_are_asked_for_step_by_step() -> None:
    def found(count: int) -> SearchAnswer:
        return SearchAnswer(results=(ANYTHING,) * count, mode="hybrid", seconds=0.0)

    assert _more({"q": "hay"}, found(20)) == "/ui/search?q=hay&limit=40"
    assert _more({"q": "hay", "limit": "40"}, found(40)) == "/ui/search?q=hay&limit=60"
    assert _more({"q": "hay"}, found(19)) is None
    assert _more({"q": "hay", "limit": "999"}, found(200)) is None
    assert _more({"q": "hay", "limit": "no"}, None) is None


def test_tables_in_snippets_are_readable() -> None:
    table = "dry:\n| a | b |\n| --- | :-: |\n| 1 | 2 |\n\nif x || y"
    assert " ".join(readable(table).split()) == "dry: · a · b · 1 · 2 if x || y"
