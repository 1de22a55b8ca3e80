"""J4, J5, J6: a call goes through its stages, and whoever dies in one of them costs nothing but
time. SpeechKit is a stand-in that counts what is billed, the bucket a server that speaks S3.

J8: by `--store=beside` all of them run on BullMQ, with a database beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calls.desk import ORG, Desk
from tests.calls.speechkit_server import SpeechKitServer, chunk
from windrow.catalog import Catalog
from windrow.pipelines.calls.payloads import STAGES
from windrow.queue.job import JobState

pytestmark = pytest.mark.requires("documents")


@pytest.mark.also_on("beside")
async def test_j4_a_call_goes_through_its_stages(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    speechkit.said = [
        chunk("We will send the invoice on Monday.", 0.5, 3),
        chunk("The invoice is about the machines.", 4, 6.5),
    ]
    call_id = await desk.add(recording)
    assert (await desk.call(call_id)).status == "pending"
    assert await desk.kept(call_id) == {"source"}

    jobs = await desk.run()

    assert [job.kind for job in jobs] == [f"call.{stage}" for stage in STAGES]
    assert {job.state for job in jobs} == {JobState.COMPLETED}
    call = await desk.call(call_id)
    assert (call.status, call.error, call.note) == ("done", None, None)
    assert call.seconds == pytest.approx(6, abs=0.2)
    assert call.analysis is not None
    assert "invoice" in call.analysis["topics"]
    assert call.analysis["action_items"] == ["We will send the invoice on Monday."]
    assert (call.analysis["talk_seconds"], call.analysis["talk_seconds_by_speaker"]) == (5.0, {})
    assert await desk.kept(call_id) == {"audio", "transcript"}
    assert list(speechkit.billed.values()) == [1]
    [specification] = [start["config"]["specification"] for start in speechkit.starts]
    assert specification["audioEncoding"] == "OGG_OPUS"
    assert "audioChannelCount" not in specification
    assert not any(desk.work.iterdir())


@pytest.mark.parametrize("stage", STAGES)
async def test_j6_a_worker_that_dies_at_the_end_of_a_stage_costs_nothing(
    desk: Desk, speechkit: SpeechKitServer, recording: Path, stage: str
) -> None:
    call_id = await desk.add(recording)
    await desk.run_until(stage)
    await desk.die_in(stage)
    await desk.die_in(stage)

    jobs = await desk.run()

    assert (await desk.call(call_id)).status == "done"
    assert [job.crashes for job in jobs if job.kind == f"call.{stage}"] == [2]
    assert list(speechkit.billed.values()) == [1]
    assert await desk.kept(call_id) == {"audio", "transcript"}
    assert len(await desk.jobs()) == len(STAGES)


async def test_j6_what_is_there_is_not_made_again(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    """A call that is added again is the one that is there; a stage that is run again finds what it
    would make, and removes what is not needed any more."""
    call_id = await desk.add(recording)
    assert await desk.add(recording) == call_id
    assert len(await desk.jobs()) == 1
    jobs = await desk.run()
    before = await desk.call(call_id)

    assert await desk.add(recording) == call_id
    assert await desk.run() == []
    for name in ("source", "speech"):  # left behind by somebody who died
        key = f"calls/{ORG}/{call_id}/{'source' if name == 'source' else 'speech.ogg'}"
        await desk.calls.artifacts.put(key, recording)
    chain = {job.kind: job for job in jobs}
    first = chain["call.extract_audio"]
    await desk.queue.enqueue(first.kind, first.payload, queue=first.queue, tenant=ORG)
    await desk.run()

    assert list(speechkit.billed.values()) == [1]
    assert sum(speechkit.polls.values()) == 1
    assert await desk.call(call_id) == before
    assert await desk.kept(call_id) == {"audio", "transcript"}


async def test_j6_analysis_of_the_same_is_made_and_written_once(
    desk: Desk, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_id = await desk.add(recording)
    jobs = await desk.run()
    before = await desk.call(call_id)
    last = jobs[-1]

    async def never(*_: object) -> None:
        raise AssertionError("the same was analysed again")

    monkeypatch.setattr("windrow.pipelines.calls.analyzing.analyse", never)
    for _ in range(2):
        await desk.queue.enqueue(last.kind, last.payload, queue=last.queue, tenant=ORG)
    again = await desk.run()

    assert [job.state for job in again] == [JobState.COMPLETED] * 2
    assert await desk.call(call_id) == before
    documents = await Catalog(desk.queue.database).documents.page(ORG, "default")
    assert [one.uri for one in documents] == [f"call:{call_id}"]


async def test_transcript_and_analysis_are_handed_to_the_index_with_the_completion(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    speechkit.said = [chunk("The baler is in the barn.", 0, 2)]
    call_id = await desk.add(recording)
    await desk.run()
    catalog = Catalog(desk.queue.database)
    [document] = await catalog.documents.page(ORG, "default")
    assert document.metadata["call_id"] == call_id
    assert document.pending is not None
    [content] = await catalog.contents.get([document.pending])
    assert "The baler is in the barn." in content.text
    [write] = await desk.queue.list(kind="index.write")
    assert write.payload == {"content": document.pending}
    assert write.tenant == ORG
