"""put_documents and its kin: what was ingested, and what of it is searchable."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from windrow.catalog import Catalog
from windrow.catalog.contents import Awaited, ContentRow, Refused, Written, content_id
from windrow.catalog.documents import DocumentInfo, DocumentRow, Move, Pending, Place
from windrow.catalog.sources import SourceNote, SourceRow
from windrow.clock import FakeClock
from windrow.ids import new_id
from windrow.queue.job import NewJob
from windrow.queue.queue import Queue
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("documents")

NOON = datetime(2026, 1, 2, 12, 0, 0, 123_456, tzinfo=UTC)


def document(uri: str = "a.md", text: str = "one", **fields: Any) -> tuple[DocumentRow, ContentRow]:
    given: dict[str, Any] = {"tenant": "acme", "collection": "docs", "source": "s1"} | fields
    doc_id = given.pop("id", None) or new_id()
    content = given.pop("pending", None) or content_id(doc_id, text)
    row = DocumentRow(id=doc_id, uri=uri, content_hash=text, pending=content, **given)
    return row, ContentRow(content, row.tenant, row.collection, text)


async def put(store: Store, *rows: tuple[DocumentRow, ContentRow]) -> None:
    await put_sources_of(store, *(row for row, _ in rows))
    await Catalog(store.database).documents.put(
        [row for row, _ in rows], [content for _, content in rows]
    )


async def put_sources_of(store: Store, *rows: DocumentRow) -> None:
    """Those that are there stay."""
    catalog = Catalog(store.database)
    for row in rows:
        if not await catalog.sources.get(row.tenant or "", [row.source]):
            source = SourceRow(row.tenant, row.source, row.collection, "folder", row.source)
            await catalog.sources.put([source])


def named(id: str) -> SourceRow:
    return SourceRow("acme", id, "docs", "folder", id)


async def only(store: Store, uri: str = "a.md") -> DocumentInfo:
    [found] = await Catalog(store.database).documents.find("acme", "docs", "s1", [uri])
    return found


async def dropped(store: Store) -> dict[str, bool]:
    return {one.id: one.is_named for one in await Catalog(store.database).contents.find_dropped()}


async def test_document_is_found_at_its_place_with_all_that_was_said_of_it(
    store: Store, clock: FakeClock
) -> None:
    row, content = document(
        title="Grüße 🎉",
        language="markdown",
        tags=("x", "y"),
        metadata={"deep": {"er": [1, None]}},
        size=3,
        dated_at=NOON,
        branch="main",
    )
    await put(store, (row, content))

    found = await only(store)
    assert replace(row) == DocumentRow(
        **{name: getattr(found, name) for name in DocumentRow.__struct_fields__}
    )
    assert (found.content, found.is_searchable) == (None, False)
    assert found.created_at == found.changed_at == clock.now()
    catalog = Catalog(store.database)
    assert await catalog.documents.get([row.id, new_id(), "?"]) == [found]
    [kept] = await catalog.contents.get([content.id])
    assert (kept.text, kept.tenant, kept.space, kept.chunks) == ("one", "acme", None, 0)
    assert await catalog.documents.find("globex", "docs", "s1", ["a.md"]) == []
    assert await catalog.documents.find(None, "docs", "s1", ["a.md"]) == []


async def test_old_content_is_searchable_until_the_new_one_is_switched_to(store: Store) -> None:
    first, old = document(text="one")
    await put(store, (first, old))
    catalog = Catalog(store.database)
    await catalog.contents.switch([Written(old.id, 2, "space")])
    assert [one.id for one in await catalog.documents.find_named([old.id])] == [first.id]
    assert await dropped(store) == {}

    second, new = document(text="two")
    await put(store, (second, new))
    found = await only(store)
    assert (found.id, found.content, found.pending) == (first.id, old.id, new.id)
    assert [one.id for one in await catalog.documents.find_naming([new.id])] == [first.id]
    assert await catalog.documents.find_named([new.id]) == []

    await catalog.contents.switch([Written(new.id, 1, "space")])
    found = await only(store)
    assert (found.content, found.pending, found.is_searchable) == (new.id, None, True)
    assert await catalog.documents.find_named([old.id]) == []
    assert await dropped(store) == {old.id: False}
    await catalog.contents.switch([Written(new.id, 1, "space")])
    assert await only(store) == found, "a switch that is done again changes nothing"

    assert await catalog.contents.delete([old.id, new.id]) == [old.id]
    assert [one.id for one in await catalog.contents.get([old.id, new.id])] == [new.id]


async def test_unchanged_document_keeps_what_it_is_found_by_and_its_time(
    store: Store, clock: FakeClock
) -> None:
    row, content = document()
    await put(store, (row, content))
    catalog = Catalog(store.database)
    await catalog.contents.switch([Written(content.id, 1, "space")])
    before = await only(store)

    clock.advance(60)
    await put(store, (replace(row, title="better"), content))

    after = await only(store)
    assert (after.content, after.pending, after.title) == (content.id, None, "better")
    assert (after.created_at, after.changed_at) == (before.created_at, before.changed_at)
    [kept] = await catalog.contents.get([content.id])
    assert kept.space == "space", "nothing of it is embedded again"
    assert await dropped(store) == {}


async def test_what_was_pending_is_dropped_when_something_newer_is_put(store: Store) -> None:
    first, one = document(text="one")
    await put(store, (first, one))
    second, two = document(text="two")
    await put(store, (second, two))

    assert await dropped(store) == {one.id: False}
    await Catalog(store.database).contents.switch([Written(one.id, 1, "space")])
    assert (await only(store)).content is None, "nobody waits for it any more"


async def test_content_that_comes_back_is_not_removed_and_is_written_again(store: Store) -> None:
    """A, then B, then A again: the removal of the first A must not take the second."""
    first, a = document(text="a")
    await put(store, (first, a))
    catalog = Catalog(store.database)
    await catalog.contents.switch([Written(a.id, 1, "space")])
    second, b = document(text="b")
    await put(store, (second, b))
    await catalog.contents.switch([Written(b.id, 1, "space")])
    assert await dropped(store) == {a.id: False}

    await put(store, (replace(first), a))

    assert await dropped(store) == {}
    assert await catalog.contents.delete([a.id]) == []
    [kept] = await catalog.contents.get([a.id])
    assert kept.space is None


async def test_content_that_branches_share_goes_with_the_last_of_them(store: Store) -> None:
    main, content = document(branch="main")
    other = replace(main, id=new_id(), branch="other")
    await put(store, (main, content), (other, content))
    catalog = Catalog(store.database)
    await catalog.contents.switch([Written(content.id, 1, "space")])
    assert {one.branch for one in await catalog.documents.find_named([content.id])} == {
        "main",
        "other",
    }

    assert await catalog.documents.delete([main.id, new_id()]) == 1
    assert await dropped(store) == {content.id: True}
    assert await catalog.contents.delete([content.id]) == []
    await catalog.contents.keep([content.id])
    assert await dropped(store) == {}

    await catalog.documents.delete([other.id])
    await catalog.contents.keep([content.id])
    assert await dropped(store) == {content.id: False}
    assert await catalog.contents.delete([content.id]) == [content.id]


async def test_document_that_is_skipped_is_found_no_more(store: Store) -> None:
    row, content = document()
    await put(store, (row, content))
    catalog = Catalog(store.database)
    await catalog.contents.switch([Written(content.id, 1, "space")])

    await catalog.documents.put([replace(row, pending=None, skipped="too large", size=9)])

    found = await only(store)
    assert (found.content, found.pending, found.skipped) == (None, None, "too large")
    assert await dropped(store) == {content.id: False}


async def test_documents_of_a_job_are_put_when_it_is_completed_and_not_before(store: Store) -> None:
    queue = Queue(store)
    await queue.enqueue_many([NewJob("ingest", {}), NewJob("ingest", {})])
    lease = await queue.claim(limit=2)
    failed, completed = lease.jobs
    row, content = document()
    content = replace(content, text="O'Reilly\0 \ud800")
    await put_sources_of(store, row)
    catalog = Catalog(store.database)
    await catalog.documents.put([row], [content], tx=failed.tx)
    await lease.fail(failed, "no such luck")
    assert await catalog.documents.get([row.id]) == []

    await catalog.documents.put([row], [content], tx=completed.tx)
    assert await catalog.documents.get([row.id]) == []
    await lease.complete(completed, then=[NewJob("index.write", {"content": content.id})])
    assert (await only(store)).pending == content.id
    [kept] = await catalog.contents.get([content.id])
    assert kept.text == "O'Reilly� �"


async def test_move_keeps_document_and_content_and_replaces_what_is_there(store: Store) -> None:
    rows = [document(uri, uri) for uri in ("a", "b", "c")]
    await put(store, *rows)
    catalog = Catalog(store.database)
    await catalog.contents.switch([Written(content.id, 1, "space") for _, content in rows])
    (a, text_a), (b, text_b), (_, text_c) = rows

    moved = await catalog.documents.move([Move(a.id, "b"), Move(b.id, "c", "C")])

    assert set(moved) == {text_a.id, text_b.id}
    assert [
        (one.uri, one.id, one.content) for one in await catalog.documents.page("acme", "docs")
    ] == [
        ("b", a.id, text_a.id),
        ("c", b.id, text_b.id),
    ]
    assert await dropped(store) == {text_c.id: False}
    assert (await only(store, "c")).title == "C"
    await catalog.documents.move([Move(a.id, "c"), Move(b.id, "b")])
    assert (await only(store, "c")).id == a.id, "places can be exchanged"


async def test_documents_come_in_pages_by_place(store: Store) -> None:
    rows = [
        document(f"{number:02}", source=source) for source in ("s1", "s2") for number in range(5)
    ]
    await put(store, *rows)

    catalog = Catalog(store.database)
    first = await catalog.documents.page("acme", "docs", limit=7)
    last = first[-1]
    rest = await catalog.documents.page(
        "acme", "docs", after=Place(last.source, last.uri, last.branch)
    )
    assert [one.id for one in first + rest] == [row.id for row, _ in rows]
    second = await catalog.documents.page("acme", "docs", "s2", limit=2)
    assert [one.uri for one in second] == ["00", "01"]


async def test_documents_that_were_skipped_or_redacted_are_listed_alone(store: Store) -> None:
    rows = [document(name) for name in ("a", "b", "c", "d")]
    rows[1] = (replace(rows[1][0], pending=None, skipped="empty"), rows[1][1])
    rows[3] = (replace(rows[3][0], metadata={"redacted": {"private key": 1}}), rows[3][1])
    await put(store, *rows)

    catalog = Catalog(store.database)
    first = await catalog.documents.page("acme", "docs", only_noted=True, limit=1)
    place = Place(first[0].source, first[0].uri, first[0].branch)
    rest = await catalog.documents.page("acme", "docs", only_noted=True, after=place)

    assert [one.uri for one in [*first, *rest]] == ["b", "d"]


async def test_sources_are_described_noted_listed_and_removed_with_their_documents(
    store: Store, clock: FakeClock
) -> None:
    row = SourceRow(
        "acme", "s1", "docs", "site", "https://example.org/", "Example", {"a": [1]}, ("t",), 60
    )
    catalog = Catalog(store.database)
    await catalog.sources.put([row, SourceRow("globex", "s1", "docs", "note", "note:1")])
    [found] = await catalog.sources.get("acme", ["s1", "s2"])
    assert (found.options, found.tags, found.refresh_seconds) == ({"a": [1]}, ("t",), 60)
    assert (found.created_at, found.refreshed_at) == (clock.now(), None)

    clock.advance(5)
    await catalog.sources.put([SourceNote("acme", "s1", etag='"1"')])
    await catalog.sources.put([SourceNote("acme", "s1", error="away"), replace(row, title="Other")])
    [found] = await catalog.sources.get("acme", ["s1"])
    assert (found.etag, found.error, found.title) == ('"1"', "away", "Other")
    assert found.refreshed_at == found.created_at + timedelta(seconds=5)

    assert [one.tenant for one in await catalog.sources.page()] == [
        "acme",
        "globex",
    ]
    assert [one.tenant for one in await catalog.sources.page(after=("acme", "s1"))] == ["globex"]
    assert await catalog.sources.page("acme", "other") == []

    (mine, text), (theirs, _) = document("a"), document("a", tenant="globex")
    await put(store, (mine, text), (theirs, _))
    [counted] = await catalog.documents.count("acme")
    assert (counted.source, counted.documents, counted.pending, counted.searchable) == (
        "s1",
        1,
        1,
        0,
    )
    assert await catalog.sources.delete("acme", ["s1"]) == 1
    assert await catalog.documents.get([mine.id, theirs.id]) != []
    assert await catalog.documents.find("acme", "docs", "s1", ["a"]) == []
    assert await dropped(store) == {text.id: False}
    assert [one.tenant for one in await catalog.sources.page()] == ["globex"]


async def test_sources_are_counted_each_by_itself_and_no_further_than_asked(store: Store) -> None:
    rows = [document(uri, uri, size=10) for uri in ("a", "b", "c")]
    await put(store, *rows, document("d", source="s2"), document("a", tenant="globex"))
    catalog = Catalog(store.database)
    await catalog.contents.switch(
        [Written(rows[0][1].id, 4, "docs"), Written(rows[1][1].id, 2, "d")]
    )

    counted, other, none = await catalog.sources.count([named(n) for n in ("s1", "s2", "s3")])
    assert (counted.documents, counted.searchable, counted.pending) == (3, 2, 1)
    assert (counted.size, counted.chunks, counted.skipped) == (30, 6, 0)
    assert [counted, other] == await catalog.documents.count("acme")
    assert (none.documents, none.size, none.chunks) == (0, 0, 0)

    first, second = await catalog.sources.count([named("s1"), named("s2")], most=1)
    assert (first.documents, first.searchable, first.chunks) == (1, 1, 4), "by address"
    assert second == other
    [without] = await catalog.sources.count([named("s1")], with_chunks=False)
    assert without == replace(counted, chunks=0)
    assert await catalog.sources.count([]) == []


async def test_a_file_that_was_skipped_is_not_counted_as_a_document(store: Store) -> None:
    skipped, content = document("logo.bin")
    await put(store, document("a.md"))
    catalog = Catalog(store.database)
    await catalog.documents.put([replace(skipped, pending=None, skipped="binary file")], [content])
    for [counted] in (
        await catalog.documents.count("acme"),
        await catalog.sources.count([named("s1")]),
    ):
        assert (counted.documents, counted.pending, counted.skipped) == (1, 1, 1)


async def test_deleting_a_tenant_takes_what_is_theirs_and_nothing_else(store: Store) -> None:
    catalog = Catalog(store.database)
    await catalog.sources.put(
        [SourceRow(tenant, "s1", "docs", "note", "n") for tenant in ("a", "b")]
    )
    for tenant in ("a", "b"):
        await catalog.collections.ensure(tenant, "docs", "model", 4)
        await put(store, document("x", tenant=tenant), document("y", tenant=tenant))

    assert await catalog.sources.delete_tenant("a") == 2

    assert [one.tenant for one in await catalog.collections.find()] == ["b"]
    assert [one.tenant for one in await catalog.sources.page()] == ["b"]
    assert [(one.tenant, one.documents) for one in await catalog.documents.count()] == [("b", 2)]
    assert len(await dropped(store)) == 2


async def test_generation_is_built_beside_the_one_that_is_searched(store: Store) -> None:
    catalog = Catalog(store.database)
    made = await catalog.collections.ensure(None, "docs", "old", 4)
    assert (made.tenant, made.generation, made.next_generation) == (None, 1, None)
    assert await catalog.collections.ensure(None, "docs", "other", 8) == made, "as it was"

    begun = await catalog.collections.begin_generation(None, "docs", "new", 8)
    assert begun is not None
    assert (begun.embedder, begun.generation) == ("old", 1)
    assert (begun.next_embedder, begun.next_dimension, begun.next_generation) == ("new", 8, 2)
    again = await catalog.collections.begin_generation(None, "docs", "newer", 8)
    assert again is not None
    assert again.next_generation == 3
    assert not await catalog.collections.switch_generation(None, "docs", 2), "it was given up"
    assert await catalog.collections.switch_generation(None, "docs", 3)
    [now] = await catalog.collections.find("", "docs")
    assert (now.embedder, now.dimension, now.generation, now.next_embedder) == ("newer", 8, 3, None)
    assert await catalog.collections.begin_generation(None, "nothing", "new", 8) is None


async def test_contents_that_a_space_lacks_are_listed_in_pages(store: Store) -> None:
    rows = [document(str(number), str(number)) for number in range(5)]
    await put(store, *rows)
    ids = sorted(content.id for _, content in rows)
    catalog = Catalog(store.database)
    await catalog.contents.switch([Written(ids[0], 1, "new"), Written(ids[1], 1, "old")])

    assert await catalog.contents.page("acme", "docs") == ids
    assert await catalog.contents.page("acme", "docs", space="new", limit=2) == ids[1:3]
    assert await catalog.contents.page("acme", "docs", space="new", after=ids[2]) == ids[3:]
    await catalog.contents.forget_spaces(ids=ids[:1])
    assert await catalog.contents.page("acme", "docs", space="new") == ids
    await catalog.contents.note([Written(ids[4], 3, "new")])
    assert await catalog.contents.page("acme", "docs", space="new") == ids[:4]
    assert {one.pending for one in await catalog.documents.find_naming(ids[4:])} == {ids[4]}, (
        "not switched"
    )
    await catalog.contents.forget_spaces("acme", "docs")
    assert {one.space for one in await catalog.contents.get(ids)} == {None}


async def test_documents_of_a_run_are_counted_with_those_that_wait(store: Store) -> None:
    ours, theirs = {"metadata": {"crawl": "run 1"}}, {"metadata": {"crawl": "run 2"}}
    rows = [document("a", "1", **ours), document("b", "2", **ours), document("c", "3", **theirs)]
    await put(store, *rows, document("a", "4", tenant="globex", **ours))
    catalog = Catalog(store.database)
    await catalog.contents.switch([Written(rows[0][1].id, 7, "space")])

    run = await catalog.documents.count_pending("acme", "docs", "s1", run="run 1")
    everything = await catalog.documents.count_pending("acme", "docs", "s1", limit=1)

    assert (run.documents, run.waiting, run.contents) == (2, 1, (rows[1][1].id,))
    assert (everything.documents, everything.waiting, len(everything.contents)) == (3, 2, 1)
    assert await catalog.documents.count_pending("acme", "docs", "s2") == Pending()
    asked = [content.id for _, content in rows]
    assert await catalog.contents.count_chunks(asked) == dict(zip(asked, [7, 0, 0], strict=True))


async def test_documents_at_an_address_are_found_in_every_source(store: Store) -> None:
    catalog = Catalog(store.database)
    await catalog.sources.put(
        [SourceRow(*place, "docs", "note", "n") for place in (("acme", "s1"), ("acme", "s2"))]
        + [SourceRow("globex", "s1", "docs", "note", "n")]
    )
    places = [("acme", "s1"), ("acme", "s2"), ("globex", "s1")]
    await put(store, *[document("a", tenant=one, source=two) for one, two in places])
    await put(store, document("b"))

    own = await catalog.documents.find_at("a", "acme")

    assert [one.source for one in own] == ["s1", "s2"]
    assert [one.tenant for one in await catalog.documents.find_at("a")] == [
        "acme",
        "acme",
        "globex",
    ]
    assert await catalog.documents.find_at("a", "nobody") == []


async def test_document_whose_text_is_refused_says_why_until_it_has_another(store: Store) -> None:
    first, old = document(text="one")
    await put(store, (first, old))
    catalog = Catalog(store.database)
    await catalog.contents.switch([Written(old.id, 1, "space")])
    second, new = document(text="two")
    await put(store, (second, new))

    await catalog.contents.refuse([Refused(new.id, "too long")])

    found = await only(store)
    assert (found.content, found.pending, found.skipped) == (old.id, new.id, "too long")
    [counted] = await catalog.documents.count("acme")
    assert (counted.searchable, counted.pending, counted.skipped) == (1, 0, 1)
    assert counted.documents == 1, "it is still found by its words of before"
    [one] = await catalog.sources.count([named("s1")])
    assert (one.searchable, one.pending, one.skipped) == (1, 0, 1)
    pending = await catalog.documents.count_pending("acme", "docs", "s1")
    assert (pending.waiting, pending.contents) == (1, ()), "nothing is to come for it"
    await put(store, (second, new))
    assert (await only(store)).skipped == "too long", "the same words are refused still"

    await catalog.contents.switch([Written(new.id, 1, "space")])
    assert ((found := await only(store)).skipped, found.content) == (None, new.id)
    await catalog.contents.refuse([Refused(new.id, "too long")])
    found = await only(store)
    assert (found.content, found.pending, found.skipped) == (None, new.id, "too long")

    await put(store, document(text="three"))
    assert ((found := await only(store)).skipped, found.is_searchable) == (None, False)
    await catalog.contents.refuse([Refused(new.id, "too long")])
    assert (await only(store)).skipped is None, "it does not name that any more"


async def test_what_documents_wait_for_is_listed_in_pages_without_what_was_refused(
    store: Store,
) -> None:
    rows = [document(str(number), str(number)) for number in range(4)]
    await put(store, *rows, document("x", tenant="globex"), document("y", source="s2"))
    await put(store, document("0", branch="dev", pending=rows[0][1].id))
    catalog = Catalog(store.database)
    await catalog.contents.switch([Written(rows[1][1].id, 1, "space")])
    await catalog.contents.refuse([Refused(rows[2][1].id, "too long")])
    ids = sorted([rows[0][1].id, rows[3][1].id])

    listed = await catalog.contents.list_awaited("acme", "docs", "s1")
    assert listed == [Awaited(one, "acme") for one in ids]
    assert await catalog.contents.list_awaited("acme", "docs", "s1", limit=1) == listed[:1]
    assert await catalog.contents.list_awaited("acme", "docs", "s1", after=ids[0]) == listed[1:]
    assert len(await catalog.contents.list_awaited()) == 4
    assert await catalog.contents.list_awaited("", "docs", "s1") == []


async def test_page_is_removed_only_if_it_is_still_as_a_crawl_left_it(store: Store) -> None:
    old, changed, handed = (
        document(uri, uri, metadata={"crawl": crawl} if crawl else {})
        for uri, crawl in (("old", "first"), ("changed", "first"), ("handed", None))
    )
    await put(store, old, changed, handed)
    await put(store, document("changed", "newer", metadata={"crawl": "second"}))

    seen = {old[0].id: "first", changed[0].id: "first", handed[0].id: None, new_id(): "first"}
    catalog = Catalog(store.database)
    assert await catalog.documents.delete_pages(seen) == 2

    assert [one.uri for one in await catalog.documents.page("acme", "docs")] == ["changed"]
    named = await dropped(store)
    assert named[old[1].id] is False
    assert await catalog.documents.delete_pages({}) == 0


async def test_nothing_is_put_into_a_source_that_is_gone(store: Store) -> None:
    row, content = document()
    queue = Queue(store)
    await queue.enqueue("ingest")
    lease = await queue.claim()
    await put_sources_of(store, row)
    catalog = Catalog(store.database)
    await catalog.sources.delete("acme", ["s1"])
    await catalog.documents.put([row], [content], tx=lease.jobs[0].tx)
    await lease.complete(lease.jobs[0])

    await catalog.documents.put([row], [content])

    assert await catalog.documents.page("acme", "docs") == []
    assert await catalog.contents.get([content.id]) == []


async def test_source_that_is_known_is_changed_and_never_made(store: Store) -> None:
    source = SourceRow("acme", "s1", "docs", "folder", "/hay", title="Hay")
    note = SourceNote("acme", "s1", error="it is wet")
    catalog = Catalog(store.database)
    await catalog.sources.put([source, note], are_known=True)
    assert await catalog.sources.page("acme") == []

    await catalog.sources.put([source])
    changed = replace(source, title="Straw", options={"depth": 2}, tags=("a",), refresh_seconds=60)
    await catalog.sources.put([changed, note], are_known=True)

    [found] = await catalog.sources.get("acme", ["s1"])
    assert (found.title, found.options, found.tags) == ("Straw", {"depth": 2}, ("a",))
    assert (found.refresh_seconds, found.error) == (60, "it is wet")


async def test_sources_are_removed_with_all_that_is_being_put_into_them(store: Store) -> None:
    """Whoever comes first: afterwards there is no document without its source."""
    catalog = Catalog(store.database)
    for number in range(20):
        rows = [document(f"{number}-{n}.md", f"{number}-{n}") for n in range(5)]
        await put_sources_of(store, rows[0][0])
        await asyncio.gather(
            catalog.documents.put([row for row, _ in rows[:3]], [text for _, text in rows[:3]]),
            catalog.sources.delete("acme", ["s1"]),
            catalog.documents.put([row for row, _ in rows[3:]], [text for _, text in rows[3:]]),
        )
        assert await catalog.documents.page("acme", "docs") == []
        await catalog.sources.delete("acme", ["s1"])


async def test_folder_of_the_index_is_recorded_once_and_moved_by_who_knows_it(
    store: Store,
) -> None:
    catalog = Catalog(store.database)
    assert await catalog.collections.get_index_folder() is None
    assert await catalog.collections.set_index_folder("a", None)
    assert not await catalog.collections.set_index_folder("b", None)
    assert not await catalog.collections.set_index_folder("b", "c")
    assert await catalog.collections.get_index_folder() == "a"
    assert await catalog.collections.set_index_folder("b", "a")
    assert await catalog.collections.get_index_folder() == "b"
