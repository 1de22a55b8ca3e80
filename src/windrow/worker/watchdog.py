"""What watches a worker's process: `Watchdog` its event loop, `MemoryGuard` its memory.

A handler that blocks the loop holds up every other one, and the heartbeat with them: the stack of
the culprit is logged while it happens. Above the ceiling of its memory the worker stops as if it
were asked to, and whoever started it starts a fresh one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable
from itertools import dropwhile
from pathlib import Path
from types import FrameType
from typing import Final

from windrow.logging import event
from windrow.worker.service import Service

logger = logging.getLogger(__name__)

STALL_SECONDS: Final = 2.0
TICKS_PER_STALL: Final = 4
_LOOP: Final = asyncio.events.__file__
_WINDROW: Final = str(Path(__file__).parents[1])

LOOK_SECONDS: Final = 5.0
_STATM: Final = Path("/proc/self/statm")


class Watchdog:
    """A thread that watches the loop it was started in."""

    def __init__(self, stall_seconds: float = STALL_SECONDS) -> None:
        self._stall_seconds = stall_seconds
        self._ticked_at = time.monotonic()
        self._stopped = threading.Event()
        self._loop_thread = 0
        self._timer: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None
        self.stalls = 0

    def start(self) -> None:
        self._loop_thread = threading.get_ident()
        self._tick(asyncio.get_running_loop())
        self._thread = threading.Thread(target=self._watch, name="windrow-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ticked_at = time.monotonic()
        pause = self._stall_seconds / TICKS_PER_STALL
        self._timer = loop.call_later(pause, self._tick, loop)

    def _watch(self) -> None:
        reported_at = 0.0
        while not self._stopped.wait(self._stall_seconds / TICKS_PER_STALL):
            ticked_at = self._ticked_at
            still = time.monotonic() - ticked_at
            if still >= self._stall_seconds and ticked_at != reported_at:
                reported_at = ticked_at  # each stall is told once
                self._report(still)
                self.stalls += 1

    def _report(self, still: float) -> None:
        frame = sys._current_frames().get(self._loop_thread)
        stack = _stack_of_handler(frame) if frame else "(no stack)"
        logger.warning(
            "the event loop has stood still for %.1f s: a handler blocks it, and all others wait. "
            "Make it a plain function, which runs in a thread, or use run='process'. It is at:\n%s",
            still,
            stack,
            extra=event("loop.blocked", seconds=still),
        )


def _stack_of_handler(frame: FrameType) -> str:
    """What the loop called, without Windrow's own part before the handler."""
    frames = traceback.extract_stack(frame)
    begins = [at for at, one in enumerate(frames) if one.filename == _LOOP and one.name == "_run"]
    called = frames[begins[-1] + 1 :] if begins else frames
    own = list(dropwhile(lambda one: one.filename.startswith(_WINDROW), called))
    return "".join(traceback.format_list(own or called)).rstrip()


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
