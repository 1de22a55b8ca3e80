"""What was said: lines with their times, and who said them where that is known."""

from __future__ import annotations

import msgspec


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
