"""From speech to text: a `Transcriber` makes a `Transcript`, lines with their times and speakers.

It is asked twice: `start` begins, `poll` fetches the transcript. In between nobody needs to wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from windrow.settings import Settings


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    start: float  # seconds
    end: float
    text: str
    speaker: str = ""  # empty: nobody knows


class Transcript(msgspec.Struct, frozen=True, omit_defaults=True):
    lines: tuple[Line, ...] = ()
    model: str = ""
    language: str = ""

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @property
    def is_empty(self) -> bool:
        """Whether nobody said anything."""
        return not self.text.strip()

    def talk_seconds(self) -> dict[str, float]:
        """For how long each of the speakers talked; under the empty name, those nobody knows."""
        seconds: dict[str, float] = {}
        for line in self.lines:
            seconds[line.speaker] = seconds.get(line.speaker, 0.0) + max(0.0, line.end - line.start)
        return {speaker: round(total, 2) for speaker, total in seconds.items()}

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, body: bytes) -> Transcript:
        return msgspec.json.decode(body, type=Transcript)


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
