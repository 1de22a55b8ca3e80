"""`windrow watch`, as a process that is told to stop, and what a watch does when it fails."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.knowledge.desk import COLLECTION, Desk
from windrow import NewJob, Queue
from windrow.catalog import Catalog
from windrow.catalog.sources import SourceRow
from windrow.errors import StoreUnavailable
from windrow.ingest.files.watcher import ChangeSet, Health
from windrow.services.knowledge import AddOptions, add
from windrow.services.watching import Seen, Watch, change_jobs

PATIENCE = 60.0


async def test_u10_changes_of_a_watched_folder_become_items(desk: Desk) -> None:
    source = (await add(desk.queue, str(desk.tree), AddOptions(collection=COLLECTION))).source
    await desk.work()
    seen: asyncio.Queue[Seen] = asyncio.Queue()
    stop = asyncio.Event()
    watch = Watch(desk.queue, source, seen.put_nowait, stop, debounce=0.1)
    task = asyncio.create_task(watch.run())
    async with asyncio.timeout(PATIENCE):
        first = await seen.get()
        assert first.changes is not None
        assert first.changes.is_scan
        desk.write("a.md", "hay")
        second = await seen.get()
        stop.set()
        await task
    await desk.work()

    assert second.jobs == 1
    assert await desk.uris() == ["a.md"]


async def test_watch_of_a_folder_that_is_gone_is_given_up_with_a_note(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (await add(desk.queue, str(desk.tree), AddOptions(collection=COLLECTION))).source
    desk.tree.rmdir()
    said: list[Health] = []

    async def at_once(self: Watch, seconds: float) -> None:
        assert seconds > 0.8

    monkeypatch.setattr(Watch, "_sleep", at_once)
    await Watch(
        desk.queue, source, lambda seen: said.append(seen.health.state), asyncio.Event()
    ).run()

    assert said[-1] is Health.DISABLED
    assert len(said) == 6
    [kept] = await Catalog(desk.queue.database).sources.get("", [source.id])
    assert "not watched" in (kept.error or "")


async def test_watch_that_cannot_enqueue_waits_and_goes_on_with_a_look_at_all(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U10: what happened while the database was away is not lost."""
    source = (await add(desk.queue, str(desk.tree), AddOptions(collection=COLLECTION))).source
    await desk.work()
    desk.write("a.md", "hay")
    enqueue_many = desk.queue.enqueue_many
    seen: asyncio.Queue[Seen] = asyncio.Queue()
    waits: list[float] = []

    async def enqueue_later(jobs: Sequence[NewJob], **options: Any) -> Any:
        if len(waits) < 3:
            raise StoreUnavailable("it is away")
        return await enqueue_many(jobs, **options)

    async def at_once(self: Watch, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(desk.queue, "enqueue_many", enqueue_later)
    monkeypatch.setattr(Watch, "_sleep", at_once)
    stop = asyncio.Event()
    task = asyncio.create_task(Watch(desk.queue, source, seen.put_nowait, stop).run())
    async with asyncio.timeout(PATIENCE):
        told = [await seen.get() for _ in range(4)]
        stop.set()
        await task
    await desk.work()

    assert [round(wait) for wait in waits] == [1, 2, 4]
    assert all(one.changes is None for one in told[:3])
    assert told[3].changes is not None
    assert told[3].changes.is_scan
    assert told[3].health.state is Health.HEALTHY
    assert await desk.uris() == ["a.md"]


@pytest.mark.chaos
async def test_burst_of_fifty_thousand_writes_is_reconciled(desk: Desk) -> None:
    """U10: more than the system keeps events for (16,384 on most)."""
    if desk.queue.store.capabilities.many_machines:
        pytest.skip("events are the same whatever the store")
    source = (await add(desk.queue, str(desk.tree), AddOptions(collection=COLLECTION))).source
    await desk.work()
    seen: asyncio.Queue[Seen] = asyncio.Queue()
    stop = asyncio.Event()
    task = asyncio.create_task(Watch(desk.queue, source, seen.put_nowait, stop, debounce=0.2).run())
    async with asyncio.timeout(4 * PATIENCE):
        await seen.get()
        await asyncio.to_thread(_write_much, desk.tree)
        # One set for the burst, or several; then one more look when it is quiet.
        sets = [await seen.get()]
        while sets[-1].changes is None or sets[-1].changes.why != "to see what is there":
            sets.append(await seen.get())
        stop.set()
        await task
    await desk.work()

    assert len(sets) < 50
    catalog = Catalog(desk.queue.database)
    [counts] = await catalog.documents.count()
    assert counts.searchable == 5_000
    names = ("d0/f0.md", "d49/f4999.md")
    found = await catalog.documents.find(None, COLLECTION, source.id, names)
    contents = await catalog.contents.get([one.content or "" for one in found])
    assert [one.text for one in contents] == ["round 9"] * 2


def _write_much(tree: Path) -> None:
    for turn in range(10):
        for number in range(5_000):
            path = tree / f"d{number % 50}" / f"f{number}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"round {turn}")


def test_change_set_is_files_or_one_look() -> None:
    source = SourceRow(None, "0" * 16, "default", "folder", "/top")

    files = change_jobs(source, ChangeSet(("a.md", "b/c.md")))
    assert [job.payload["file_path"] for job in files] == ["/top/a.md", "/top/b/c.md"]
    assert {job.kind for job in files} == {"file.update"}
    [look] = change_jobs(source, ChangeSet(is_scan=True))
    assert (look.kind, look.priority) == ("folder.scan", 7)


def test_command_watches_until_it_is_interrupted(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# One")
    environment = {
        **os.environ,
        "WINDROW_DATABASE_URL": f"sqlite:///{tmp_path}/jobs.db",
        "WINDROW_DATA_DIR": str(tmp_path / "data"),
    }
    command = [sys.executable, "-m", "windrow", "watch", str(folder), "--debounce", "0.1s"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "looked at" in process.stdout.readline()
            (folder / "b.md").write_text("# Two")
            assert "b.md" in process.stdout.readline()
            _wait_for_documents(tmp_path, 2)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def _wait_for_documents(folder: Path, count: int) -> None:
    async def look() -> None:
        async with (
            asyncio.timeout(PATIENCE),
            Queue.open(f"sqlite:///{folder}/jobs.db") as queue,
        ):
            while True:
                found = await Catalog(queue.database).documents.count()
                if found and found[0].searchable == count:
                    return
                await asyncio.sleep(0.1)

    asyncio.run(look())
