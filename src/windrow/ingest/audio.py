"""Recordings: what a file holds, its sound alone, and that sound in pieces, all by ffmpeg.

A file that is no recording, or a broken one, raises `UnsupportedFormat` or `ConversionError`:
another try does not help. ffmpeg reads what strangers hand in, and playlists name other files, so
only containers are opened, and only from the disk.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from windrow.errors import ConversionError, FileGone, MissingExtra, UnsupportedFormat

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

OGG_BITRATE: Final = "32k"
# Less of a recording than its file says by so much is worth a word.
MISSING_SECONDS: Final = 2.0
MISSING_PART: Final = 0.02

SAMPLE_RATE: Final = 16_000
PIECE_SECONDS: Final = 30.0
CUT_SECONDS: Final = 8.0  # at the end of a piece, where a quiet place is looked for
FRAME: Final = SAMPLE_RATE // 50
# Of a sample between -1 and 1, in each 20 ms: below it nobody speaks. Noise of 16 bits is 3e-5.
QUIET: Final = 1e-3

Samples = NDArray[np.float32]

# What recordings come in. Not among them: hls, dash, concat and others that lead elsewhere.
CONTAINERS: Final = (
    "matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,ogg,wav,flac,mp3,aac,ac3,aiff,amr,avi,flv,asf,mpeg,"
    "mpegts,w64,caf,au,gsm,wv,ape"
)
LONGEST_RUN: Final = 3600.0  # seconds; four hours of speech take a minute or two
MOST_SAID: Final = 64 * 1024  # bytes of what ffmpeg says that are kept
_SAFELY: Final = ("-hide_banner", "-nostdin", "-protocol_whitelist", "file")


@dataclass(frozen=True, slots=True)
class Probe:
    container: str
    codec: str  # of the first stream that sounds
    seconds: float | None  # None: the file does not say
    channels: int
    sample_rate: int
    has_video: bool


async def probe(path: Path) -> Probe:
    """What is in a recording, as ffmpeg describes it: the static build has no ffprobe.

    Raises FileGone, UnsupportedFormat (no recording, nothing that sounds, an unknown codec) and
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


@dataclass(frozen=True, slots=True)
class Piece:
    start: float  # seconds from the beginning
    samples: Samples

    @property
    def seconds(self) -> float:
        return len(self.samples) / SAMPLE_RATE

    @property
    def is_silent(self) -> bool:
        return bool(_loudness(self.samples).max(initial=0.0) < QUIET)


async def read_pieces(
    path: Path, *, start: float = 0.0, seconds: float = PIECE_SECONDS
) -> AsyncIterator[Piece]:
    """The sound of a recording from some second on, cut where it is quiet, so that no word is cut
    in two. One piece at a time is in memory. Raises ConversionError if it ends badly."""
    arguments = [
        *("-loglevel", "quiet"),
        *(("-ss", f"{start:.6f}") if start else ()),
        *reading(path),
        *("-map", "0:a:0", "-ac", "1", "-ar", str(SAMPLE_RATE), "-f", "f32le", "-"),
    ]
    most = int(seconds * SAMPLE_RATE)
    place = round(start * SAMPLE_RATE)
    held = np.zeros(0, np.float32)
    async with ffmpeg_process(arguments, has_output=True) as process:
        if process.stdout is None:
            raise RuntimeError("ffmpeg was started without a pipe for what it reads")
        while True:
            block = await _read_samples(process.stdout, most - len(held))
            held = np.concatenate([held, block])
            if not len(held):
                break
            is_last = len(held) < most
            end = len(held) if is_last else _cut(held)
            yield Piece(place / SAMPLE_RATE, held[:end])
            place, held = place + end, held[end:]
            if is_last:
                break
        if await process.wait() != 0:
            raise ConversionError("recording", f"ffmpeg ended with {process.returncode}")


async def _read_samples(stream: asyncio.StreamReader, samples: int) -> Samples:
    try:
        data = await stream.readexactly(4 * samples)
    except asyncio.IncompleteReadError as error:
        data = error.partial[: len(error.partial) // 4 * 4]
    return np.frombuffer(data, "<f4")


def _cut(samples: Samples) -> int:
    """The middle of the quietest fifth of a second near the end."""
    first = len(samples) - int(CUT_SECONDS * SAMPLE_RATE)
    loud = _loudness(samples[max(first, 0) :])
    around = np.convolve(loud, np.ones(10), "valid")
    return max(first, 0) + (int(np.argmin(around)) + 5) * FRAME


def _loudness(samples: Samples) -> NDArray[Any]:
    whole = len(samples) // FRAME * FRAME
    frames = samples[:whole].reshape(-1, FRAME) if whole else samples.reshape(1, -1)
    loud: NDArray[Any] = np.sqrt(np.mean(np.square(frames), axis=1)) if frames.size else frames[0]
    return loud


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run of ffmpeg."""

    code: int
    said: str

    @property
    def reason(self) -> str:
        """The first line that says something of the file, without ffmpeg's own addresses."""
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        first = lines[0] if lines else f"ffmpeg ended with {self.code}"
        return first.split("] ", 1)[-1][:300]


@functools.cache
def find_ffmpeg() -> str:
    """The system's, else that of the extra `audio`. Raises MissingExtra."""
    if found := shutil.which("ffmpeg"):
        return found
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise MissingExtra("audio", "recordings, or install ffmpeg") from error
    return str(imageio_ffmpeg.get_ffmpeg_exe())


def reading(source: Path) -> list[str]:
    """The arguments that open a file as a recording."""
    return [*_SAFELY, "-format_whitelist", CONTAINERS, "-i", f"file:{source}"]


async def run_ffmpeg(arguments: Sequence[str], *, seconds: float = LONGEST_RUN) -> Run:
    """Run it to its end. Raises ConversionError if that takes too long."""
    async with ffmpeg_process(arguments, has_output=False) as process:
        if process.stderr is None:
            raise RuntimeError("ffmpeg was started without a pipe for what it says")
        try:
            async with asyncio.timeout(seconds):
                said = await _last_of(process.stderr)
                code = await process.wait()
        except TimeoutError:
            why = f"ffmpeg was not done with it after {seconds:g} s"
            raise ConversionError("recording", why) from None
    return Run(code, said)


@asynccontextmanager
async def ffmpeg_process(
    arguments: Sequence[str], *, has_output: bool
) -> AsyncIterator[asyncio.subprocess.Process]:
    """ffmpeg while it runs; whoever leaves early ends it."""
    process = await asyncio.create_subprocess_exec(
        await asyncio.to_thread(find_ffmpeg),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE if has_output else asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL if has_output else asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _last_of(stream: asyncio.StreamReader) -> str:
    """The beginning of what is said and its end: a broken file is complained of in each frame."""
    said = b""
    while block := await stream.read(16 * 1024):
        said += block
        if len(said) > 2 * MOST_SAID:
            said = said[: MOST_SAID // 2] + said[-MOST_SAID // 2 :]
    return said.decode("utf-8", "replace")
