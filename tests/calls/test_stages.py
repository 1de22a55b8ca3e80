"""J4, J5, J6: a call goes through its stages, and whoever dies in one of them costs nothing but
time. SpeechKit is a stand-in that counts what is billed, the bucket a server that speaks S3."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.calls.desk import ORG, Desk, Died
from tests.calls.speechkit_server import Fault, SpeechKitServer, chunk
from windrow import Queue
from windrow.ingest.transcribe import Speech
from windrow.pipelines.calls.context import keep_quotas
from windrow.pipelines.calls.payloads import STAGES
from windrow.pipelines.calls.polling import deadline
from windrow.queue.job import JobState


def polled_at(jobs: Any) -> float:
    """How long after its start a call had been polled for the last time."""
    [poll] = [job for job in jobs if job.kind == "call.transcribe_poll"]
    assert poll.started_at is not None
    return float((poll.started_at - poll.created_at).total_seconds())


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
    assert call.seconds == pytest.approx(36, abs=0.2)
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


async def test_j5_polls_wait_back_off_and_burn_neither_attempts_nor_rows(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    speechkit.polls_needed = 6
    await desk.add(recording)

    jobs = await desk.run()

    [poll] = [job for job in jobs if job.kind == "call.transcribe_poll"]
    assert list(speechkit.polls.values()) == [7]
    assert (poll.attempts, poll.crashes, poll.runs) == (0, 0, 7)
    assert len(await desk.queue.list(queue="processing_jobs")) == len(STAGES)
    assert await desk.queue.steps(poll.id) == []
    # First after a sixth of its length; then every time 5 s at least, or a quarter more.
    waits = [6.0]
    while len(waits) < 7:
        waits.append(waits[-1] + max(5.0, waits[-1] / 4))
    assert polled_at(jobs) == pytest.approx(waits[-1], abs=0.2)


async def test_j5_a_transcript_that_never_comes_has_a_deadline(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    speechkit.polls_needed = 10_000
    call_id = await desk.add(recording)
    jobs = await desk.run()
    call = await desk.call(call_id)
    assert call.status == "failed"
    assert "there is no transcript after" in (call.error or "")
    assert deadline(36) == 3600 < polled_at(jobs) < 3600 * 1.3
    assert sum(speechkit.polls.values()) < 30
    assert await desk.kept(call_id) == {"audio", "speech"}


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
    assert len(await desk.queue.list(queue="processing_jobs")) == len(STAGES)


async def test_j5_a_death_between_the_start_and_its_id_costs_one_start_and_no_second_poll_chain(
    desk: Desk, speechkit: SpeechKitServer, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_id = await desk.add(recording)
    await desk.run_until("transcribe_start")
    transcriber: Any = desk.calls.transcriber
    real = transcriber.start

    async def start_and_die(speech: Speech) -> str:
        await real(speech)
        raise Died

    monkeypatch.setattr(transcriber, "start", start_and_die)
    await desk.die_in("transcribe_start")
    assert list(speechkit.billed.values()) == [1]
    monkeypatch.setattr(transcriber, "start", real)
    await desk.run()

    assert (await desk.call(call_id)).status == "done"
    assert list(speechkit.billed.values()) == [2]
    assert list(speechkit.polls) == ["op-2"]
    assert len(await desk.queue.list(kind="call.transcribe_poll")) == 1


async def test_nobody_starts_a_third_time_when_two_starts_had_no_answer(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    speechkit.fail("start", Fault("drop"), Fault("drop"), Fault("drop"))
    call_id = await desk.add(recording)
    await desk.run()
    call = await desk.call(call_id)
    assert call.status == "failed"
    assert "no answer was kept" in (call.error or "")
    assert list(speechkit.billed.values()) == [2]


async def test_j6_what_is_there_is_not_made_again(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    """A call that is added again is the one that is there; a stage that is run again finds what it
    would make, and removes what is not needed any more."""
    call_id = await desk.add(recording)
    assert await desk.add(recording) == call_id
    assert len(await desk.queue.list(queue="processing_jobs")) == 1
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
    documents = await desk.queue.store.list_documents(ORG, "default")
    assert [one.uri for one in documents] == [f"call:{call_id}"]


async def test_transcript_and_analysis_are_handed_to_the_index_with_the_completion(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    speechkit.said = [chunk("The baler is in the barn.", 0, 2)]
    call_id = await desk.add(recording)
    await desk.run()
    [document] = await desk.queue.store.list_documents(ORG, "default")
    assert document.metadata["call_id"] == call_id
    assert document.pending is not None
    [content] = await desk.queue.store.get_contents([document.pending])
    assert "The baler is in the barn." in content.text
    [write] = await desk.queue.list(kind="index.write")
    assert write.payload == {"content": document.pending}
    assert write.tenant == ORG


async def test_who_speaks_is_known_by_channels(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    speechkit.said = [chunk("Hello.", 0, 1, "1"), chunk("Good morning.", 1, 3, "2")]
    call_id = await desk.add(recording)
    await desk.run()
    call = await desk.call(call_id)
    assert call.analysis is not None
    assert call.analysis["talk_seconds_by_speaker"] == {"1": 1.0, "2": 2.0}


async def test_j5_quotas_are_kept_by_limits_unless_somebody_set_them(
    desk: Desk, queue: Queue, recording: Path
) -> None:
    await queue.set_limit("speechkit:poll", per_second=0.1, burst=1)
    await keep_quotas(queue, desk.calls.quotas)
    limits = {one.key: one for one in await queue.limits()}
    start, poll = limits["speechkit:start"], limits["speechkit:poll"]
    assert start.burst is not None
    assert start.per_second is not None
    assert start.burst + start.per_second * 3600 == pytest.approx(500)
    assert (poll.per_second, poll.burst) == (0.1, 1)

    await desk.add(recording)
    jobs = await desk.run()
    assert {job.kind: job.limits for job in jobs} == {
        "call.extract_audio": (),
        "call.transcribe_start": ("speechkit:start",),
        "call.transcribe_poll": ("speechkit:poll",),
        "call.analyze": (),
    }


async def test_calls_run_side_by_side_and_each_is_paid_for_once(
    desk: Desk, speechkit: SpeechKitServer, tmp_path: Path, recording: Path
) -> None:
    speechkit.polls_needed = 1
    body = recording.read_bytes()
    ids = []
    for number in range(4):
        path = tmp_path / f"{number}.mp3"
        path.write_bytes(body + bytes([number]))
        ids.append(await desk.add(path))
    await asyncio.gather(*(desk.add(tmp_path / f"{number}.mp3") for number in range(4)))
    await desk.run()
    assert [(await desk.call(one)).status for one in ids] == ["done"] * 4
    assert sorted(speechkit.billed.values()) == [1] * 4
