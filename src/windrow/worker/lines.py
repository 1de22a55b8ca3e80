"""Lines: handlers that never wait for anything, run one after the other in one task.

A task of its own, with its context and two turns of the event loop, takes longer than a short
handler does. Nobody can tell the difference as long as nothing else runs in between: so a line goes
on with the next job until a handler waits for something. From then on the task is that handler's
alone, other jobs go on in another line, and handlers of that kind get tasks of their own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Any, Final

from windrow.worker.runs import Run

# How long a line may keep the event loop from everything else, give or take one handler.
LINE_SECONDS: Final = 0.005


class Line:
    """One task, and the job that it is at."""

    __slots__ = ("has_waited", "run")

    def __init__(self) -> None:
        self.run: Run | None = None
        self.has_waited = False


class Lines:
    """`take` gives the next job for a line, which has begun then; `call` runs it; `go_on` begins
    others while the job of a line waits; `over` is told when a line's last job has ended."""

    def __init__(
        self,
        take: Callable[[], Run | None],
        call: Callable[[Run, asyncio.Task[Any] | None], Awaitable[None]],
        go_on: Callable[[], None],
        over: Callable[[], None],
    ) -> None:
        self._take = take
        self._call = call
        self._go_on = go_on
        self._over = over
        self._context = copy_context()  # as it is before any handler
        self._open: Line | None = None
        self._waiting_kinds: set[str] = set()  # of which a handler was seen to wait

    @property
    def has_open(self) -> bool:
        """Whether there is a line that takes jobs."""
        return self._open is not None

    def takes(self, run: Run) -> bool:
        handler = run.handler
        return handler.run == "async" and handler.kind not in self._waiting_kinds

    def open(self) -> None:
        """Begin a line; it takes its first job when its turn comes."""
        self._open = line = Line()
        # The loop holds the task until it begins, then the run does.
        asyncio.create_task(self._run(line), context=self._context.copy())  # noqa: RUF006

    async def _run(self, line: Line) -> None:
        # Runs before this task does again, so only if a handler has waited.
        waited = asyncio.get_running_loop().call_soon(self._has_waited, line)
        task = asyncio.current_task()
        until = time.monotonic() + LINE_SECONDS
        try:
            while (run := self._take()) is not None:
                line.run = run
                await self._call(run, task)
                if line.has_waited or time.monotonic() > until or _is_marked(task, self._context):
                    break
        finally:
            waited.cancel()
            if self._open is line:
                self._open = None
            self._over()

    def _has_waited(self, line: Line) -> None:
        line.has_waited = True
        self._open = None
        if line.run is not None:
            self._waiting_kinds.add(line.run.handler.kind)
        self._go_on()


def _is_marked(task: asyncio.Task[Any] | None, context: Context) -> bool:
    """Whether a handler left something behind in its task that the next one would find there."""
    if task is None or task.cancelling():
        return True
    try:
        return copy_context() != context
    except Exception:  # values that cannot be compared: others than before
        return True
