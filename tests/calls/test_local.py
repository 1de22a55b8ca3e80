"""Calls by the defaults, which need no key: a folder, and the recogniser of this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import recordings
from tests.calls.desk import ORG, Desk
from windrow import Queue
from windrow.catalog import Catalog
from windrow.catalog.calls import CallRow
from windrow.ids import new_id
from windrow.ingest.artifacts import FolderArtifacts
from windrow.ingest.transcribe.local import LocalTranscriber
from windrow.pipelines.calls.context import Calls
from windrow.pipelines.calls.stages import calls_sweeper
from windrow.testing import drain

HOURS = 4


@pytest.fixture
async def desk(queue: Queue, tmp_path: Path) -> AsyncIterator[Desk]:
    work = tmp_path / "work"
    work.mkdir()
    kept = FolderArtifacts(tmp_path / "artifacts")
    calls = Calls(queue, lambda: kept, LocalTranscriber, folder=work)
    yield Desk(queue, calls, work)
    await calls.close()


async def test_silence_is_done_without_words(desk: Desk, tmp_path: Path) -> None:
    call_id = await desk.add(recordings.silence(tmp_path, 5))
    jobs = await desk.run()
    call = await desk.call(call_id)
    assert (call.status, call.error) == ("done", None)
    assert call.analysis is not None
    assert (call.analysis["summary"], call.analysis["transcribed_by"]) == ("", "moonshine-tiny-en")
    assert await desk.kept(call_id) == {"audio", "transcript"}
    assert all(job.limits == () and job.runs == 1 for job in jobs)
    [poll] = [job for job in jobs if job.kind == "call.transcribe_poll"]
    assert poll.progress is not None
    assert poll.progress.message == "heard 5 of 5 s"


async def test_a_call_whose_job_was_never_enqueued_is_swept_up(desk: Desk, tmp_path: Path) -> None:
    """Whoever adds a call may die between its row and its job."""
    call_id = await desk.add(recordings.silence(tmp_path, 2))
    [job] = await desk.queue.list(queue="processing_jobs")
    await desk.queue.cancel(job.id)
    await desk.queue.delete(job.id)
    stranger = CallRow(new_id(), ORG, "default", "lost.ogg")  # its recording is nowhere
    await Catalog(desk.queue.database).calls.put([stranger])

    sweeper = calls_sweeper(desk.calls, desk.chain)
    await desk.queue.enqueue(sweeper.kind, queue="sweeping")
    await drain(desk.queue, [*desk.handlers, sweeper.handler], scheduled=True)

    assert (await desk.call(call_id)).status == "done"
    lost = await desk.call(stranger.id)
    assert lost.status == "failed"
    assert "source is not there" in (lost.error or "")


@pytest.mark.chaos
async def test_four_hours_go_through(desk: Desk, tmp_path: Path) -> None:
    path = recordings.long_silence(tmp_path, HOURS * 3600)
    call_id = await desk.add(path)
    await desk.run()
    call = await desk.call(call_id)
    assert (call.status, call.error) == ("done", None)
    assert call.seconds == pytest.approx(HOURS * 3600, abs=1)
