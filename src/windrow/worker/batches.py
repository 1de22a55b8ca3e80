"""Batch handlers: jobs of a kind are collected and run in one call.

A batch that blows up as a whole is halved until the job is found that does it. A transient error
says nothing about a job: then all of them are tried again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from windrow.errors import PayloadMismatch, WindrowError
from windrow.queue.outcome import Outcome
from windrow.worker.classify import to_outcome, with_backoff
from windrow.worker.registry import Handler
from windrow.worker.runs import Run
from windrow.worker.service import is_cancellation

Call = Callable[[Sequence[Run]], Awaitable[Any]]
OnError = Callable[[BaseException, Run], Awaitable[Outcome]]


class Batches:
    """Jobs that wait for their batch to become full, or for its time to be up."""

    def __init__(self, handlers: Iterable[Handler], start: Callable[[Sequence[Run]], None]) -> None:
        batched = [handler for handler in handlers if handler.is_batch]
        self.capacity = sum(handler.batch for handler in batched)
        self._start = start
        self._waiting: dict[str, deque[Run]] = {handler.kind: deque() for handler in batched}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def add(self, run: Run) -> None:
        line = self._waiting[run.handler.kind]
        line.append(run)
        if len(line) >= run.handler.batch:
            self._flush(run.handler)
        elif run.handler.batch_wait and run.handler.kind not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[run.handler.kind] = loop.call_later(
                run.handler.batch_wait, self._flush, run.handler
            )

    def flush_due(self) -> None:
        """Start the batches that wait for nothing."""
        for line in self._waiting.values():
            if line and not line[0].handler.batch_wait:
                self._flush(line[0].handler)

    def discard(self, run: Run) -> None:
        line = self._waiting.get(run.handler.kind)
        if line and run in line:
            line.remove(run)

    def take_all(self) -> list[Run]:
        taken = [run for line in self._waiting.values() for run in line]
        for line in self._waiting.values():
            line.clear()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        return taken

    def _flush(self, handler: Handler) -> None:
        if timer := self._timers.pop(handler.kind, None):
            timer.cancel()
        line = self._waiting[handler.kind]
        while line:
            self._start([line.popleft() for _ in range(min(handler.batch, len(line)))])


async def run_batch(runs: Sequence[Run], call: Call, on_error: OnError) -> list[Outcome]:
    """An outcome for each run, in order."""
    try:
        value = await call(runs)
    except BaseException as error:
        if is_cancellation(error):
            raise
        if len(runs) == 1 or _is_transient(error):
            return [await on_error(error, run) for run in runs]
        half = len(runs) // 2
        first = await run_batch(runs[:half], call, on_error)
        return first + await run_batch(runs[half:], call, on_error)
    try:
        values = _each(value, len(runs))
    except BaseException as error:
        return [await on_error(error, run) for run in runs]
    pairs = zip(values, runs, strict=True)
    return [await _outcome_of(value, run, on_error) for value, run in pairs]


async def _outcome_of(value: Any, run: Run, on_error: OnError) -> Outcome:
    """The outcome of one job of a batch; a wrong one fails that job and no other."""
    try:
        return with_backoff(to_outcome(value), run.job, run.handler)
    except BaseException as error:  # of a user's back-off, which may raise anything
        return await on_error(error, run)


def _each(value: Any, count: int) -> Sequence[Any]:
    """What a batch handler returned, job by job; nothing means that all are done."""
    if value is None:
        return [None] * count
    if not isinstance(value, list | tuple) or len(value) != count:
        raise PayloadMismatch(
            "batch", "answer", f"a batch handler returns None or a list of {count} outcomes"
        )
    return value


def _is_transient(error: BaseException) -> bool:
    try:
        known = isinstance(error, WindrowError) and error.transient
        return bool(known) or isinstance(error, ConnectionError | TimeoutError)
    except BaseException:  # the error's class is a user's, and `transient` may be a property
        return False
