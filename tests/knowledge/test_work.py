"""What the other types of items do: files, renames, notes, libraries, deletions, and rows that
came in through the dialect."""

from __future__ import annotations

import errno
import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.faults import FaultyStore
from tests.knowledge.desk import COLLECTION, Desk, states
from windrow import Queue
from windrow.catalog import Catalog
from windrow.errors import (
    EmbedderUnavailable,
    FileGone,
    FileRefused,
    IndexUnavailable,
    RateLimited,
    StoreFull,
    StoreUnavailable,
    UnsupportedFormat,
)
from windrow.ingest.project import tenant_of_remote
from windrow.pipelines.knowledge import trouble
from windrow.pipelines.knowledge.items import QUEUE
from windrow.pipelines.knowledge.trouble import outcome_of
from windrow.queue.job import JobState, NewJob
from windrow.queue.outcome import Done, Fail, Retry, Snooze
from windrow.queue.store import Store
from windrow.services.knowledge import AddOptions, add, add_text


async def test_u8_single_file_is_a_source_of_its_own(desk: Desk) -> None:
    path = desk.write("alone.md", "# Alone\n")

    job = await desk.run("file", "ingest", {"file_path": str(path)})

    assert job.state == JobState.COMPLETED
    assert await desk.uris() == [str(path)]
    [source] = await Catalog(desk.queue.database).sources.page()
    assert (source.kind, source.uri) == ("file", str(path))
    job = await desk.run("file", "update", {"file_path": str(path)})
    assert job.result["unchanged"]
    await desk.run("file", "delete", {"file_path": str(path)})
    assert await desk.documents() == []


async def test_vanished_file_is_dropped_with_a_note_and_forgotten(desk: Desk) -> None:
    path = desk.write("a.md")
    await desk.scan()
    path.unlink()

    job = await desk.run("file", "update", {"file_path": str(path)})

    assert job.state == JobState.COMPLETED
    assert job.result == {"dropped": f"{path} is not there"}
    assert job.attempts == 0
    assert await desk.documents() == []


async def test_broken_file_fails_at_once_and_says_why(desk: Desk) -> None:
    path = desk.write("a.pdf", b"%PDF-1.7\nbroken")

    job = await desk.run("file", "ingest", {"file_path": str(path)})

    assert (job.state, job.attempts) == (JobState.FAILED, 1)
    assert "cannot be read" in (job.error or "")
    [document] = await desk.documents()
    assert "cannot be read" in (document.skipped or "")


async def test_newer_work_on_a_file_takes_the_place_of_what_waits(desk: Desk) -> None:
    path = desk.write("a.md", "old")
    first = await desk.enqueue("file", "ingest", {"file_path": str(path)})
    lease = await desk.queue.claim(QUEUE)
    assert [job.id for job in lease.jobs] == [first]

    second = await desk.enqueue("file", "ingest", {"file_path": str(path)})
    third = await desk.enqueue("file", "delete", {"file_path": str(path)})

    assert second != first
    assert third == second
    assert (await desk.queue.get(third)).kind == "file.delete"
    await lease.complete(lease.jobs[0])
    await desk.work()
    assert (await desk.queue.get(third)).state == JobState.COMPLETED


async def test_u8_folder_is_renamed_without_indexing_again(desk: Desk) -> None:
    for name in ("old/a.md", "old/deep/b.md", "other/c.md"):
        desk.write(name, name)
    await desk.scan()
    before = {one.id: one.content for one in await desk.documents()}
    contents = len(set(desk.written))
    (desk.tree / "old").rename(desk.tree / "new")

    paths = {"old_path": str(desk.tree / "old"), "new_path": str(desk.tree / "new")}
    job = await desk.run("rename", "update", {**paths, "is_folder": True})

    assert job.result == {"moved": 2}
    assert await desk.uris() == ["new/a.md", "new/deep/b.md", "other/c.md"]
    assert {one.id: one.content for one in await desk.documents()} == before
    assert len(set(desk.written)) == contents
    assert (await desk.scan())["unchanged"] == 3


