"""ffmpeg: found, and run so that a file handed in by somebody can only be read as a recording.

Playlists and the like name other files: only containers are opened, and only from the disk.
"""

from __future__ import annotations

import asyncio
import functools
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow.errors import ConversionError, MissingExtra

# What recordings come in. Not among them: hls, dash, concat and others that lead elsewhere.
CONTAINERS: Final = (
    "matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,ogg,wav,flac,mp3,aac,ac3,aiff,amr,avi,flv,asf,mpeg,"
    "mpegts,w64,caf,au,gsm,wv,ape"
)
LONGEST_RUN: Final = 3600.0  # seconds; four hours of speech take a minute or two
MOST_SAID: Final = 64 * 1024  # bytes of what ffmpeg says that are kept
_SAFELY: Final = ("-hide_banner", "-nostdin", "-protocol_whitelist", "file")


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
