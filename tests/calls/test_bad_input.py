"""Everything that can be wrong with a recording or with a provider ends in the documented state,
with the reason on the row; nothing is paid twice. On one store: others differ in no way here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tests import recordings
from tests.calls.desk import Desk, open_on_one_store
from tests.calls.speechkit_server import Fault, SpeechKitServer
from windrow import Job, Queue
from windrow.catalog import Catalog
from windrow.errors import FileGone
from windrow.pipelines.calls.payloads import STAGES


@pytest.fixture
async def queue(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[Queue]:
    async with open_on_one_store(sqlite_template, tmp_path) as opened:
        yield opened


async def end(desk: Desk) -> tuple[str, str]:
    """How a call that is about to be started ends, and why."""
    call_id = await desk.add_uploaded()
    await desk.run()
    call = await desk.call(call_id)
    return call.status, call.error or ""


async def last_job(desk: Desk, what: str) -> Job:
    return (await desk.queue.list(kind=f"call.transcribe_{what}", limit=1))[0]


async def add_and_run(desk: Desk, path: Path) -> str:
    call_id = await desk.add(path)
    await desk.run()
    return call_id


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (recordings.empty, "the file is empty"),
        (recordings.not_audio, "neither audio nor video"),
        (recordings.picture_only, "there is no sound in it"),
        (recordings.corrupted, "the container is broken"),
        (recordings.unknown_codec, "unknown codec"),
    ],
)
async def test_a_file_that_is_no_recording_fails_before_anything_is_paid(
    desk: Desk, speechkit: SpeechKitServer, tmp_path: Path, make: Callable[[Path], Path], why: str
) -> None:
    call_id = await add_and_run(desk, make(tmp_path))
    call = await desk.call(call_id)
    assert call.status == "failed"
    assert why in (call.error or "")
    assert await desk.kept(call_id) == {"source"}
    assert speechkit.billed == {}
    [job] = await desk.queue.list(queue="processing_jobs")
    assert job.runs == 1, "it does not become better by another try"


async def test_a_file_that_is_not_there_is_no_call(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(FileGone):
        await desk.add(tmp_path / "none.wav")
    assert await Catalog(desk.queue.database).calls.newest() == []


async def test_silence_is_a_transcript_without_words(
    desk: Desk, speechkit: SpeechKitServer
) -> None:
    speechkit.said = None
    assert await end(desk) == ("done", "")
    catalog = Catalog(desk.queue.database)
    [call] = await catalog.calls.newest()
    assert call.analysis is not None
    assert (call.analysis["summary"], call.analysis["talk_seconds"]) == ("", 0)
    [document] = await catalog.documents.page(call.tenant, "default")
    assert (document.skipped, document.title) == ("nobody says anything", "call.mp3")
    assert await desk.queue.list(kind="index.write") == []


@pytest.mark.parametrize("what", ["start", "poll"])
async def test_a_refusal_for_good_fails_the_call_with_what_was_said(
    desk: Desk, speechkit: SpeechKitServer, what: str
) -> None:
    for status in (400, 401, 403, 404):
        speechkit.fail(what, Fault(status=status))
        state, why = await end(desk)
        assert state == "failed"
        assert f"SpeechKit answers with {status}: told to answer with {status}" in why
        assert (await last_job(desk, what)).runs == 1
    assert sum(speechkit.billed.values()) == (0 if what == "start" else 4)


@pytest.mark.parametrize("what", ["start", "poll"])
async def test_trouble_that_passes_costs_time_only(
    desk: Desk, speechkit: SpeechKitServer, what: str
) -> None:
    for statuses in ((408, 409, 500), (502, 503, 504)):
        speechkit.fail(what, *(Fault(status=status) for status in statuses))
        assert await end(desk) == ("done", "")
        job = await last_job(desk, what)
        assert (job.runs, job.attempts) == (4, 3 if what == "start" else 0)
    assert list(speechkit.billed.values()) == [1, 1]


async def test_a_provider_that_stays_out_of_order_fails_the_call(
    desk: Desk, speechkit: SpeechKitServer
) -> None:
    """After five tries to start; once it was paid for, at its deadline."""
    speechkit.fail("start", *[Fault(status=503)] * 5)
    state, why = await end(desk)
    assert state == "failed"
    assert "503" in why
    assert speechkit.billed == {}

    speechkit.fail("poll", *[Fault(status=500)] * 100)
    state, why = await end(desk)
    assert state == "failed"
    assert "there is no transcript after" in why
    assert "SpeechKit answers with 500" in why
    assert list(speechkit.billed.values()) == [1]


def in_two_minutes() -> str:
    """As a date, which is compared with the time of now, whatever the clock of the queue says."""
    return format_datetime(datetime.now(UTC) + timedelta(seconds=120), usegmt=True)


@pytest.mark.parametrize(
    ("what", "headers", "seconds"),
    [
        ("start", lambda: {"Retry-After": "40"}, 40),
        ("start", lambda: {"Retry-After": in_two_minutes()}, 120),
        ("poll", lambda: {"retry-after-ms": "45000"}, 45),
    ],
)
async def test_too_often_waits_as_long_as_is_asked_for_and_uses_no_attempt(
    desk: Desk,
    speechkit: SpeechKitServer,
    what: str,
    headers: Callable[[], dict[str, str]],
    seconds: float,
) -> None:
    speechkit.fail(what, Fault(status=429, headers=headers()))
    call_id = await desk.add_uploaded()
    await desk.run()
    assert (await desk.call(call_id)).status == f"transcribe_{what}"
    [limit] = [one for one in await desk.queue.limits() if one.parked_until]
    assert limit.key == f"speechkit:{what}"
    assert limit.parked_until is not None
    waits = (limit.parked_until - desk.clock.now()).total_seconds()
    assert waits == pytest.approx(seconds, abs=20 if seconds == 120 else 0.1)
    desk.clock.advance(waits + 1)
    await desk.run()
    assert (await desk.call(call_id)).status == "done"
    assert list(speechkit.billed.values()) == [1]
    assert (await last_job(desk, what)).attempts == 0


async def test_no_credit_is_never_tried_again(desk: Desk, speechkit: SpeechKitServer) -> None:
    for what in ("start", "poll"):
        speechkit.fail(what, Fault(status=429, code="insufficient_quota"))
        state, why = await end(desk)
        assert state == "failed"
        assert "429" in why
        assert (await last_job(desk, what)).runs == 1


@pytest.mark.parametrize("how", ["garbage", "drop", "hang"])
async def test_a_start_whose_answer_is_lost_is_asked_for_once_more(
    desk: Desk, speechkit: SpeechKitServer, how: Any
) -> None:
    """It may have begun: so it may be paid for twice, and never three times."""
    answer_within(desk, how, 1.0)
    speechkit.fail("start", Fault(how), Fault(how), Fault(how))
    state, why = await end(desk)
    assert state == "failed"
    assert "no answer was kept" in why
    assert list(speechkit.billed.values()) == [2]
    assert await desk.queue.list(kind="call.transcribe_poll") == []


async def test_a_start_that_nobody_was_asked_for_is_no_start(
    desk: Desk, speechkit: SpeechKitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cannot be reached has begun nothing: tried again as after any trouble that passes."""
    transcriber: Any = desk.calls.transcriber
    real = transcriber._url
    monkeypatch.setattr(transcriber, "_url", "http://127.0.0.1:1/nobody")
    state, why = await end(desk)
    assert state == "failed"
    assert "does not answer" in why
    assert (await last_job(desk, "start")).attempts == 5
    monkeypatch.setattr(transcriber, "_url", real)
    assert await end(desk) == ("done", "")
    assert list(speechkit.billed.values()) == [1]


