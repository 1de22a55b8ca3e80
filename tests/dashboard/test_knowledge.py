"""Sources and their documents on the dashboard."""

from __future__ import annotations

import asyncio
import re

import httpx

from tests.api.server import Server
from tests.dashboard.test_pages import admin, token_of
from windrow import Queue
from windrow.queue.documents import ContentRow, DocumentRow, SourceRow, Written
from windrow.queue.ids import new_id

__all__ = ["admin"]

ADDRESSES = re.compile(r'<a href="/ui/documents/[^"]+">(\S+)</a>')


def keep_notes(server: Server, count: int) -> SourceRow:
    """A source with so many documents, which can be found."""
    source = SourceRow(None, new_id(), "barn", "note", f"note:barn/{new_id()}", "notes")

    async def keep() -> None:
        async with Queue.open(server.database) as queue:
            await queue.store.put_sources([source])
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
            await queue.store.put_documents(rows, texts)
            await queue.store.switch_contents([Written(one.id, 1, "space") for one in texts])

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
