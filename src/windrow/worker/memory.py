"""A ceiling for the memory of a worker's process: above it the worker stops as if it were asked to,
and whoever started it starts a fresh one."""

from __future__ import annotations

import logging
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from windrow.logging import event
from windrow.worker.service import Service

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
_STATM: Final = Path("/proc/self/statm")


class MemoryGuard(Service):
    def __init__(self, ceiling: int, recycle: Callable[[], None]) -> None:
        super().__init__()
        self._ceiling = ceiling
        self._recycle = recycle

    async def run_once(self) -> float:
        used = memory_in_use()
        if used > self._ceiling:
            logger.warning(
                "this worker uses %d MiB of the %d it may: it stops and begins afresh",
                used >> 20,
                self._ceiling >> 20,
                extra=event("worker.recycled", used_bytes=used, max_bytes=self._ceiling),
            )
            self._recycle()
            self.stop()
        return LOOK_SECONDS


def memory_in_use() -> int:
    """Resident bytes of this process; where only the peak is known, that."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")