async def test_u8_renamed_file_that_was_changed_too_is_ingested(desk: Desk) -> None:
    path = desk.write("a.md", "before")
    await desk.scan()
    path.unlink()
    new = desk.write("b.md", "after", age=3)

    await desk.run("rename", "update", {"old_path": str(path), "new_path": str(new)})

    assert await desk.uris() == ["b.md"]
    assert await desk.text("b.md") == "after"


async def test_file_that_is_moved_out_of_its_source_is_gone_there(desk: Desk) -> None:
    path = desk.write("in/a.md", "words")
    await desk.scan(desk.tree / "in")
    new = desk.tree / "a.md"
    path.rename(new)

    await desk.run("rename", "update", {"old_path": str(path), "new_path": str(new)})

    assert await desk.uris() == [str(new)]


async def test_u8_notes_are_kept_changed_and_dropped(desk: Desk) -> None:
    note = {"content": "# Idea\n\nhay", "main_tag": "farm", "full_tag": "farm.main"}
    job = await desk.run("content", "ingest", note)
    [document] = await desk.documents()
    assert document.is_searchable
    assert (document.title, document.tags) == ("Idea", ("farm", "farm.main"))
    assert (await desk.run("content", "ingest", note)).result["unchanged"]

    changed = {"content": "# Idea\n\nstraw", "document_id": job.result["document"]}
    await desk.run("content", "update", changed)
    [document] = await desk.documents()
    assert document.id == job.result["document"]
    assert await desk.text(document.uri) == "# Idea\n\nstraw"

    await desk.run("content", "delete", {"content": "", "document_id": document.id})
    assert await desk.documents() == []


async def test_note_has_all_the_tags_it_was_ever_given(desk: Desk) -> None:
    async def tagged(*tags: str) -> tuple[str, ...]:
        options = AddOptions(collection=COLLECTION, tags=tags)
        await add_text(desk.queue, "hay", options)
        await desk.work()
        [document] = await desk.documents()
        assert document.is_searchable
        return document.tags

    assert await tagged("m1", "m2") == ("m1", "m2")
    assert await tagged() == ("m1", "m2")
    assert len(desk.written) == 1
    assert await tagged("m3", "m1") == ("m1", "m2", "m3")
    assert len(desk.written) == 2, "its labels are written anew"


async def test_u8_document_is_deleted_by_id_or_path_of_its_own_tenant_only(desk: Desk) -> None:
    for name in ("a.md", "b.md"):
        desk.write(name, name)
    await desk.scan()
    a, _ = await desk.documents()

    job = await desk.run("delete_document", "delete", {"document_id": a.id}, tenant="stranger")
    assert "there is no document" in job.result["dropped"]
    await desk.run("delete_document", "delete", {"document_id": a.id, "point_ids": ["p"]})
    await desk.run("delete_document", "delete", {"document_id": str(desk.tree / "b.md")})

    assert await desk.documents() == []


async def test_u8_tenant_goes_with_rows_and_queued_work_and_no_other_does(desk: Desk) -> None:
    path = desk.write("a.md", "words")
    for tenant in ("acme", "other"):
        await desk.run("file", "ingest", {"file_path": str(path)}, tenant=tenant)
        await desk.queue.enqueue("web.scrape", {}, queue="web", tenant=tenant)
    waiting = await desk.enqueue("folder", "scan", {"folder_path": "/x"}, tenant="acme", delay=3600)

    job = await desk.run(
        "delete_tenant", "delete", {"tenant_id_to_delete": "acme", "reason": "user_request"}
    )

    assert (job.result["deleted"], job.result["cancelled"]) == (1, 2)
    assert await desk.documents(tenant="acme") == []
    assert len(await desk.documents(tenant="other")) == 1
    assert (await desk.queue.get(waiting)).state == JobState.CANCELLED
    assert len(await desk.queue.list(tenant="other", state="ready")) == 1
    assert {source.tenant for source in await Catalog(desk.queue.database).sources.page()} == {
        "other"
    }


