"""What is removed is gone for good, whatever is being done for it just then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.knowledge.desk import COLLECTION, Desk
from windrow import Job
from windrow.catalog import Catalog
from windrow.catalog.sources import SourceRow
from windrow.pipelines.knowledge import files, folders
from windrow.pipelines.knowledge.context import documents_of, sources_of
from windrow.queue.job import JobState
from windrow.services.knowledge import AddOptions, add, add_text, remove_source

OPTIONS = AddOptions(collection=COLLECTION)


class Remover:
    """Removes a source once, at some point of what is done for it."""

    def __init__(self, desk: Desk, source: SourceRow) -> None:
        self.desk = desk
        self.source = source
        self.is_done = False

    async def remove(self) -> None:
        if not self.is_done:
            self.is_done = True
            await remove_source(self.desk.queue, self.source)

    def before(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def wrapped(*args: Any, **more: Any) -> Any:
            await self.remove()
            return await function(*args, **more)

        return wrapped

    def after(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def wrapped(*args: Any, **more: Any) -> Any:
            result = await function(*args, **more)
            await self.remove()
            return result

        return wrapped


async def check_is_gone(desk: Desk) -> None:
    assert await Catalog(desk.queue.database).sources.page() == []
    assert await desk.documents() == []
    assert await desk.live() == []
    assert JobState.FAILED not in {one.state for one in await desk.queue.list()}


async def test_source_removed_during_its_scan_does_not_come_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("a.md")
    desk.write("huge.bin", b"\0" * 100)
    added = await add(desk.queue, str(desk.tree), OPTIONS)
    remover = Remover(desk, added.source)
    monkeypatch.setattr(folders, "documents_of", remover.before(documents_of))

    await desk.work()

    assert remover.is_done
    assert (await desk.queue.get(added.job_id)).state is JobState.COMPLETED
    await check_is_gone(desk)


async def test_project_removed_during_its_scan_does_not_come_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.git("init", "--quiet")
    desk.write("a.py", "print(1)\n")
    added = await add(desk.queue, str(desk.tree), OPTIONS)
    assert added.source.kind == "project"
    remover = Remover(desk, added.source)
    monkeypatch.setattr(folders, "sources_of", remover.after(sources_of))

    await desk.work()

    assert remover.is_done
    await check_is_gone(desk)


async def test_source_removed_while_its_files_are_read_leaves_no_documents(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("a.md")
    desk.write("b.md")
    added = await add(desk.queue, str(desk.tree), OPTIONS)
    remover = Remover(desk, added.source)
    monkeypatch.setattr(files, "_known", remover.after(files._known))

    await desk.work()

    assert remover.is_done
    await check_is_gone(desk)
    items = await desk.queue.list(kind="file.ingest")
    results = [(await desk.queue.get(one.id)).result for one in items if one.state == "completed"]
    assert results
    assert all("was removed" in one["dropped"] for one in results)


async def test_file_whose_named_source_is_gone_is_dropped_with_a_note(desk: Desk) -> None:
    path = desk.write("a.md")
    for op in ("ingest", "update", "delete"):
        job = await desk.run("file", op, {"file_path": str(path), "source": "0123456789abcdef"})
        assert "0123456789abcdef was removed" in job.result["dropped"]
    await check_is_gone(desk)


async def test_files_of_a_batch_are_told_apart(desk: Desk) -> None:
    """Those of a source that is gone, and those of one that is there."""
    gone, there = desk.write("gone.md"), desk.write("there.md")
    await desk.enqueue("file", "ingest", {"file_path": str(gone), "source": "0123456789abcdef"})
    await desk.enqueue("file", "ingest", {"file_path": str(there)})

    await desk.work()

    assert await desk.uris() == [str(there)]


@pytest.mark.parametrize(
    ("item", "op", "payload"),
    [
        ("folder", "scan", lambda tree: {"folder_path": str(tree)}),
        ("project", "scan", lambda tree: {"project_root": str(tree)}),
        ("library", "update", lambda tree: {"library_name": "msgspec"}),
        ("content", "ingest", lambda tree: {"content": "a note"}),
        ("rename", "update", lambda tree: {"old_path": f"{tree}/x", "new_path": f"{tree}/a.md"}),
    ],
)
async def test_item_whose_named_source_is_gone_is_dropped_with_a_note(
    desk: Desk, item: Any, op: Any, payload: Callable[[Path], dict[str, str]]
) -> None:
    desk.write("a.md")
    job: Job = await desk.run(item, op, {**payload(desk.tree), "source": "0123456789abcdef"})
    assert "0123456789abcdef was removed" in job.result["dropped"]
    await check_is_gone(desk)


async def test_tenant_that_is_deleted_leaves_no_schedules(desk: Desk) -> None:
    desk.write("a.md")
    for tenant in ("acme", "acme:b", None):
        options = AddOptions(collection=COLLECTION, tenant=tenant, refresh_seconds=3600)
        await add(desk.queue, str(desk.tree), options)
    await desk.work()

    job = await desk.run("delete_tenant", "delete", {"tenant_id_to_delete": "acme"})

    assert job.state is JobState.COMPLETED
    assert {one.job.tenant for one in await desk.queue.schedules()} == {"acme:b", None}


@pytest.mark.parametrize("op", ["folder", "library"])
async def test_source_that_is_deleted_by_an_item_leaves_no_schedule(desk: Desk, op: str) -> None:
    desk.write("a.md")
    what = str(desk.tree) if op == "folder" else "library:msgspec"
    options = AddOptions(collection=COLLECTION, refresh_seconds=3600)
    await add(desk.queue, what, options)
    await desk.work()
    assert len(await desk.queue.schedules()) == 1

    payload = {"folder_path": what} if op == "folder" else {"library_name": "msgspec"}
    await desk.run("folder" if op == "folder" else "library", "delete", payload)

    assert await desk.queue.schedules() == []
    assert await Catalog(desk.queue.database).sources.page() == []


async def test_note_of_a_source_that_was_removed_is_not_kept(desk: Desk) -> None:
    added = await add_text(desk.queue, "the cows", OPTIONS)
    await Catalog(desk.queue.database).sources.delete(None, [added.source.id])

    await desk.work()

    await check_is_gone(desk)
