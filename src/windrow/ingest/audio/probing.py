"""`probe`: what is in a recording, as ffmpeg describes it. (The static build has no ffprobe.)"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow.errors import ConversionError, FileGone, UnsupportedFormat
from windrow.ingest.audio.ffmpeg import Run, reading, run_ffmpeg

PROBE_SECONDS: Final = 60.0
_CONTAINER: Final = re.compile(r"^Input #0, (\S+), from ", re.MULTILINE)
_DURATION: Final = re.compile(r"^\s*Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)", re.MULTILINE)
_STREAM: Final = re.compile(r"^\s*Stream #0:\d+\S*: (\w+): ([^\n]*)", re.MULTILINE)
_RATE: Final = re.compile(r"(\d+) Hz")
_CHANNELS: Final = re.compile(r"Hz, (mono|stereo|(\d+) channels|[\d.]+)")
# How containers begin: a file that begins so and cannot be opened is broken, another is no
# recording at all.
_BEGINNINGS: Final = (
    b"RIFF", b"OggS", b"fLaC", b"ID3", b"FORM", b"caff", b".snd", b"#!AMR", b"FLV", b"wvpk",
    b"MAC ", b"\x1aE\xdf\xa3", b"0&\xb2u", b"\xff\xfb", b"\xff\xf3", b"\xff\xf1", b"riff",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Probe:
    container: str
    codec: str  # of the first stream that sounds
    seconds: float | None  # None: the file does not say
    channels: int
    sample_rate: int
    has_video: bool


async def probe(path: Path) -> Probe:
    """Raises FileGone, UnsupportedFormat (no recording, nothing that sounds, an unknown codec) and
    ConversionError (empty, broken)."""
    beginning = await asyncio.to_thread(_beginning, path)
    if not beginning:
        raise ConversionError("recording", "the file is empty")
    run = await run_ffmpeg(reading(path), seconds=PROBE_SECONDS)
    container = _CONTAINER.search(run.said)
    if container is None:
        raise _unreadable(run, beginning)
    streams = _STREAM.findall(run.said)
    sounding = next((rest for kind, rest in streams if kind == "Audio"), None)
    if sounding is None:
        raise UnsupportedFormat(container[1], "there is no sound in it")
    codec = sounding.split(",")[0].split(" (")[0].strip()
    if codec in ("none", "unknown"):
        raise UnsupportedFormat(container[1], f"its sound is in an unknown codec ({sounding})")
    rate, channels = _RATE.search(sounding), _CHANNELS.search(sounding)
    return Probe(
        container=container[1],
        codec=codec,
        seconds=_seconds(run.said),
        channels=_count(channels[1]) if channels else 1,
        sample_rate=int(rate[1]) if rate else 0,
        has_video=any(kind == "Video" for kind, _ in streams),
    )


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(16)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileGone(str(path)) from error


def _unreadable(run: Run, beginning: bytes) -> UnsupportedFormat | ConversionError:
    is_container = beginning.startswith(_BEGINNINGS) or beginning[4:8] == b"ftyp"
    if is_container and "not on whitelist" not in run.said:
        return ConversionError("recording", f"the container is broken: {run.reason}")
    return UnsupportedFormat("this file", "it is neither audio nor video")


def _seconds(said: str) -> float | None:
    found = _DURATION.search(said)
    if found is None:
        return None
    return int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3])


def _count(layout: str) -> int:
    if layout in ("mono", "stereo"):
        return 1 if layout == "mono" else 2
    # "6 channels", or "5.1": five speakers and one for the low notes
    return int(layout.split()[0]) if " " in layout else sum(int(n) for n in layout.split("."))
