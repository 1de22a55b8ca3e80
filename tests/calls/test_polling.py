"""J5: polls wait without costing anything, and a start is asked for as seldom as can be. On one
store: what the stores do for it is the same as for any other job."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.calls.desk import Desk, Died, open_on_one_store
from tests.calls.speechkit_server import Fault, SpeechKitServer, chunk
from windrow import Queue
from windrow.ingest.transcribe import Speech
from windrow.pipelines.calls.context import keep_quotas
from windrow.pipelines.calls.payloads import STAGES
from windrow.pipelines.calls.transcription import deadline
from windrow.testing import drain


@pytest.fixture
async def queue(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[Queue]:
    async with open_on_one_store(sqlite_template, tmp_path) as opened:
        yield opened


def polled_at(jobs: Any) -> float:
    """How long after its start a call had been polled for the last time."""
    [poll] = [job for job in jobs if job.kind == "call.transcribe_poll"]
    assert poll.started_at is not None
    return float((poll.started_at - poll.created_at).total_seconds())


async def test_j5_polls_wait_back_off_and_burn_neither_attempts_nor_rows(
    desk: Desk, speechkit: SpeechKitServer
) -> None:
    speechkit.polls_needed = 6
    await desk.add_uploaded()

    jobs = await desk.run()

    [poll] = [job for job in jobs if job.kind == "call.transcribe_poll"]
    assert list(speechkit.polls.values()) == [7]
    assert (poll.attempts, poll.crashes, poll.runs) == (0, 0, 7)
    assert len(await desk.queue.list(queue="processing_jobs")) == len(STAGES) - 1
    assert await desk.queue.steps(poll.id) == []
    # First after a sixth of its length; then every time 5 s at least, or a quarter more.
    waits = [6.0]
    while len(waits) < 7:
        waits.append(waits[-1] + max(5.0, waits[-1] / 4))
    assert polled_at(jobs) == pytest.approx(waits[-1], abs=0.2)


async def test_j5_a_transcript_that_never_comes_has_a_deadline(
    desk: Desk, speechkit: SpeechKitServer
) -> None:
    speechkit.polls_needed = 10_000
    call_id = await desk.add_uploaded()
    jobs = await desk.run()
    call = await desk.call(call_id)
    assert call.status == "failed"
    assert "there is no transcript after" in (call.error or "")
    assert deadline(36) == 3600 < polled_at(jobs) < 3600 * 1.3
    assert sum(speechkit.polls.values()) < 30
    assert await desk.kept(call_id) == {"audio", "speech"}


async def test_j5_a_death_between_the_start_and_its_id_costs_one_start_and_no_second_poll_chain(
    desk: Desk, speechkit: SpeechKitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_id = await desk.add_uploaded()
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
    desk: Desk, speechkit: SpeechKitServer
) -> None:
    speechkit.fail("start", Fault("drop"), Fault("drop"), Fault("drop"))
    call_id = await desk.add_uploaded()
    await desk.run()
    call = await desk.call(call_id)
    assert call.status == "failed"
    assert "no answer was kept" in (call.error or "")
    assert list(speechkit.billed.values()) == [2]


async def test_who_speaks_is_known_by_channels(desk: Desk, speechkit: SpeechKitServer) -> None:
    speechkit.said = [chunk("Hello.", 0, 1, "1"), chunk("Good morning.", 1, 3, "2")]
    call_id = await desk.add_uploaded()
    await desk.run()
    call = await desk.call(call_id)
    assert call.analysis is not None
    assert call.analysis["talk_seconds_by_speaker"] == {"1": 1.0, "2": 2.0}


async def test_j5_quotas_are_kept_by_limits_unless_somebody_set_them(
    desk: Desk, queue: Queue
) -> None:
    await queue.set_limit("speechkit:poll", per_second=0.1, burst=1)
    await keep_quotas(queue, desk.calls.quotas)
    limits = {one.key: one for one in await queue.limits()}
    start, poll = limits["speechkit:start"], limits["speechkit:poll"]
    assert start.burst is not None
    assert start.per_second is not None
    assert start.burst + start.per_second * 3600 == pytest.approx(500)
    assert (poll.per_second, poll.burst) == (0.1, 1)

    await desk.add_uploaded()
    jobs = await desk.run()
    assert {job.kind: job.limits for job in jobs} == {
        "call.transcribe_start": ("speechkit:start",),
        "call.transcribe_poll": ("speechkit:poll",),
        "call.analyze": (),
    }


async def test_calls_run_side_by_side_and_each_is_paid_for_once(
    desk: Desk, speechkit: SpeechKitServer
) -> None:
    speechkit.polls_needed = 1
    ids = [await desk.add_uploaded() for _ in range(4)]
    await drain(desk.queue, desk.handlers, scheduled=True, concurrency=4)
    assert [(await desk.call(one)).status for one in ids] == ["done"] * 4
    assert sorted(speechkit.billed.values()) == [1] * 4
