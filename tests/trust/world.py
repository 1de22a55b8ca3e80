"""What the actors of a simulation share: the one source of chance, the clock, the history, and what
they know of each other's jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.trust.history import Entry, History
from windrow.clock import FakeClock
from windrow.errors import (
    DuplicateJob,
    GroupEnded,
    GroupNotFound,
    IllegalTransition,
    InvalidJob,
    JobNotFound,
    LeaseLost,
    QueueFull,
    StoreConflict,
    StoreUnavailable,
)
from windrow.queue.job import FINAL, Job
from windrow.queue.queue import Queue
from windrow.queue.retaining import Upkeep

LIMITS: Final = {"host:a": 1, "host:b": 2}
KEYS: Final = ("customer-1", "customer-2")
QUEUES: Final = ("default", "other")
LINE: Final = "line"  # the queue in which the order is promised, so nobody meddles with it
BOUNDED: Final = "bounded"
ROWS: Final = "simulated_rows"
LEASE_SECONDS: Final = 10
# What may come of a race, or of a fault. Anything else is a fault of the queue, or of an actor.
REFUSALS: Final = (
    DuplicateJob,
    GroupEnded,
    GroupNotFound,
    IllegalTransition,
    InvalidJob,
    JobNotFound,
    LeaseLost,
    QueueFull,
    StoreConflict,
    StoreUnavailable,
)


@dataclass(slots=True)
class World:
    """What all actors share."""

    chance: Random
    clock: FakeClock
    entries: list[Entry]
    jobs: list[str] = field(default_factory=list)  # that somebody may meddle with
    groups: dict[str, bool] = field(default_factory=dict)  # whether they have a finish job
    steps: dict[str, int] = field(default_factory=dict)  # what jobs got of theirs
    wrong: list[str] = field(default_factory=list)  # what somebody saw that cannot be
    is_closing: bool = False

    def history(self, by: str) -> History:
        return History(self.entries, by, lambda: self.clock.now().timestamp())

    def happens(self, share: float) -> bool:
        return self.chance.random() < share


class Part:
    """An actor's view: its queue and its history."""

    def __init__(self, world: World, name: str, store: Any) -> None:
        self.world = world
        self.chance = world.chance
        self.history = world.history(name)
        self.queue = Queue(store, upkeep=Upkeep(archive_dir=self._archive))  # type: ignore[arg-type]

    def _archive(self, jobs: Sequence[Job]) -> None:
        """What is about to be pruned. A live job has no business here, and will be missed."""
        for job in jobs:
            if job.state in FINAL:
                self.history.write("removed", job.id)


async def tried(act: Callable[[], Awaitable[Any]]) -> Any:
    """What the queue refuses, or cannot do now, is no reason to stop."""
    try:
        return await act()
    except REFUSALS:
        return None
