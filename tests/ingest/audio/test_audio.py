"""Recordings: their sound is taken out, whatever they come in, and bad ones are named as such."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests import recordings
from windrow.errors import ConversionError, FileGone, MissingExtra, UnsupportedFormat
from windrow.ingest.audio import (
    SAMPLE_RATE,
    extract_audio,
    find_ffmpeg,
    probe,
    read_pieces,
    run_ffmpeg,
    to_ogg_opus,
)


@pytest.mark.parametrize("name", ["call.wav", "call.mp3", "call.m4a", "call.ogg", "call.mkv"])
async def test_sound_is_taken_out_of_any_container(tmp_path: Path, name: str) -> None:
    source = recordings.tone(tmp_path, name, 3)
    audio = await extract_audio(source, tmp_path / "audio.flac")
    assert audio.seconds == pytest.approx(3, abs=0.1)
    assert audio.note is None
    found = await probe(audio.path)
    assert (found.codec, found.channels, found.sample_rate) == ("flac", 1, SAMPLE_RATE)


async def test_speech_is_uploaded_as_ogg_opus_with_one_channel(tmp_path: Path) -> None:
    source = recordings.tone(tmp_path, "stereo.wav", 2, "-ac", "2")
    assert (await probe(source)).channels == 2
    found = await probe(await to_ogg_opus(source, tmp_path / "speech.ogg"))
    assert (found.container, found.codec, found.channels) == ("ogg", "opus", 1)


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (recordings.empty, ConversionError, "the file is empty"),
        (recordings.corrupted, ConversionError, "the container is broken"),
        (recordings.not_audio, UnsupportedFormat, "neither audio nor video"),
        (recordings.picture_only, UnsupportedFormat, "there is no sound in it"),
        (recordings.unknown_codec, UnsupportedFormat, "unknown codec"),
    ],
)
async def test_a_bad_recording_is_named_as_what_it_is(
    tmp_path: Path, make: Callable[[Path], Path], error: type[Exception], why: str
) -> None:
    target = tmp_path / "audio.flac"
    with pytest.raises(error, match=why) as raised:
        await extract_audio(make(tmp_path), target)
    assert not getattr(raised.value, "transient", True)
    assert not list(tmp_path.glob("*.flac*")) + list(tmp_path.glob(".*"))


async def test_a_file_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(FileGone):
        await extract_audio(tmp_path / "none.wav", tmp_path / "audio.flac")


async def test_what_can_be_read_of_a_damaged_recording_is_taken_with_a_note(tmp_path: Path) -> None:
    whole = recordings.tone(tmp_path, "whole.wav", 10)
    cut = tmp_path / "cut.flac"
    recordings.ffmpeg("-i", str(whole), str(cut))
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    audio = await extract_audio(cut, tmp_path / "audio.flac")
    assert 1 < audio.seconds < 9
    assert audio.note is not None
    assert "of 10 s could be read" in audio.note


async def test_a_playlist_leads_nowhere(tmp_path: Path) -> None:
    """A list of files that calls itself a recording must not have others read."""
    secret = recordings.tone(tmp_path, "secret.wav")
    lists = {
        "list.m3u8": f"#EXTM3U\n#EXTINF:3,\nfile:{secret}\n#EXT-X-ENDLIST\n",
        "list.ffconcat": f"ffconcat version 1.0\nfile '{secret}'\n",
    }
    for name, text in lists.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(UnsupportedFormat):
            await extract_audio(tmp_path / name, tmp_path / "audio.flac")


async def test_pieces_are_cut_where_it_is_quiet_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "tones.wav"
    # Two seconds of sound and a second of silence, again and again.
    recordings.ffmpeg(
        *("-f", "lavfi", "-i", "sine=frequency=300:duration=20"),
        *("-af", "volume='if(lt(mod(t,3),2),1,0)':eval=frame", "-ar", "16000", str(path)),
    )
    pieces = [piece async for piece in read_pieces(path, seconds=10)]
    assert len(pieces) >= 3
    assert sum(len(piece.samples) for piece in pieces) == 20 * SAMPLE_RATE
    for before, after in itertools.pairwise(pieces):
        assert after.start == pytest.approx(before.start + before.seconds)
        assert 1.9 <= after.start % 3 <= 3, "cut in the middle of a sound"
        assert np.abs(after.samples[:100]).max() < 0.01
    assert not any(piece.is_silent for piece in pieces)
    later = [piece async for piece in read_pieces(path, start=pieces[1].start, seconds=10)]
    assert np.array_equal(later[0].samples, pieces[1].samples)


async def test_silence_is_silent(tmp_path: Path) -> None:
    pieces = [piece async for piece in read_pieces(recordings.silence(tmp_path, 5))]
    assert [piece.is_silent for piece in pieces] == [True]


async def test_ffmpeg_ends_with_whoever_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ["-f", "lavfi", "-i", "anullsrc"]
    endless = ["-re", *source, "-f", "null", "-"]
    started: list[asyncio.subprocess.Process] = []
    real = asyncio.create_subprocess_exec

    async def remember(*arguments: object, **options: object) -> asyncio.subprocess.Process:
        process = await real(*arguments, **options)  # type: ignore[arg-type]
        started.append(process)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", remember)
    with pytest.raises(ConversionError, match=r"not done with it after 0.2 s"):
        await run_ffmpeg(endless, seconds=0.2)
    assert started[0].returncode is not None


def test_without_ffmpeg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtra, match="ffmpeg") as raised:
        find_ffmpeg.__wrapped__()
    assert raised.value.extra == "audio"
