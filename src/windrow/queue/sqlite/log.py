"""The file that SQLite writes commits to, its `-wal`, and who notices that it was written to.

Linux tells (inotify); elsewhere, and where it will not, the file's time and size are looked at.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import time
from typing import Final, Protocol

logger = logging.getLogger(__name__)

IN_MODIFY: Final = 0x2  # as in sys/inotify.h
NOTICES_BYTES: Final = 65536  # many; what is left of them is read the next time
LOOK_SECONDS: Final = 0.008


class Log(Protocol):
    def wait_for_write(self, seconds: float) -> bool:
        """Whether it was written to since last asked, or is within so many seconds."""

    def close(self) -> None: ...


def open_log(path: str) -> Log:
    if sys.platform == "linux":
        try:
            return ToldLog(path)
        except OSError as error:  # no more watches for this user, or a file system without them
            logger.debug("looking at %s instead of being told: %s", path, error)
    return WatchedLog(path)


class ToldLog:
    """A log whose writes the system tells of. Three calls of the C library: the packages that wrap
    them start a compiler or the linker to find it."""

    def __init__(self, path: str) -> None:
        self._told = _call("inotify_init1", os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _call("inotify_add_watch", self._told, os.fsencode(path), IN_MODIFY)
        except OSError:
            self.close()
            raise
        self._poll = select.poll()
        self._poll.register(self._told, select.POLLIN)

    def wait_for_write(self, seconds: float) -> bool:
        was_written = bool(self._poll.poll(seconds * 1000))
        if was_written:
            os.read(self._told, NOTICES_BYTES)
        return was_written

    def close(self) -> None:
        os.close(self._told)


def _call(name: str, *arguments: int | bytes) -> int:
    import ctypes  # not at the top: only who waits for jobs needs it

    returned: int = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return returned


class WatchedLog:
    """A log that is looked at every few milliseconds."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stamp = self._read_stamp()

    def wait_for_write(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not (was_written := self._has_changed()) and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        return was_written

    def close(self) -> None:
        """Nothing is held open."""

    def _has_changed(self) -> bool:
        former, self._stamp = self._stamp, self._read_stamp()
        return self._stamp != former

    def _read_stamp(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:  # nothing was written yet, or the log was removed
            return None
        return found.st_mtime_ns, found.st_size
