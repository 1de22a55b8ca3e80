"""Says when the event loop stands still: a handler that blocks it holds up every other one, and
the heartbeat with them. The stack of the culprit is logged while it happens."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from itertools import dropwhile
from pathlib import Path
from types import FrameType
from typing import Final

from windrow.logging import event

logger = logging.getLogger(__name__)

STALL_SECONDS: Final = 2.0
TICKS_PER_STALL: Final = 4
_LOOP: Final = asyncio.events.__file__
_WINDROW: Final = str(Path(__file__).parents[1])


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
