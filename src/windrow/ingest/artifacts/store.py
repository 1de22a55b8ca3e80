"""`Artifacts`: files by their keys. One appears whole or not at all, and the first one stays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Protocol

_PART: Final = re.compile(r"[A-Za-z0-9@_=+-][A-Za-z0-9.@_=+-]{0,199}")


class Artifacts(Protocol):
    async def put(self, key: str, path: Path) -> bool:
        """Keep the content of a file under a key; False: there was one already, which stays."""
        ...

    async def get(self, key: str, path: Path) -> None:
        """Write what is kept to a file. Raises FileGone."""
        ...

    async def size(self, key: str) -> int | None:
        """How large it is; None: it is not there."""
        ...

    async def remove(self, key: str) -> None:
        """What is not there is removed already."""
        ...

    def address(self, key: str) -> str | None:
        """Where others can fetch it who may; None: nobody can."""
        ...

    async def close(self) -> None: ...


def check_key(key: str) -> str:
    """A key is a path of plain names: it cannot lead out of where it belongs."""
    if not all(_PART.fullmatch(part) for part in key.split("/")) or len(key) > 500:
        raise ValueError(f"{key!r} is not the key of an artifact")
    return key