async def test_a_start_whose_second_answer_arrives_goes_on_with_that(
    desk: Desk, speechkit: SpeechKitServer
) -> None:
    speechkit.fail("start", Fault("garbage"))
    assert await end(desk) == ("done", "")
    assert list(speechkit.billed.values()) == [2]
    assert list(speechkit.polls) == ["op-2"]


@pytest.mark.parametrize("how", ["garbage", "drop", "hang"])
async def test_a_poll_whose_answer_is_lost_is_asked_for_again(
    desk: Desk, speechkit: SpeechKitServer, how: Any
) -> None:
    answer_within(desk, how, 2.0)
    speechkit.fail("poll", Fault(how))
    assert await end(desk) == ("done", "")
    assert list(speechkit.billed.values()) == [1]
    assert (await last_job(desk, "poll")).attempts == 0


@pytest.mark.parametrize("is_early", [True, False])
async def test_what_the_provider_cannot_transcribe_fails_with_its_reason(
    desk: Desk, speechkit: SpeechKitServer, is_early: bool
) -> None:
    speechkit.error = {"code": 3, "message": "audio has no speech track", "details": []}
    speechkit.is_error_early = is_early
    speechkit.polls_needed = 2
    state, why = await end(desk)
    assert state == "failed"
    assert "audio has no speech track (code 3)" in why
    assert sum(speechkit.polls.values()) == (1 if is_early else 3)
    assert list(speechkit.billed.values()) == [1]


async def test_an_hours_budget_that_is_used_up_waits_for_the_next(
    desk: Desk, speechkit: SpeechKitServer
) -> None:
    speechkit.budget["start"] = 0
    call_id = await desk.add_uploaded()
    await desk.run()
    assert (await desk.call(call_id)).status == "transcribe_start"
    speechkit.budget["start"] = 1
    desk.clock.advance(120)
    await desk.run()
    assert (await desk.call(call_id)).status == "done"
    assert list(speechkit.billed.values()) == [1]


async def test_a_failed_call_begins_again_when_it_is_added_again(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    speechkit.fail("start", Fault(status=403))
    call_id = await add_and_run(desk, recording)
    assert (await desk.call(call_id)).status == "failed"
    assert await add_and_run(desk, recording) == call_id
    assert (await desk.call(call_id)).status == "done"
    assert await desk.kept(call_id) == {"audio", "transcript"}
    assert len(await desk.queue.list(queue="processing_jobs")) == 2 + len(STAGES)


async def test_without_a_bucket_speechkit_says_what_is_missing(
    desk: Desk, speechkit: SpeechKitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(desk.calls.artifacts), "address", lambda self, key: None)
    state, why = await end(desk)
    assert state == "failed"
    assert "set artifacts_url" in why
    assert speechkit.billed == {}


def answer_within(desk: Desk, how: str, seconds: float) -> None:
    """Not to wait for a minute for an answer that never comes."""
    if how == "hang":
        transcriber: Any = desk.calls.transcriber
        transcriber._starting._seconds = transcriber._polling._seconds = seconds
