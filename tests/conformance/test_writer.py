"""The catalog's writer: what becomes of texts that are put, known ones and new ones."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from windrow.catalog import Catalog
from windrow.catalog.contents import Refused, Written, content_id
from windrow.catalog.documents import DocumentInfo
from windrow.catalog.sources import SourceRow
from windrow.catalog.writer import SourceText
from windrow.ids import new_id
from windrow.queue.job import NewJob
from windrow.queue.queue import Queue
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("documents")


def said(text: str | None = "one", uri: str = "a.md", **fields: Any) -> SourceText:
    place = {"tenant": "acme", "collection": "docs", "source": "s1"}
    return SourceText(uri=uri, text=text, **(place | fields))


@pytest.fixture
async def catalog(store: Store) -> Catalog:
    made = Catalog(store.database)
    await made.sources.put([SourceRow("acme", "s1", "docs", "folder", "s1")])
    return made


async def documents(catalog: Catalog) -> list[DocumentInfo]:
    return await catalog.documents.page("acme", "docs")


async def only(catalog: Catalog) -> DocumentInfo:
    [found] = await documents(catalog)
    return found


async def index(catalog: Catalog, *contents: str | None) -> None:
    await catalog.contents.switch([Written(one, 1, "space") for one in contents if one])


async def count_contents(catalog: Catalog) -> int:
    return len(await catalog.contents.page("acme", "docs"))


async def test_new_text_is_a_document_that_awaits_its_content(catalog: Catalog) -> None:
    [put] = await catalog.writer.put([said("größer", title="Size", tags=("x",))])

    found = await only(catalog)
    assert put.before is None
    assert (put.document.id, put.awaited) == (found.id, found.pending)
    assert found.pending == content_id(found.id, found.content_hash)
    assert (found.title, found.tags, found.size, found.skipped) == ("Size", ("x",), 8, None)
    [content] = await catalog.contents.get([found.pending or ""])
    assert content.text == "größer"


async def test_unchanged_text_awaits_nothing_and_has_no_new_content(catalog: Catalog) -> None:
    [first] = await catalog.writer.put([said()])
    await index(catalog, first.awaited)

    [again] = await catalog.writer.put([said(title="better")])

    assert again.awaited is None
    found = await only(catalog)
    assert (found.id, found.content, found.pending) == (first.document.id, first.awaited, None)
    assert found.title == "better"
    assert await count_contents(catalog) == 1
    [content] = await catalog.contents.get([first.awaited or ""])
    assert content.space == "space"


async def test_changed_text_keeps_the_id_of_its_document(catalog: Catalog) -> None:
    [first] = await catalog.writer.put([said("one")])
    await index(catalog, first.awaited)

    [second] = await catalog.writer.put([said("two", id=new_id())])

    assert second.before is not None
    assert second.before.content_hash != second.document.content_hash
    assert second.document.id == first.document.id
    assert second.awaited not in (None, first.awaited)
    found = await only(catalog)
    assert (found.content, found.pending) == (first.awaited, second.awaited)


async def test_text_that_changes_back_while_it_waits_is_not_taken_for_the_indexed_one(
    catalog: Catalog,
) -> None:
    [first] = await catalog.writer.put([said("one")])
    await index(catalog, first.awaited)
    [second] = await catalog.writer.put([said("two")])
    [third] = await catalog.writer.put([said("two")])
    assert third.awaited == second.awaited

    [back] = await catalog.writer.put([said("one")])

    assert back.awaited == first.awaited
    found = await only(catalog)
    assert (found.content, found.pending) == (first.awaited, None)


async def test_same_text_at_two_addresses_is_two_documents_with_contents_of_their_own(
    catalog: Catalog,
) -> None:
    a, b = await catalog.writer.put([said(uri="a.md"), said(uri="b.md")])

    assert a.document.content_hash == b.document.content_hash
    assert a.document.id != b.document.id
    assert a.awaited != b.awaited
    assert await count_contents(catalog) == 2


async def test_same_text_on_two_branches_shares_a_content(catalog: Catalog) -> None:
    [main] = await catalog.writer.put([said(branch="main")])

    [other] = await catalog.writer.put([said(branch="other")], with_known_contents=False)

    assert main.document.id != other.document.id
    assert main.awaited == other.awaited
    assert await count_contents(catalog) == 1


@pytest.mark.parametrize("with_known_contents", [True, False])
async def test_content_whose_index_job_was_lost_is_awaited_again(
    catalog: Catalog, with_known_contents: bool
) -> None:
    [first] = await catalog.writer.put([said()])

    [again] = await catalog.writer.put([said()], with_known_contents=with_known_contents)

    assert again.awaited == first.awaited is not None
    assert (await only(catalog)).pending == first.awaited
    assert await count_contents(catalog) == 1


async def test_known_content_that_was_deleted_meanwhile_is_there_again(catalog: Catalog) -> None:
    [first] = await catalog.writer.put([said("one")])
    known = await documents(catalog)
    await catalog.writer.put([said("two")])
    assert await catalog.contents.delete([first.awaited or ""]) == [first.awaited]

    await catalog.writer.put([said("one")], known=known)

    [content] = await catalog.contents.get([first.awaited or ""])
    assert content.text == "one"


async def test_text_that_the_index_refused_awaits_nothing_until_it_changes(
    catalog: Catalog,
) -> None:
    [first] = await catalog.writer.put([said()])
    await catalog.contents.refuse([Refused(first.awaited or "", "too long")])

    [again] = await catalog.writer.put([said()])
    assert again.awaited is None
    assert (await only(catalog)).skipped == "too long"

    [changed] = await catalog.writer.put([said("two")])
    assert changed.awaited is not None
    assert (await only(catalog)).skipped is None


async def test_address_without_a_text_says_why_and_is_found_no_more(catalog: Catalog) -> None:
    [first] = await catalog.writer.put([said()])
    await index(catalog, first.awaited)

    [put] = await catalog.writer.put([said(None, skipped="binary file", size=9)])

    assert put.awaited is None
    found = await only(catalog)
    assert (found.id, found.content, found.pending) == (first.document.id, None, None)
    assert (found.skipped, found.size, found.content_hash) == ("binary file", 9, "")
    [back] = await catalog.writer.put([said()])
    assert back.awaited == first.awaited


async def test_hash_and_size_are_of_what_the_text_was_made_from(catalog: Catalog) -> None:
    [first] = await catalog.writer.put([said("one", content_hash="of a PDF", size=1000)])
    await index(catalog, first.awaited)
    assert ((await only(catalog)).content_hash, (await only(catalog)).size) == ("of a PDF", 1000)

    [again] = await catalog.writer.put([said("one, said better", content_hash="of a PDF")])

    assert again.awaited is None


async def test_deleted_source_gets_nothing(catalog: Catalog) -> None:
    await catalog.writer.put([said()])
    await catalog.sources.delete("acme", ["s1"])
    for one in await catalog.contents.find_dropped():
        await catalog.contents.delete([one.id])

    await catalog.writer.put([said()])

    assert await documents(catalog) == []
    assert await count_contents(catalog) == 0


async def test_texts_of_several_sources_are_put_together(catalog: Catalog) -> None:
    await catalog.sources.put([SourceRow("acme", "s2", "docs", "folder", "s2")])
    texts = [said("one"), said("two", source="s2"), said("three", uri="b.md")]
    first = await catalog.writer.put(texts)
    await index(catalog, *(one.awaited for one in first))

    again = await catalog.writer.put(texts)

    assert [one.document.source for one in again] == ["s1", "s2", "s1"]
    assert [one.document.id for one in again] == [one.document.id for one in first]
    assert [one.awaited for one in again] == [None, None, None]


async def test_later_of_two_texts_for_one_address_is_put(catalog: Catalog) -> None:
    put = await catalog.writer.put([said("one"), said("elsewhere", uri="b.md"), said("two")])

    assert put[0] == put[2] != put[1]
    found = {one.uri: one for one in await documents(catalog)}
    assert found["a.md"].pending == put[2].awaited
    [content] = await catalog.contents.get([put[2].awaited or ""])
    assert content.text == "two"
    assert await count_contents(catalog) == 2, "nobody would ever delete that of the first"


async def test_address_that_no_database_holds_is_known_again(catalog: Catalog) -> None:
    strange = said(uri="a\0\ud800.md")
    [first] = await catalog.writer.put([strange])
    await index(catalog, first.awaited)

    [again] = await catalog.writer.put([strange])

    assert (again.document.id, again.awaited) == (first.document.id, None)
    assert (await only(catalog)).uri == again.document.uri


async def test_run_twice_leaves_what_a_single_run_leaves(catalog: Catalog) -> None:
    texts = [said("one", id=new_id()), said(None, uri="b.md", skipped="empty", id=new_id())]
    first = await catalog.writer.put(texts, known=[])
    before = await documents(catalog)

    again = await catalog.writer.put(texts, known=[])

    assert again == first
    assert await documents(catalog) == before
    assert await count_contents(catalog) == 1
    assert await catalog.contents.find_dropped() == []
    looked_up = await catalog.writer.put(texts)
    assert [replace(one, before=None) for one in looked_up] == first


async def test_texts_of_a_job_are_put_if_and_only_if_it_is_completed(
    store: Store, catalog: Catalog
) -> None:
    queue = Queue(store)
    await queue.enqueue_many([NewJob("ingest", {}), NewJob("ingest", {})])
    lease = await queue.claim(limit=2)
    failed, completed = lease.jobs
    await catalog.writer.put([said("one")], known=[], tx=failed.tx)
    await lease.fail(failed, "no such luck")
    assert await documents(catalog) == []

    [put] = await catalog.writer.put([said("two")], known=[], tx=completed.tx)
    assert await documents(catalog) == []
    await lease.complete(completed)

    assert (await only(catalog)).pending == put.awaited
    assert await catalog.writer.put([]) == []
