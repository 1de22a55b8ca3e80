"""`Transcriber`: who turns speech into text, whether in this process or at a provider."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from windrow.ingest.transcribe.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Speech:
    """A recording of speech that was taken out of its container: see `ingest.audio`."""

    path: Path
    seconds: float
    uri: str | None = None  # where a provider can fetch it, if it was uploaded


class Transcriber(Protocol):
    @property
    def model(self) -> str:
        """Who it is, for people and for what was made by it."""
        ...

    @property
    def wants_upload(self) -> bool:
        """Whether speech must be OGG Opus at an address."""
        ...

    async def start(self, speech: Speech) -> str:
        """Begin; the id of what was begun. It may have to be paid for: ask once."""
        ...

    async def poll(self, operation: str, speech: Speech) -> Transcript | None:
        """What came of it; None: not yet. Asking costs nothing but time."""
        ...

    async def close(self) -> None: ...


async def open_transcriber() -> Transcriber:
    """The one of this machine. Raises MissingExtra."""
    from windrow.ingest.transcribe.local import LocalTranscriber

    return LocalTranscriber()
