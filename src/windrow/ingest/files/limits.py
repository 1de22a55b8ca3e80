"""How large a file may be to be read: generated data is large and says little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os.path import splitext
from typing import Final

MIB: Final = 1024 * 1024
DEFAULT: Final = 50 * MIB
BY_EXTENSION: Final[Mapping[str, int]] = {
    ".csv": 5 * MIB,
    ".tsv": 5 * MIB,
    ".json": 5 * MIB,
    ".jsonl": 5 * MIB,
    ".ndjson": 5 * MIB,
    ".xml": 5 * MIB,
    ".yaml": 5 * MIB,
    ".yml": 5 * MIB,
    ".sql": 5 * MIB,
    ".log": 5 * MIB,
    ".svg": MIB,
    ".lock": MIB,
    ".map": 0,  # of generated code: nothing a person wrote
    ".ipynb": 10 * MIB,
    ".js": 2 * MIB,
    ".css": 2 * MIB,
}


@dataclass(frozen=True, slots=True)
class SizeLimits:
    most: int = DEFAULT
    by_extension: Mapping[str, int] | None = None

    @classmethod
    def of(cls, most: int | None, by_extension: Mapping[str, int]) -> SizeLimits:
        """The usual ones but for these. A limit for all files holds for every extension."""
        named = {extension.lower(): size for extension, size in by_extension.items()}
        if most is not None:
            return cls(most, named)
        return cls(DEFAULT, {**BY_EXTENSION, **named})

    def of_name(self, name: str) -> int:
        by_extension = BY_EXTENSION if self.by_extension is None else self.by_extension
        return by_extension.get(splitext(name)[1].lower(), self.most)


def reason_too_large(size: int, most: int) -> str:
    return f"too large: {size} bytes, at most {most}"
