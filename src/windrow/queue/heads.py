"""`Heads`: which of very many queues have the best first jobs, without a look into every queue.

Each queue has a place before which it has no job left. That is a lower bound: its first job may lie
further on, never before. So the best jobs of all queues are in the queues with the best places.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable
from typing import Final

# A claim of more queues than this looks at those with the best first jobs.
MANY_QUEUES: Final = 64
# For how long a listing of the queues is used, at least.
LISTING_SECONDS: Final = 0.05
# To list very many queues takes long: a listing is used for so many times the time that it took.
LISTING_SHARE: Final = 20
LEAST_WIDTH: Final = 8  # queues that a claim looks at first
MOST_FILTERS: Final = 16

# Sorted by this, jobs are best first: minus the priority, then the place in the line.
Place = tuple[int, int]
BEFORE_ALL: Final[Place] = (-(2**31), -1)

# The kinds and the tenants that a claim wants; None: any.
Wanted = tuple[tuple[str, ...] | None, tuple[str, ...] | None]


class Heads:
    """The queues that had jobs when they were listed, each with its place. A claim takes some,
    looks into them, and gives them back with what it found."""

    def __init__(self) -> None:
        self._heap: list[tuple[Place, str]] = []
        self._deep: dict[str, Place] = {}
        self._taken: dict[str, Place] = {}
        self._listed = 0
        self._good_until = 0.0
        self.width = LEAST_WIDTH

    def relist(
        self,
        places: Iterable[tuple[str, int | None, int | None]],
        took: float,
        *,
        with_taken: bool = False,
    ) -> None:
        """Begin with a new listing: queue, priority and place of its first job, or None if it has
        none that is wanted. It took so many seconds. Queues that claims are looking at come back
        with these, or `with_taken` at once."""
        if with_taken:
            self._taken.clear()
        listed, self._listed = {}, 0
        for queue, priority, place in places:
            self._listed += 1
            if priority is not None and place is not None:
                listed[queue] = (-priority, place)
        self._deep = {queue: listed[queue] for queue in self._deep if queue in listed}
        self._heap = [
            (place, queue)
            for queue, place in listed.items()
            if queue not in self._deep and queue not in self._taken
        ]
        heapq.heapify(self._heap)
        self._good_until = time.monotonic() + max(LISTING_SECONDS, LISTING_SHARE * took)

    def forget(self) -> None:
        """A claim failed, so what it was looking at is not known any more."""
        self._heap, self._deep, self._taken = [], {}, {}
        self._good_until = 0.0

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() < self._good_until and bool(self._heap or self._deep)

    @property
    def are_many(self) -> bool:
        """Of the last listing, also those that have no job that is wanted."""
        return self._listed > MANY_QUEUES

    def names(self) -> list[str]:
        return [*self._deep, *(queue for _, queue in self._heap)]

    @property
    def best(self) -> Place | None:
        """The best place of the queues that can be taken."""
        return self._heap[0][0] if self._heap else None

    def take(self, count: int) -> list[str]:
        """The queues with the best places, for one claim alone. Those that filled a claim are among
        them each time: they have enough for several at once."""
        return [*self._deep, *self.take_more(count)]

    def take_more(self, count: int) -> list[str]:
        """The next ones."""
        popped = [heapq.heappop(self._heap) for _ in range(min(count, len(self._heap)))]
        self._taken |= {queue: place for place, queue in popped}
        return [queue for _, queue in popped]

    def give_back(self, queue: str, place: Place | None, *, is_deep: bool = False) -> None:
        """A claim has looked into it: it has no job before this place; None: it has none left.
        `is_deep`: it filled a claim, so it has enough for several at once."""
        if queue not in self._taken and queue not in self._deep:
            return  # listed anew since, or forgotten
        self._taken.pop(queue, None)
        self._deep.pop(queue, None)
        if place is not None and is_deep:
            self._deep[queue] = place
        elif place is not None:
            heapq.heappush(self._heap, (place, queue))

    def stir(self, queue: str) -> None:
        """It has got jobs, of whatever place."""
        heapq.heappush(self._heap, (BEFORE_ALL, queue))
