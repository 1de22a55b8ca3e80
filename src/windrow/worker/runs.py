"""The jobs this worker has claimed and not yet finished, each a `Run`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from windrow.queue.job import Job
from windrow.worker.registry import Handler


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
    is_mute: bool = False  # what its handler writes of its failure cannot be written

    @property
    def token(self) -> str:
        return self.job.lease_token or ""


class Runs:
    """All of them. A job that was lost and claimed again by this same worker has two."""

    def __init__(self) -> None:
        self._runs: dict[Run, None] = {}
        self._latest: dict[str, Run] = {}
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
        former = self._latest.get(run.job.id)
        self._latest[run.job.id] = run
        self._runs[run] = None
        self.noticed_by(run)
        return former

    def remove(self, run: Run) -> None:
        """The run is over: its end is written, or it is no longer ours."""
        self._runs.pop(run, None)
        if self._latest.get(run.job.id) is run:
            del self._latest[run.job.id]
        self._left.set()

    def is_superseded(self, run: Run) -> bool:
        """Whether the job is not this run's any more, by what this worker itself has claimed."""
        return self._latest.get(run.job.id) is not run

    def tokens(self) -> list[str]:
        return sorted({run.token for run in self._runs})

    def running(self) -> int:
        return sum(1 for run in self._runs if run.stage is Stage.RUNNING)

    async def wait_for_at_most(self, count: int) -> None:
        """Wait until no more than so many are left."""
        while len(self._runs) > count:
            self._left.clear()
            await self._left.wait()
