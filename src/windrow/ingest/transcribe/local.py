"""`LocalTranscriber`: a small model for English that runs here and needs no key (extra `audio`).

The pin of `moonshine-voice` is exact: later releases come without the model.
"""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from pathlib import Path
from typing import Any, Final

from windrow.errors import MissingExtra
from windrow.ingest.audio import SAMPLE_RATE, Piece, read_pieces
from windrow.ingest.transcribe import Line, Quota, Speech, Transcript

MODEL: Final = "moonshine-tiny-en"
LANGUAGE: Final = "en"
OPERATION: Final = "local"
# Speech that is shorter is none: what begins a compressed file is taken for a word now and then.
SHORTEST_LINE: Final = 0.15


class LocalTranscriber:
    """`await LocalTranscriber().transcribe(path)`; the model is loaded with the first word."""

    model = MODEL
    wants_upload = False
    quotas: tuple[Quota, ...] = ()
    seconds_per_second = 0.0
    poll_seconds = 0.0

    def __init__(self) -> None:
        if importlib.util.find_spec("moonshine_voice") is None:
            raise MissingExtra("audio", "speech to text on this machine")
        self._recogniser: Any = None
        # One at a time: a run uses all processors anyway.
        self._lock = threading.Lock()

    async def start(self, speech: Speech) -> str:
        """Nothing is begun: the work is done by whoever asks for the result."""
        return OPERATION

    async def poll(self, operation: str, speech: Speech) -> Transcript:
        """It is never too early to ask."""
        lines: list[Line] = []
        async for piece in read_pieces(speech.path):
            lines += await self.transcribe_piece(piece)
            await speech.heard(piece.start + piece.seconds)
        return Transcript(tuple(lines), MODEL, LANGUAGE)

    async def transcribe(self, path: Path) -> Transcript:
        """What is said in a recording, whatever its container. Silence becomes no lines."""
        return await self.poll(OPERATION, Speech(path, 0.0))

    async def transcribe_piece(self, piece: Piece) -> list[Line]:
        # Asked about nothing, a model makes something up.
        return [] if piece.is_silent else await asyncio.to_thread(self._recognise, piece)

    async def close(self) -> None:
        if self._recogniser is not None:
            await asyncio.to_thread(self._recogniser.close)
            self._recogniser = None

    def _recognise(self, piece: Piece) -> list[Line]:
        with self._lock:
            found = self._load().transcribe_without_streaming(piece.samples.tolist(), SAMPLE_RATE)
        return [
            Line(
                start=round(piece.start + line.start_time, 2),
                end=round(piece.start + line.start_time + line.duration, 2),
                text=line.text.strip(),
            )
            for line in found.lines
            if line.text.strip() and line.duration >= SHORTEST_LINE
        ]

    def _load(self) -> Any:
        if self._recogniser is None:
            from moonshine_voice.moonshine_api import ModelArch
            from moonshine_voice.transcriber import Transcriber
            from moonshine_voice.utils import get_model_path

            self._recogniser = Transcriber(get_model_path("tiny-en"), ModelArch.TINY)
        return self._recogniser
