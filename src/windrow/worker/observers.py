"""Those who look on while a worker works: metrics, traces, tests."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, assert_never

from windrow.logging import event
from windrow.queue.job import Job
from windrow.queue.lease import safe_traceback
from windrow.queue.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze

logger = logging.getLogger(__name__)

Call = Callable[[], Awaitable[Any]]


class Observer:
    """Override what you want to know. What an observer raises is logged and changes nothing."""

    def claimed(self, jobs: Sequence[Job]) -> None: ...

    def started(self, job: Job) -> None: ...

    def ended(self, job: Job, outcome: Outcome | None, seconds: float) -> None:
        """The handler has ended; no outcome: the job was lost to another worker."""

    def lost(self, job: Job) -> None:
        """An end was refused, because the lease was no longer ours."""

    def rescued(self, count: int) -> None: ...

    def pruned(self, count: int) -> None: ...

    async def around(self, job: Job, call: Call) -> Any:
        """Called instead of the handler of a single job; calls it and returns what it returned."""
        return await call()


def outcome_name(job: Job, outcome: Outcome | None) -> str:
    """How a run ended, in a word. The last retry a job has is a failure."""
    match outcome:
        case None:
            return "lost"
        case Done():
            return "done"
        case Retry():
            return "retry" if job.attempts + 1 < job.max_attempts else "fail"
        case Snooze():
            return "snooze"
        case Fail():
            return "fail"
        case Cancel():
            return "cancel"
        case _:
            assert_never(outcome)


class Observers:
    """All of a worker's observers as one."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = tuple(observers)
        self._around = [one for one in self._observers if type(one).around is not Observer.around]
        self.are_any = bool(self._observers)
        self.are_around = bool(self._around)

    def claimed(self, jobs: Sequence[Job]) -> None:
        self._tell("claimed", jobs)

    def started(self, job: Job) -> None:
        self._tell("started", job)

    def ended(self, job: Job, outcome: Outcome | None, seconds: float) -> None:
        self._tell("ended", job, outcome, seconds)

    def lost(self, job: Job) -> None:
        self._tell("lost", job)

    def rescued(self, count: int) -> None:
        self._tell("rescued", count)

    def pruned(self, count: int) -> None:
        self._tell("pruned", count)

    async def around(self, job: Job, call: Call) -> Any:
        for one in reversed(self._around):
            call = _wrapped(one, job, call)
        return await call()

    def _tell(self, what: str, *args: Any) -> None:
        for one in self._observers:
            try:
                getattr(one, what)(*args)
            except BaseException as error:  # else the end of the run would not be written
                logger.error(
                    "an observer failed at %r\n%s",
                    what,
                    safe_traceback(error),
                    extra=event("observer.failed", method=what),
                )


def _wrapped(observer: Observer, job: Job, call: Call) -> Call:
    return lambda: observer.around(job, call)
