"""The kinds of jobs of the index, and what is in them.

All of them are on one queue, which only a worker takes jobs from that has the index open.
"""

from __future__ import annotations

from typing import Final

import msgspec

QUEUE: Final = "index"
WRITE: Final = "index.write"
TIDY: Final = "index.tidy"
BUILD: Final = "index.build"
SWITCH: Final = "index.switch"


class WritePayload(msgspec.Struct, frozen=True):
    """A content that documents wait for, or whose documents are called something else now."""

    content: str


class BuildPayload(msgspec.Struct, frozen=True):
    """Contents that are to be written into the generation of a collection that is being built."""

    collection: str
    generation: int
    contents: tuple[str, ...]
    tenant: str | None = None


class SwitchPayload(msgspec.Struct, frozen=True):
    """A generation of a collection of which everything is written."""

    collection: str
    generation: int
    tenant: str | None = None