async def test_tenant_cannot_delete_another(desk: Desk) -> None:
    payload = {"tenant_id_to_delete": "acme"}

    job = await desk.run("delete_tenant", "delete", payload, tenant="other")

    assert job.state == JobState.FAILED
    assert "cannot delete tenant acme" in (job.error or "")


async def test_u8_installed_distribution_is_a_library(desk: Desk) -> None:
    job = await desk.run("library", "ingest", {"library_name": "msgspec"})

    assert job.error is None
    titles = {one.uri: one.title for one in await desk.documents()}
    assert titles["README"].startswith("msgspec ")
    assert titles["msgspec/structs.py"] == "msgspec.structs"
    assert all(one.is_searchable for one in await desk.documents())
    job = await desk.run("library", "update", {"library_name": "msgspec"})
    assert (job.result["new"], job.result["gone"]) == (0, 0)

    job = await desk.run("library", "ingest", {"library_name": "no-such-thing"})
    assert "is not there" in job.result["dropped"]
    wrong = {"library_name": "msgspec", "library_version": "0.0.1"}
    assert (await desk.run("library", "ingest", wrong)).state == JobState.FAILED
    await desk.run("library", "delete", {"library_name": "msgspec"})
    assert await desk.documents() == []


async def test_u8_folder_of_documentation_is_a_library(desk: Desk) -> None:
    desk.write("guide.md", "# Guide")
    desk.write("code.py", "x = 1")
    payload = {"library_name": "q", "library_version": "1", "source_url": str(desk.tree)}

    job = await desk.run("library", "ingest", payload)

    assert job.result["new"] == 1
    assert await desk.uris() == ["guide.md"]
    [source] = await Catalog(desk.queue.database).sources.page()
    assert (source.kind, source.title) == ("library", "q 1")


async def test_u8_site_of_a_library_is_crawled(desk: Desk) -> None:
    payload = {"library_name": "q", "source_url": "https://docs.example/"}

    job = await desk.run("library", "ingest", payload)

    crawl = await desk.queue.get(job.result["crawl"])
    assert (crawl.kind, crawl.payload["url"]) == ("web.crawl", "https://docs.example/")
    assert crawl.payload["feed"]["collection"] == COLLECTION
    assert crawl.payload["crawlerOptions"] == {"limit": 50, "maxDiscoveryDepth": 2}


async def test_u3_item_with_a_bad_payload_fails_at_once(desk: Desk) -> None:
    headers = {"collection": COLLECTION}
    bad = [
        NewJob("file.ingest", {"path": "/x"}, queue=QUEUE, headers=headers),
        NewJob("rename.update", {"old_path": "/x"}, queue=QUEUE, headers=headers),
        NewJob("file.ingest", {"file_path": "/x"}, queue=QUEUE),
    ]
    inserted = await desk.queue.enqueue_many(bad)
    good = desk.write("a.md")
    id = await desk.enqueue("file", "ingest", {"file_path": str(good)})

    await desk.work()

    jobs = [await desk.queue.get(one.id) for one in inserted]
    assert {job.state for job in jobs} == {JobState.FAILED}
    assert ["file_path" in (jobs[0].error or ""), "new_path" in (jobs[1].error or "")] == [True] * 2
    assert (await desk.queue.get(id)).state == JobState.COMPLETED


async def test_u1_rows_of_the_dialect_are_run_by_these_handlers(
    store: Store, desk: Desk, run_sql: Any
) -> None:
    await store.install_dialect("unified_queue")
    path = desk.write("a.md", "# From the table")
    insert = """
        INSERT INTO unified_queue
          (queue_id, item_type, op, tenant_id, collection, priority, status, created_at, updated_at,
           idempotency_key, payload_json)
        VALUES ('{id}', 'file', 'ingest', 'acme', 'notes', 7, 'pending', '{now}', '{now}',
                'file:notes:0123456789abcdef', '{payload}')"""
    row = {"id": str(uuid.uuid4()), "now": "2026-01-02T03:04:05Z"}
    run_sql(insert.format(**row, payload=json.dumps({"file_path": str(path)})))

    await desk.work()

    [document] = await desk.documents(tenant="acme")
    assert document.is_searchable
    assert (document.title, document.branch) == ("From the table", "")
    found = run_sql("SELECT status FROM unified_queue")
    assert found == [("done",)]


