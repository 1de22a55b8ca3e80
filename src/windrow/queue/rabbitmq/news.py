"""What is told through the broker, as messages and the routing keys they go by.

One message tells of many queues and jobs at once: its first key is its routing key and the others
are in its BCC header, by which RabbitMQ routes as well. A listener gets it once, however many of
its keys it is bound to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from windrow.queue.bells import Wish

ANY_WORK: Final = "work"
ANY_END: Final = "end"
LONGEST_KEY: Final = 255  # bytes, by the protocol
# All headers of a message go in one frame, of 128 KiB as a rule.
MOST_TOLD: Final = 400
# Who waits for more jobs than this hears of all ends: each key costs a round trip.
MOST_BOUND: Final = 20
# While the broker is away no more than this is kept. What is left out is found by looking.
MOST_KEPT: Final = 10_000


class Letter(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message: who sent it, where there may be work, and which jobs have ended."""

    sender: str
    queues: tuple[str, ...] = ()
    job_ids: tuple[str, ...] = ()

    def keys(self) -> list[str]:
        keys = [ANY_WORK, *map(work_key, self.queues)] if self.queues else []
        return keys + ([ANY_END, *map(end_key, self.job_ids)] if self.job_ids else [])


class News:
    """What is to be told and has not been yet: said twice, it is told once."""

    def __init__(self) -> None:
        self._queues: dict[str, None] = {}
        self._job_ids: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._queues or self._job_ids)

    def add(self, queues: Iterable[str], job_ids: Iterable[str]) -> None:
        for kept, new in ((self._queues, queues), (self._job_ids, job_ids)):
            for name in new:
                if len(kept) < MOST_KEPT:
                    kept[name] = None

    def take(self, sender: str) -> Iterator[Letter]:
        """Everything, in as few letters as it fits in."""
        queues, job_ids = list(self._queues), list(self._job_ids)
        self._queues.clear()
        self._job_ids.clear()
        while queues or job_ids:
            some = queues[:MOST_TOLD]
            rest = MOST_TOLD - len(some)
            yield Letter(sender, tuple(some), tuple(job_ids[:rest]))
            queues, job_ids = queues[MOST_TOLD:], job_ids[rest:]


def work_key(queue: str) -> str:
    key = f"{ANY_WORK}.{queue}"
    if len(key.encode()) <= LONGEST_KEY:
        return key
    return f"{ANY_WORK}#{hashlib.sha256(queue.encode()).hexdigest()}"


def end_key(job_id: str) -> str:
    return f"{ANY_END}.{job_id}"


def keys_of(wish: Wish) -> frozenset[str]:
    """The keys by which all that is wished comes. Of events only those are told that somebody else
    may wait for too; who reads events finds the others when it looks."""
    if wish.events:
        return frozenset({ANY_WORK, ANY_END})
    if wish.queues is None:
        work = {ANY_WORK}
    else:
        work = {work_key(queue) for queue in wish.queues}
    if len(wish.job_ids) > MOST_BOUND:
        return frozenset(work | {ANY_END})
    return frozenset(work | {end_key(job_id) for job_id in wish.job_ids})
