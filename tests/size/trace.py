"""The files of Windrow that run while a job is enqueued, and in a job's whole life.

A profile function notes the file of every call, in all threads that start while it is set: the
writer of SQLite and the threads of executors among them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tests.size.source import SOURCE
from windrow import Queue, Worker, handler

Trace = Callable[[str], Coroutine[Any, Any, list[str]]]

SETTLE_SECONDS = 0.1  # for what a thread still does after it has answered
UPKEEP_SECONDS = 1.0  # until each service of a worker has had its first round


class Tracer:
    """Notes files in which a function is called while `noting`."""

    def __init__(self) -> None:
        self._files: set[str] | None = None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Threads are traced that start in here."""
        before = sys.getprofile()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)

    @contextmanager
    def noting(self) -> Iterator[set[str]]:
        files: set[str] = set()
        self._files = files
        try:
            yield files
        finally:
            self._files = None

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        files = self._files
        if files is not None and event == "call":
            files.add(frame.f_code.co_filename)


@handler("size.noop")
async def do_nothing(job: Any) -> None:
    """A job with nothing of its own to trace."""


async def trace_enqueue(url: str) -> list[str]:
    """Files that the second `enqueue` of a queue runs through; the first one warms caches."""
    tracer = Tracer()
    with tracer.installed():
        async with Queue.open(url, migrate=True) as queue:
            await queue.enqueue("size.noop", {"number": 1})
            await asyncio.sleep(SETTLE_SECONDS)
            with tracer.noting() as files:
                await queue.enqueue("size.noop", {"number": 2})
    return _own(files)


async def trace_life(url: str) -> list[str]:
    """Files of one job's life: enqueued, claimed, run and completed by a worker, whose services
    all have their first rounds before it stops. A busy machine may show fewer, a retry or a
    stall a few more."""
    tracer = Tracer()
    with tracer.installed():
        async with Queue.open(url, migrate=True) as queue:
            await asyncio.sleep(SETTLE_SECONDS)
            with tracer.noting() as files:
                worker = Worker(queue, [do_nothing])
                running = asyncio.create_task(worker.run())
                job = await queue.enqueue("size.noop", {"number": 1})
                await queue.wait(job.id)
                await asyncio.sleep(UPKEEP_SECONDS)
                worker.stop()
                await running
    return _own(files)


def _own(files: set[str]) -> list[str]:
    prefix = f"{SOURCE}/"
    return sorted(name.removeprefix(prefix) for name in files if name.startswith(prefix))
