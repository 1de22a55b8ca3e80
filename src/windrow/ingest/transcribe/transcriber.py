"""`Transcriber`: who turns speech into text, whether in this process or at a provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from windrow.ingest.transcribe.transcript import Transcript
from windrow.settings import Settings


async def _unheard(seconds: float) -> None:
    """Nobody wants to know how far it is."""


@dataclass(frozen=True, slots=True)
class Speech:
    """A recording of speech that was taken out of its container: see `ingest.audio`."""

    path: Path
    seconds: float
    uri: str | None = None  # where a provider can fetch it, if it was uploaded
    heard: Callable[[float], Awaitable[None]] = _unheard  # told so many seconds, now and again


@dataclass(frozen=True, slots=True)
class Quota:
    """How often a provider may be asked; `key` is the limit that keeps to it."""

    key: str
    per_hour: int


class Transcriber(Protocol):
    @property
    def model(self) -> str:
        """Who it is, for people and for what was made by it."""
        ...

    @property
    def wants_upload(self) -> bool:
        """Whether speech must be OGG Opus at an address. Else it is read from a file."""
        ...

    @property
    def quotas(self) -> tuple[Quota, ...]:
        """How often it may be started, and how often it may be polled; none: as often as one
        likes."""
        ...

    @property
    def seconds_per_second(self) -> float:
        """How long it takes for each second of speech once it was started: nobody asks sooner."""
        ...

    @property
    def poll_seconds(self) -> float:
        """How long it is left alone between two polls, at least."""
        ...

    async def start(self, speech: Speech) -> str:
        """Begin; the id of what was begun. It may have to be paid for: ask once."""
        ...

    async def poll(self, operation: str, speech: Speech) -> Transcript | None:
        """What came of it; None: not yet. Asking costs nothing but time."""
        ...

    async def close(self) -> None: ...


def open_transcriber(settings: Settings) -> Transcriber:
    """The one that the settings name, else that of this machine. Raises MissingExtra and
    ConfigError."""
    if _is_remote(settings):
        from windrow.ingest.transcribe.speechkit import SpeechKit

        return SpeechKit.from_settings(settings)
    from windrow.ingest.transcribe.local import LocalTranscriber

    return LocalTranscriber()


def find_quotas(settings: Settings) -> tuple[Quota, ...]:
    """Those of the one that the settings name, without opening it."""
    if not _is_remote(settings):
        return ()
    from windrow.ingest.transcribe.speechkit import SpeechKit

    return SpeechKit.quotas


def _is_remote(settings: Settings) -> bool:
    return bool(settings.speechkit_key or settings.speechkit_account)
