"""Handlers that never wait share a task, and cannot tell; one that waits has a task to itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from windrow import Job, handler
from windrow.queue.job import JobState
from windrow.queue.outcome import Done, Fail, Outcome, Snooze
from windrow.queue.store import Store
from windrow.worker import lines
from windrow.worker.executor import Executor
from windrow.worker.observers import Observers
from windrow.worker.registry import Handler, by_kind
from windrow.worker.runs import Run, Runs, Stop

NOW = datetime.now(UTC)
MARK: ContextVar[str] = ContextVar("MARK", default="")


class Ran:
    """Jobs run by an executor of their own; outcomes are kept, nothing is written."""

    def __init__(self, *handlers: Handler, concurrency: int = 10) -> None:
        self.runs = Runs()
        self.outcomes: dict[str, Outcome | None] = {}
        self._all = asyncio.Event()
        self._wanted = 0
        self.executor = Executor(
            cast(Store, None),  # none of these handlers needs one
            by_kind(handlers),
            concurrency,
            self.runs,
            self._ended,
            Observers(),
        )

    def take(self, *kinds: str) -> None:
        first = self._wanted
        self._wanted += len(kinds)
        jobs = [new_job(str(first + place), kind) for place, kind in enumerate(kinds)]
        self.executor.take(jobs)

    def stop(self, job_id: str, why: Stop) -> None:
        [run] = [run for run in self.runs if run.job.id == job_id]
        self.executor.stop(run, why)

    async def all(self) -> list[Outcome | None]:
        async with asyncio.timeout(10):
            await self._all.wait()
        return [self.outcomes[str(place)] for place in range(self._wanted)]

    def _ended(self, run: Run, outcome: Outcome | None) -> None:
        self.runs.remove(run)
        self.outcomes[run.job.id] = outcome
        if len(self.outcomes) == self._wanted:
            self._all.set()


def new_job(job_id: str, kind: str) -> Job:
    return Job(job_id, 1, "q", kind, JobState.ACTIVE, 5, 0, 0, 1, 5, 5, NOW, NOW)


def noting(tasks: list[Any], also: Callable[[], Any] = lambda: None) -> Handler:
    @handler("quick")
    async def quick(job: Job) -> Any:
        tasks.append(asyncio.current_task())
        return also()

    return quick


async def test_handlers_that_never_wait_share_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_SECONDS", 60.0)  # however slow the machine is
    tasks: list[Any] = []
    ran = Ran(noting(tasks))
    ran.take(*["quick"] * 5)
    assert await ran.all() == [Done()] * 5
    assert len(set(map(id, tasks))) == 1


async def test_a_handler_that_waits_holds_up_nobody_and_has_its_task_to_itself() -> None:
    tasks: list[Any] = []
    go_on = asyncio.Event()

    @handler("slow")
    async def slow(job: Job) -> None:
        tasks.append(asyncio.current_task())
        await go_on.wait()

    ran = Ran(noting(tasks), slow)
    ran.take("slow", "quick", "slow", "quick")
    while len(tasks) < 4:
        await asyncio.sleep(0)
    go_on.set()
    assert await ran.all() == [Done()] * 4
    assert len(set(map(id, tasks[:3]))) == 3  # slow, quick beside it, slow


async def test_no_more_handlers_wait_at_once_than_there_are_places() -> None:
    waiting = most = 0

    @handler("slow")
    async def slow(job: Job) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0)
        waiting -= 1

    ran = Ran(slow, concurrency=3)
    ran.take(*["slow"] * 10)
    await ran.all()
    assert most == 3


async def test_what_a_handler_sets_in_its_context_is_not_seen_by_the_next() -> None:
    seen: list[str] = []

    def look() -> None:
        seen.append(MARK.get())
        MARK.set("left behind")

    ran = Ran(noting([], look))
    ran.take("quick", "quick", "quick")
    await ran.all()
    assert seen == ["", "", ""]


async def test_a_handler_that_cancels_its_task_does_not_cancel_the_next_one() -> None:
    def cancel() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    ran = Ran(noting([], cancel))
    ran.take("quick", "quick")
    assert await ran.all() == [Done(), Done()]


async def test_an_error_ends_its_own_job_only() -> None:
    failures = iter([ValueError("bad"), asyncio.CancelledError()])

    def fail_at_first() -> None:
        if error := next(failures, None):
            raise error

    ran = Ran(noting([], fail_at_first))
    ran.take("quick", "quick", "quick")
    first, second, third = await ran.all()
    assert "bad" in str(first)
    assert isinstance(second, Fail)
    assert third == Done()


async def test_a_job_that_waits_in_a_line_can_be_stopped() -> None:
    begun = asyncio.Event()

    @handler("slow")
    async def slow(job: Job) -> None:
        begun.set()
        await asyncio.Event().wait()

    ran = Ran(noting([]), slow)
    ran.take("quick", "slow", "quick")
    await begun.wait()
    ran.stop("1", Stop.SHUTDOWN)
    assert await ran.all() == [Done(), Snooze(0), Done()]


async def test_a_line_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_SECONDS", 0.0)
    order: list[str] = []

    def ask_for_a_turn() -> None:
        asyncio.get_running_loop().call_soon(order.append, "another")
        order.append("job")

    ran = Ran(noting([], ask_for_a_turn))
    ran.take("quick", "quick")
    await ran.all()
    assert order[:3] == ["job", "another", "job"]
