"""What must not happen to files: stale rows, links and paths that lead elsewhere, and files that
are made to hurt."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.knowledge.desk import COLLECTION, Desk
from windrow import Job
from windrow.ingest.files.reading import read_file
from windrow.pipelines.knowledge.context import Knowledge, source_id
from windrow.pipelines.knowledge.files import ingest_files
from windrow.pipelines.knowledge.items import QUEUE, FilePayload
from windrow.queue.job import JobState
from windrow.queue.outcome import Snooze
from windrow.queue.store import Store
from windrow.services.knowledge import AddOptions, add


async def _claim_file(desk: Desk, name: str) -> tuple[list[Job], list[FilePayload]]:
    """A worker's claim on a file of the tree, whose lease runs out."""
    path = str(desk.tree / name)
    await desk.enqueue("file", "ingest", {"file_path": path})
    jobs = (await desk.queue.claim([QUEUE], seconds=1)).jobs
    payloads = [msgspec.convert(job.payload, FilePayload) for job in jobs]
    return list(jobs), payloads


async def _let_run_out(jobs: list[Job], store: Store) -> None:
    await store.extend_leases([job.lease_token or "" for job in jobs], 0)
    assert len(await store.rescue_jobs()) == len(jobs)


async def test_run_that_dies_before_its_completion_is_run_again_and_doubles_nothing(
    desk: Desk, store: Store
) -> None:
    desk.write("a.md", "words")
    jobs, payloads = await _claim_file(desk, "a.md")
    await ingest_files(Knowledge(desk.queue), jobs, payloads)  # and its worker is gone

    [written] = await desk.documents()
    assert not written.is_searchable
    await _let_run_out(jobs, store)
    await desk.work()

    [document] = await desk.documents()
    assert (document.id, document.is_searchable) == (written.id, True)
    assert desk.written == [document.content]


async def test_worker_whose_lease_ran_out_writes_nothing_over_what_another_found(
    desk: Desk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk.write("a.md", "old words")
    old = read_file(path, 1000)
    jobs, payloads = await _claim_file(desk, "a.md")
    await _let_run_out(jobs, store)
    desk.write("a.md", "new words", age=60)
    await desk.work()

    with monkeypatch.context() as late:
        late.setattr("windrow.pipelines.knowledge.files.read_file", lambda path, most: old)
        outcomes = await ingest_files(Knowledge(desk.queue), jobs, payloads)

    assert outcomes == [Snooze(0)]
    [document] = await desk.documents()
    assert document.is_searchable
    assert await desk.text(document.uri) == "new words"


async def test_links_out_of_a_folder_are_not_followed_unless_that_is_wanted(
    desk: Desk, tmp_path: Path
) -> None:
    outside = tmp_path / "private"
    outside.mkdir()
    (outside / "secret.md").write_text("the secret")
    desk.write("a.md", "words")
    (desk.tree / "link.md").symlink_to(outside / "secret.md")
    (desk.tree / "linked").symlink_to(outside)
    assert (await desk.scan())["new"] == 1

    source = source_id(str(desk.tree))
    for name in ("link.md", "linked/secret.md"):
        path = f"{desk.tree}/{name}"
        job = await desk.run("file", "update", {"file_path": path, "source": source})
        assert "not followed" in job.result["dropped"], name
        assert await desk.uris() == ["a.md"], name

    options = AddOptions(collection=COLLECTION, walk={"follow_symlinks": True})
    await add(desk.queue, str(desk.tree), options)
    await desk.work()
    assert await desk.uris() == ["a.md", "link.md", "linked/secret.md"]


async def test_path_that_leads_out_of_its_source_fails_at_once(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("the secret")
    desk.write("a.md", "words")
    await desk.scan()

    path = f"{desk.tree}/sub/../../secret.md"
    source = source_id(str(desk.tree))
    job = await desk.run("file", "update", {"file_path": path, "source": source})

    assert (job.state, job.attempts) == (JobState.FAILED, 1)
    assert "is not in" in (job.error or "")
    assert await desk.uris() == ["a.md"]