async def test_u7_item_that_cannot_be_stored_is_parked_without_using_attempts(
    store: Store, tree: Path
) -> None:
    faulty = FaultyStore(store)
    desk = Desk(Queue(faulty), tree)
    path = desk.write("a.md")
    faulty.fail_before("put_documents")
    id = await desk.enqueue("file", "ingest", {"file_path": str(path)})

    await desk.work()

    job = await desk.queue.get(id)
    assert (job.state, job.attempts) == (JobState.SCHEDULED, 0)
    await desk.work(scheduled=True)
    assert await desk.uris() == [str(path)]


async def test_u7_while_the_database_is_away_nothing_is_begun_and_it_is_looked_at_now_and_then(
    store: Store, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "PROBE_SECONDS", 0.0)
    faulty = FaultyStore(store)
    desk = Desk(Queue(faulty), tree)
    for call in range(1, trouble.IN_A_ROW + 1):
        faulty.fail_before("documents.put", call)
    faulty.fail_before("list_collections")
    storage = trouble.Storage(desk.queue)
    for number in range(trouble.IN_A_ROW):
        assert not await storage.is_away(), "it takes some in a row"
        with pytest.raises(StoreUnavailable) as raised:
            await Catalog(faulty.database).documents.put([])
        storage.note(raised.value)
        assert number + 1 < trouble.IN_A_ROW or await storage.is_away()

    assert not await storage.is_away(), "the second look at the database succeeds"
    assert [call.verb for call in faulty.history].count("list_collections") == 2


async def test_u7_items_wait_for_a_database_that_is_away_and_use_no_attempts(
    store: Store, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "IN_A_ROW", 1)
    faulty = FaultyStore(store)
    desk = Desk(Queue(faulty), tree)
    ids = [await desk.enqueue("content", "ingest", {"content": f"note {n}"}) for n in range(3)]
    faulty.fail_before("documents.put")
    for call in range(1, 4):
        faulty.fail_before("list_collections", call)

    await desk.work()

    jobs = [await desk.queue.get(id) for id in ids]
    assert {(job.state, job.attempts) for job in jobs} <= {
        (JobState.SCHEDULED, 0),
        (JobState.COMPLETED, 0),
    }
    assert JobState.SCHEDULED in {job.state for job in jobs}
    await desk.work(scheduled=True)
    await desk.work(scheduled=True)
    assert {(await desk.queue.get(id)).state for id in ids} == {JobState.COMPLETED}


def test_errors_decide_what_happens() -> None:
    assert outcome_of(FileGone("/x")) == Done({"dropped": "/x is not there"})
    assert isinstance(outcome_of(FileRefused("/x", "no")), Done)
    assert isinstance(outcome_of(UnsupportedFormat("x")), Fail)
    assert outcome_of(RateLimited("host", 7)) == Snooze(7)
    assert outcome_of(RateLimited("host")) == Snooze(60)
    assert outcome_of(IndexUnavailable()) == outcome_of(EmbedderUnavailable()) == Snooze(60)
    assert outcome_of(StoreFull()) == outcome_of(StoreUnavailable()) == Snooze(5)
    assert isinstance(outcome_of(ValueError("x")), Retry)


