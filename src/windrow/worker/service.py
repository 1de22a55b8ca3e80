"""The life-cycle every part of a worker shares: a loop that does a little and says how long to
wait.

A service does not end because of an error. It is restarted after 100, 200, 400 ms and so on up to
every few seconds, logs the first failure, and logs that it works again. While the database is away
that has no end. A service that keeps failing for another reason gives up after `give_up_seconds`,
and the worker stops.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from windrow.errors import StoreError, StoreReadOnly, WindrowError, WorkerBroken
from windrow.logging import event
from windrow.queue.bells import jittered
from windrow.queue.lease import safe_message

logger = logging.getLogger(__name__)

# Each wait is as long as all before it: an outage is over for us by twice its length at the latest.
FIRST_WAIT: Final = 0.1
LONGEST_WAIT: Final = 5.0
# Failures in a row, for another reason than an outage, after which people are told.
REPORTED_FAILURES: Final = 3


def is_outage(error: BaseException) -> bool:
    """Whether an error says that the database is away or does not take writes for now."""
    return isinstance(error, StoreError) and (error.transient or isinstance(error, StoreReadOnly))


def is_cancellation(error: BaseException) -> bool:
    """Whether the task we are in was cancelled. A `CancelledError` alone does not say that: what
    we called may have raised it."""
    task = asyncio.current_task()
    is_ours = task is not None and task.cancelling() > 0
    return is_ours and isinstance(error, asyncio.CancelledError)


class Trouble:
    """How long to wait while something does not work, and what to say of it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._count = 0
        self._faults = 0  # failures in a row that no outage explains
        self._faulty_since: float | None = None
        self._error: BaseException | None = None

    def wait(self, error: BaseException) -> float:
        """Seconds to wait before the next try."""
        if self._count == 0:
            if isinstance(error, StoreError):
                logger.warning(
                    "%s: trying again until it works: %s",
                    self._what,
                    error,
                    extra=event("service.failed", service=self._what, error=safe_message(error)),
                )
            else:
                logger.error(
                    "%s: unexpected, trying again",
                    self._what,
                    exc_info=error,
                    extra=event("service.failed", service=self._what, error=safe_message(error)),
                )
        self._note_fault(error)
        seconds = min(FIRST_WAIT * 2 ** min(self._count, 10), LONGEST_WAIT)
        self._count += 1
        return jittered(seconds)

    def over(self) -> None:
        if self._count:
            logger.warning(
                "%s: works again after %d tries",
                self._what,
                self._count,
                extra=event("service.recovered", service=self._what, tries=self._count),
            )
            self._count = self._faults = 0
            self._faulty_since = self._error = None

    @property
    def report(self) -> str | None:
        """What keeps failing, in a sentence; None while there is nothing to report."""
        if self._error is None or self._faults < REPORTED_FAILURES:
            return None
        return (
            f"its {self._what} failed {self._faults} times in a row: "
            f"{type(self._error).__name__}: {safe_message(self._error)}"
        )

    def is_hopeless(self, seconds: float) -> bool:
        """Whether it has kept failing for so long for a reason that does not end by itself."""
        if self._faulty_since is None or self._faults < REPORTED_FAILURES:
            return False
        return time.monotonic() - self._faulty_since >= seconds

    def _note_fault(self, error: BaseException) -> None:
        if is_outage(error):
            return
        self._faults += 1
        self._error = error
        is_passing = isinstance(error, WindrowError) and error.transient
        if not is_passing and self._faulty_since is None:
            self._faulty_since = time.monotonic()


class Service:
    """Something a worker does again and again until it is stopped."""

    give_up_seconds: float = 60.0

    def __init__(self) -> None:
        self.is_stopping = False
        self.has_worked = True  # else that `run_once` returned does not end a row of failures
        self._woken = asyncio.Event()
        self.trouble = Trouble(self.name)

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    async def run_once(self) -> float:
        """Do what there is to do now; the seconds to wait before the next time."""
        raise NotImplementedError

    async def run(self) -> None:
        """Until stopped. Raises WorkerBroken if it fails again and again."""
        while not self.is_stopping:
            self._woken.clear()
            try:
                seconds = await self.run_once()
                if self.has_worked:
                    self.trouble.over()
            except (Exception, asyncio.CancelledError, SystemExit) as error:
                if is_cancellation(error):
                    raise
                seconds = self.trouble.wait(error)
                if self.trouble.is_hopeless(self.give_up_seconds):
                    raise WorkerBroken(self.name, safe_message(error)) from error
            await self._sleep(seconds)

    def wake(self) -> None:
        """Do it now, or once more if it is being done."""
        self._woken.set()

    def stop(self) -> None:
        self.is_stopping = True
        self.wake()

    async def _sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
