"""The jobs this worker has claimed and not yet finished, each a `Run`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from windrow.queue.job import Job
from windrow.worker.registry import Handler

# How long the lease of a run that has ended is renewed while its end cannot be written.
UNWRITTEN_SECONDS: Final = 120.0


class Stage(Enum):
    CLAIMED = "claimed"  # not begun
    RUNNING = "running"
    ENDED = "ended"  # has an outcome that is not written yet


class Stop(Enum):
    """Why a handler was stopped before its end."""

    LOST = "lost"  # the job is somebody else's
    ASKED = "asked"  # somebody cancelled or paused the job
    SHUTDOWN = "shutdown"


@dataclass(slots=True, eq=False)
class Run:
    job: Job
    handler: Handler
    stage: Stage = Stage.CLAIMED
    stop: Stop | None = None
    task: asyncio.Task[Any] | None = None  # what is cancelled to stop it
    began_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None  # since when its end waits to be written
    is_mute: bool = False  # what its handler writes of its failure cannot be written
    # As they were claimed: a handler can change its job, which must not affect other jobs.
    id: str = field(init=False)
    token: str = field(init=False)
    lease_seconds: int | None = field(init=False)
    limits: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.id = self.job.id
        self.token = self.job.lease_token or ""
        self.lease_seconds = self.job.lease_seconds
        self.limits = self.job.limits

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return (self.ended_at or time.monotonic()) - self.began_at


class Runs:
    """All of them. A job that was lost and claimed again by this same worker has two."""

    def __init__(self) -> None:
        self._runs: dict[Run, None] = {}
        self._latest: dict[str, Run] = {}
        self.begun = 0  # all there ever were
        self._left = asyncio.Event()  # one of them was removed
        self.noticed_by: Callable[[Run], None] = lambda run: None  # of those that are added

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, run: Run) -> bool:
        return run in self._runs

    def __iter__(self) -> Iterator[Run]:
        return iter(list(self._runs))

    def add(self, run: Run) -> Run | None:
        """Returns the former run of the same job, if there is one: it has lost the job."""
        former = self._latest.get(run.id)
        self._latest[run.id] = run
        self._runs[run] = None
        self.begun += 1
        self.noticed_by(run)
        return former

    def remove(self, run: Run) -> None:
        """The run is over: its end is written, or it is no longer ours."""
        self._runs.pop(run, None)
        if self._latest.get(run.id) is run:
            del self._latest[run.id]
        self._left.set()

    def is_superseded(self, run: Run) -> bool:
        """Whether the job is not this run's any more, by what this worker itself has claimed."""
        return self._latest.get(run.id) is not run

    def tokens(self) -> list[str]:
        """The leases to renew. One is left to lapse if the ends of all its runs could not be
        written for `UNWRITTEN_SECONDS`: their jobs are then claimed by somebody else."""
        too_late = time.monotonic() - UNWRITTEN_SECONDS
        return sorted(
            {
                run.token
                for run in self._runs
                if run.token and (run.ended_at is None or run.ended_at > too_late)
            }
        )

    def running(self) -> int:
        return sum(1 for run in self._runs if run.stage is Stage.RUNNING)

    async def wait_for_at_most(self, count: int) -> None:
        """Wait until no more than so many are left."""
        while len(self._runs) > count:
            self._left.clear()
            await self._left.wait()
