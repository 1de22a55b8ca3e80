"""Sound in pieces of half a minute, cut where it is quiet, so that no word is cut in two.

However long a recording is, one piece of it is in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from windrow.errors import ConversionError
from windrow.ingest.audio.ffmpeg import ffmpeg_process, reading

SAMPLE_RATE: Final = 16_000
PIECE_SECONDS: Final = 30.0
CUT_SECONDS: Final = 8.0  # at the end of a piece, where a quiet place is looked for
FRAME: Final = SAMPLE_RATE // 50
# Of a sample between -1 and 1, in each 20 ms: below it nobody speaks. Noise of 16 bits is 3e-5.
QUIET: Final = 1e-3

Samples = NDArray[np.float32]


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
    """The sound of a recording from some second on. Raises ConversionError if it ends badly."""
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
            block = await _read(process.stdout, most - len(held))
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


async def _read(stream: asyncio.StreamReader, samples: int) -> Samples:
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
