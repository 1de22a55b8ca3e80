"""Moving everything between two stores of a test."""

from __future__ import annotations

from typing import Any, cast

from windrow.queue.copying import CopyStore
from windrow.services.copying import Copy, CopyReport


async def move(
    source: Any, target: Any, wait: float = 0.0, drains: bool = False, settle: float = 0.0
) -> CopyReport:
    """Groups move at once, unless told otherwise: most of them are as old as the test."""
    report = CopyReport("here", "there", False)
    copy = Copy(cast(CopyStore, source), cast(CopyStore, target), report, settle)
    await copy.run(wait, drains)
    return report
