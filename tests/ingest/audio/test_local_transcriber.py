"""The transcriber that needs no key, on speech that a person has read and on silence."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import recordings
from windrow.errors import MissingExtra
from windrow.ingest.transcribe import Line, Speech, Transcript
from windrow.ingest.transcribe.local import LocalTranscriber


@pytest.fixture
async def transcriber() -> AsyncIterator[LocalTranscriber]:
    one = LocalTranscriber()
    yield one
    await one.close()


async def test_j4_what_a_person_reads_is_understood(
    tmp_path: Path, transcriber: LocalTranscriber
) -> None:
    speech = Speech(recordings.recorded_speech(tmp_path), 6.0)
    operation = await transcriber.start(speech)
    transcript = await transcriber.poll(operation, speech)
    assert transcript is not None
    assert "best of times" in transcript.text
    assert "worst of times" in transcript.text
    assert (transcript.language, transcript.model) == ("en", "moonshine-tiny-en")
    assert all(0 <= line.start < line.end <= 6.5 for line in transcript.lines)


async def test_j4_made_up_speech_is_understood(
    tmp_path: Path, transcriber: LocalTranscriber
) -> None:
    transcript = await transcriber.transcribe(recordings.spoken(tmp_path))
    assert "tomorrow morning" in transcript.text


async def test_silence_has_no_words(tmp_path: Path, transcriber: LocalTranscriber) -> None:
    transcript = await transcriber.transcribe(recordings.silence(tmp_path, 40))
    assert transcript.lines == ()
    assert transcript.is_empty


def test_without_the_model_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moonshine_voice", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"windrow\[audio\]"):
        LocalTranscriber()


def test_a_transcript_says_who_talked_how_long() -> None:
    lines = (Line(0, 2, "a", "1"), Line(2, 3, "b", "2"), Line(3, 4.5, "c", "1"))
    transcript = Transcript(lines, "m", "ru")
    assert transcript.talk_seconds() == {"1": 3.5, "2": 1.0}
    assert Transcript.from_json(transcript.to_json()) == transcript
