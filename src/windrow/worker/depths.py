"""How full the queues are, for Prometheus: from the counts the database keeps, never by counting.

Prometheus asks in a thread of its own, and the database is asked in the queue's event loop. What it
said is kept for `FRESH_SECONDS`. While it does not answer, the last counts are not repeated as if
they were true: there are none then, and `windrow_store_up` is 0.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from windrow.errors import StoreError
from windrow.logging import event
from windrow.queue.queue import Queue
from windrow.queue.records import QueueInfo

logger = logging.getLogger(__name__)

FRESH_SECONDS: Final = 5.0
# A scrape waits for the database no longer than this.
ANSWER_SECONDS: Final = 3.0
MOST_QUEUES: Final = 200
OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen when the database was last asked; None: it did not answer."""

    at: float
    queues: Sequence[QueueInfo] | None


class QueueCollector(Collector):
    def __init__(self, queue: Queue, loop: asyncio.AbstractEventLoop) -> None:
        self._queue = queue
        self._loop = loop
        self._lock = threading.Lock()
        self._last = Look(float("-inf"), None)

    async def refresh(self) -> None:
        """Ask the database, unless that was done a moment ago. For those who collect in the queue's
        own event loop, which cannot wait there for itself."""
        if time.monotonic() - self._last.at < FRESH_SECONDS:
            return
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                found: Sequence[QueueInfo] | None = await self._queue.queues()
        except (StoreError, TimeoutError) as error:
            logger.warning(
                "the counts of the queues cannot be read: %s",
                error,
                extra=event("metrics.failed", error=str(error)),
            )
            found = None
        self._last = Look(time.monotonic(), found)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """The names alone: who registers a collector must not wait for a database."""
        yield from families(None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        self._look()
        yield from families(self._last.queues)

    def _look(self) -> None:
        if _is_running_in(self._loop) or self._loop.is_closed():
            return
        with self._lock:  # of many scrapes at once, one asks
            if time.monotonic() - self._last.at < FRESH_SECONDS:
                return
            asked = asyncio.run_coroutine_threadsafe(self.refresh(), self._loop)
            try:
                asked.result(2 * ANSWER_SECONDS)
            except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
                asked.cancel()
                self._last = Look(time.monotonic(), None)  # the loop is stuck, or has ended


def families(queues: Sequence[QueueInfo] | None) -> Iterator[GaugeMetricFamily]:
    """The metrics of these queues; None: of a database that does not answer."""
    up = GaugeMetricFamily("windrow_store_up", "Whether the database answers")
    up.add_metric((), 0 if queues is None else 1)
    jobs = GaugeMetricFamily(
        "windrow_queue_jobs", "Jobs by queue and state", labels=("queue", "state")
    )
    paused = GaugeMetricFamily("windrow_queue_paused", "Whether it is paused", labels=("queue",))
    oldest = GaugeMetricFamily(
        "windrow_queue_oldest_ready_seconds",
        "How long the oldest ready job has been waiting",
        labels=("queue",),
    )
    now = datetime.now(UTC)
    shown, others = _most(queues or ())
    for info in shown:
        for state, count in info.counts.items():
            jobs.add_metric((info.name, state), count)
        paused.add_metric((info.name,), int(info.is_paused))
        if info.oldest_ready_at is not None:
            waited = (now - info.oldest_ready_at).total_seconds()
            oldest.add_metric((info.name,), max(0.0, waited))
    for name, count in sorted(others.items()):
        jobs.add_metric((OTHER, name), count)
    yield from (up, jobs, paused, oldest)


def _most(queues: Sequence[QueueInfo]) -> tuple[Sequence[QueueInfo], Counter[str]]:
    """The largest queues, and how many jobs the others have together."""
    by_size = sorted(queues, key=lambda info: sum(info.counts.values()), reverse=True)
    others: Counter[str] = Counter()
    for info in by_size[MOST_QUEUES:]:
        others.update({str(state): count for state, count in info.counts.items()})
    return by_size[:MOST_QUEUES], others


def _is_running_in(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
