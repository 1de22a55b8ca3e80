"""Handlers that do what a seed says: how long they take, what they write and return or raise."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from tests.trust.ledger import Ledger, Run
from tests.trust.simulated_process import Link
from tests.trust.world import ROWS
from windrow.errors import InvalidJob, LeaseLost, RateLimited, StoreError
from windrow.ids import new_id
from windrow.queue.job import Job, NewJob
from windrow.queue.outcome import Cancel, Done, Fail, Retry, Snooze
from windrow.worker.registry import Handler, handler

LEASES: Final = {"simulated-slow": 20, "simulated-short": 2, "simulated-timed": 5}
DURATIONS: Final = {
    "simulated-quick": (0.0, 0.0, 0.0, 0.02, 0.3, 2.0),
    "simulated-slow": (1.0, 5.0, 12.0, 25.0),
    "simulated-short": (0.0, 0.5, 3.0, 9.0),
    "simulated-timed": (0.0, 1.0, 6.0),
    "simulated-batch": (0.0, 0.1, 2.0),
}
SERVED: Final = tuple(DURATIONS)
UNSERVED: Final = "simulated-nobody"  # has no handler
PARKED_SECONDS: Final = 3.0


@dataclass(slots=True)
class Play:
    """What handlers have to know of the process they run in."""

    seed: int
    link: Link
    ledger: Ledger
    is_closing: Callable[[], bool]


PLAY: Final[ContextVar[Play]] = ContextVar("play")  # of the process that runs the handler


class Unspeakable(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no words")


class Speechless(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]


# What somebody returns who has not read the documentation.
WRONG: Final[Sequence[Callable[[], Any]]] = (
    lambda: Fail(404),  # type: ignore[arg-type]
    lambda: Retry(5),  # type: ignore[arg-type]
    lambda: Retry("later", after="soon"),  # type: ignore[arg-type]
    lambda: Cancel(None),  # type: ignore[arg-type]
    lambda: Cancel(5),  # type: ignore[arg-type]
    lambda: Snooze(None),  # type: ignore[arg-type]
    lambda: Snooze(float("nan")),
    lambda: Done(then=NewJob("simulated-quick")),  # type: ignore[arg-type]
    lambda: Done(then=["x"]),  # type: ignore[list-item]
    lambda: Done({1, object()}),
    object,
)
ERRORS: Final[Sequence[Callable[[], BaseException]]] = (
    lambda: ValueError("no such thing"),
    lambda: ConnectionError("gone"),
    lambda: InvalidJob("never"),
    Unspeakable,
    Speechless,
)


async def act(job: Job) -> Any:
    """One run."""
    play = PLAY.get()
    fate = random.Random(f"{play.seed} {job.payload} {job.runs}")
    with _inside(play, job) as run:
        seconds = fate.choice(DURATIONS[job.kind])
        seconds = min(seconds, 1.0) if play.is_closing() else seconds
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            run.told_at = play.ledger.now
            if fate.random() < 0.9:
                raise
            await asyncio.sleep(1.0)  # it goes on for a while
        if fate.random() < 0.3:
            await _write(play, run)
        return _outcome(play, job, fate)


async def act_together(jobs: Sequence[Job]) -> list[Any]:
    play = PLAY.get()
    fate = random.Random(f"{play.seed} {jobs[0].payload} {jobs[0].runs}")
    with ExitStack() as stack:
        for job in jobs:
            stack.enter_context(_inside(play, job))
        await asyncio.sleep(fate.choice(DURATIONS["simulated-batch"]))
        outcomes = [_outcome(play, job, fate) for job in jobs]
        return outcomes if fate.random() < 0.9 else outcomes[:-1]


@contextmanager
def _inside(play: Play, job: Job) -> Iterator[Run]:
    """Between entering the handler and leaving it, as the ledger is to know it."""
    ledger, run = play.ledger, play.ledger.run_of(job)
    if not run.host.is_dead:
        run.started_at = run.started_at or ledger.now
        ledger.write(run, "started")
    try:
        yield run
    finally:
        if not run.host.is_dead:
            run.left_at = ledger.now
            ledger.write(run, "ended")


async def _write(play: Play, run: Run) -> None:
    job = run.job
    try:
        await job.tx.execute(f"INSERT INTO {ROWS} (job) VALUES ($1)", job.id)
    except (StoreError, LeaseLost):
        return
    if not run.host.is_dead:
        play.ledger.write(run, "written")


def _outcome(play: Play, job: Job, fate: random.Random) -> Any:
    if play.is_closing():
        return None
    draw = fate.random()
    if draw < 0.55:
        return fate.choice((None, {"run": job.runs}, "text"))
    if draw < 0.62:
        return Done(then=[NewJob("simulated-quick", f"{job.payload}+", id=new_id())])
    if draw < 0.70:
        return Retry("not yet", after=fate.choice((None, 0, 2)))
    if draw < 0.78:
        return Snooze(fate.choice((0, 0, 1, 5)))
    if draw < 0.82:
        return fate.choice((Fail("never"), Cancel("not wanted")))
    if draw < 0.88:
        return fate.choice(WRONG)()
    if draw < 0.92 and job.limits:
        play.ledger.parked[job.limits[0]] = play.ledger.now + PARKED_SECONDS + 1
        raise RateLimited(job.limits[0], PARKED_SECONDS)
    raise fate.choice(ERRORS)()


def more_after_failure(job: Job, why: str) -> list[NewJob]:
    return [NewJob("simulated-quick", f"{job.payload}!", id=new_id())]


HANDLERS: Final[dict[str, Handler]] = {
    "simulated-quick": handler("simulated-quick", backoff=1)(act),
    "simulated-slow": handler("simulated-slow", lease=20, backoff=1, on_failure=more_after_failure)(
        act
    ),
    "simulated-short": handler("simulated-short", lease=2, backoff=1)(act),
    "simulated-timed": handler("simulated-timed", lease=5, timeout=3, backoff=1)(act),
    "simulated-batch": handler("simulated-batch", batch=3, batch_wait=0.2, backoff=1)(act_together),
}
