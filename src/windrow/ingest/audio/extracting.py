"""The sound of a recording alone: to be kept, and as providers take it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow.errors import ConversionError
from windrow.ingest.audio.ffmpeg import Run, reading, run_ffmpeg
from windrow.ingest.audio.pieces import SAMPLE_RATE
from windrow.ingest.audio.probing import Probe, probe

OGG_BITRATE: Final = "32k"
# Less of a recording than its file says by so much is worth a word.
MISSING_SECONDS: Final = 2.0
MISSING_PART: Final = 0.02


@dataclass(frozen=True, slots=True)
class Audio:
    """Sound that was taken out of a recording."""

    path: Path
    seconds: float
    note: str | None = None  # what is missing of it, if anything is


async def extract_audio(source: Path, target: Path) -> Audio:
    """Write the sound of a recording as FLAC, one channel, to a file that appears when it is whole.
    What can be read of a damaged one is taken, with a note. Raises FileGone, UnsupportedFormat and
    ConversionError."""
    found = await probe(source)
    form = ["-ar", str(SAMPLE_RATE), "-c:a", "flac", "-compression_level", "5", "-f", "flac"]
    await _convert(source, target, form)
    try:
        written = await probe(target)
    except ConversionError:
        written = None
    if written is None or not written.seconds:
        _remove(target)
        raise ConversionError("recording", "nothing of its sound can be read")
    return Audio(target, written.seconds, _missing(found, written.seconds))


async def to_ogg_opus(source: Path, target: Path) -> Path:
    """The form in which speech is uploaded: OGG Opus, one channel."""
    form = ["-c:a", "libopus", "-b:a", OGG_BITRATE, "-application", "voip", "-f", "ogg"]
    await _convert(source, target, form)
    return target


async def _convert(source: Path, target: Path, form: list[str]) -> None:
    part = target.with_name(f".{target.name}.{os.getpid()}")
    chosen = ["-map", "0:a:0", "-vn", "-sn", "-dn", "-map_metadata", "-1", "-ac", "1"]
    try:
        run = await run_ffmpeg(
            ["-loglevel", "error", *reading(source), *chosen, *form, "-y", f"file:{part}"]
        )
        if run.code != 0:
            raise _failure(run)
        os.replace(part, target)
    finally:
        _remove(part)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _failure(run: Run) -> Exception:
    if "No space left" in run.said:
        return OSError(f"ffmpeg could not write: {run.reason}")  # no fault of the recording
    return ConversionError("recording", run.reason)


def _missing(found: Probe, seconds: float) -> str | None:
    said = found.seconds or 0.0
    if said - seconds <= max(MISSING_SECONDS, MISSING_PART * said):
        return None
    return f"damaged: {seconds:.0f} of {said:.0f} s could be read"