async def test_file_that_may_not_be_read_is_noted_and_tried_at_the_next_scan(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("a.md")
    desk.write("b.md")
    with monkeypatch.context() as closed:
        _fail_to_open(closed, "a.md", errno.EACCES)
        await desk.scan()
        [noted] = [one for one in await desk.documents() if one.skipped]
        assert "cannot be read: Permission denied" in (noted.skipped or "")
        again = await desk.scan()
        assert (again["changed"], again["unchanged"]) == (1, 1)

    await desk.scan()  # somebody has allowed it, which changes neither its size nor its time

    assert await desk.uris() == ["a.md", "b.md"]
    assert (await desk.scan())["unchanged"] == 2


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EIO, errno.ESTALE])
async def test_trouble_that_passes_is_not_noted_of_a_file(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    desk.write("a.md", "old words")
    await desk.scan()
    desk.write("a.md", "new words", age=5)
    desk.write("b.md")
    with monkeypatch.context() as troubled:
        _fail_to_open(troubled, ".md", number)
        await desk.scan()
        jobs = await desk.live()
        assert {(job.kind, str(job.state)) for job in jobs} == {
            ("file.ingest", "scheduled"),
            ("file.update", "scheduled"),
        }
        assert all("just now" in (job.error or "") for job in jobs)
        assert await desk.uris() == ["a.md"]  # as it was

    await desk.work(scheduled=True)

    assert await desk.uris() == ["a.md", "b.md"]
    assert await desk.text("a.md") == "new words"


async def test_file_whose_trouble_lasted_is_found_by_the_next_scan(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("a.md")
    with monkeypatch.context() as troubled:
        _fail_to_open(troubled, "a.md", errno.EIO)
        await desk.scan()
        for _ in range(4):
            await desk.work(scheduled=True)
        [job] = await desk.queue.list(kind="file.ingest")
        assert job.state is JobState.FAILED

    assert (await desk.scan())["new"] == 1

    assert await desk.uris() == ["a.md"]


async def test_scan_of_a_folder_waits_for_trouble_that_passes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("a.md")

    def scandir(path: str) -> Any:
        raise OSError(errno.EMFILE, "Too many open files", path)

    with monkeypatch.context() as troubled:
        troubled.setattr(os, "scandir", scandir)
        job = await desk.run("folder", "scan", {"folder_path": str(desk.tree)})
        assert (job.state, job.attempts) == (JobState.SCHEDULED, 1)

    await desk.work(scheduled=True)

    assert await desk.uris() == ["a.md"]


def _fail_to_open(monkeypatch: pytest.MonkeyPatch, ending: str, number: int) -> None:
    """Have reading files of such names fail, as the system would."""
    opened = os.open

    def open_(path: Any, *arguments: Any, **more: Any) -> int:
        if os.fspath(path).endswith(ending):
            raise OSError(number, os.strerror(number), path)
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "open", open_)


async def test_sources_that_overlap_have_all_their_files(desk: Desk) -> None:
    """An item of one waits when the same file is enqueued for the other."""
    desk.write("a.md")
    desk.write("e/b.md")
    outer = await add(desk.queue, str(desk.tree), AddOptions(collection=COLLECTION))
    inner = await add(desk.queue, str(desk.tree / "e"), AddOptions(collection=COLLECTION))

    await desk.work()

    found = sorted((one.source, one.uri) for one in await desk.documents() if one.is_searchable)
    wanted = [(outer.source.id, "a.md"), (outer.source.id, "e/b.md"), (inner.source.id, "b.md")]
    assert found == sorted(wanted)
    assert states(await desk.queue.list(kind="file.ingest")) == {"completed"}


async def test_u9_clones_of_one_remote_are_told_apart_by_their_places(desk: Desk) -> None:
    for name in ("one/tool", "two/tool"):
        state = desk.tree / name / ".git"
        state.mkdir(parents=True)
        (state / "HEAD").write_text("ref: refs/heads/main\n")
        (state / "config").write_text('[remote "origin"]\n\turl = git@h.example:a/tool.git\n')

    async def project(name: str) -> str:
        added = await add(desk.queue, str(desk.tree / name))
        return str(added.source.options["project"])

    first = await project("one/tool")
    assert first == tenant_of_remote("git@h.example:a/tool.git")
    assert await project("two/tool") == tenant_of_remote("git@h.example:a/tool.git", "two/tool")
    assert await project("one/tool") == first, "as it was"
    assert await project("two/tool") != first
