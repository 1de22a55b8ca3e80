"""Prometheus metrics: what a worker does (`Metrics`), how full the queues are (`QueueCollector`).

    metrics = Metrics()
    with serve_metrics(9187), watch_queue(queue):
        await Worker(queue, handlers, observers=[metrics]).run()

Nothing here reads jobs: the counts of the queues are kept by the database anyway, and are asked for
at most every few seconds, however often somebody scrapes. The number of time series is bounded:
past `MOST_LABELS` combinations of a queue and a kind the rest is counted as "other".

Prometheus asks in a thread of its own, and the database is asked in the queue's event loop. What it
said is kept for `FRESH_SECONDS`. While it does not answer, the last counts are not repeated as if
they were true: there are none then, and `windrow_store_up` is 0.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from weakref import WeakKeyDictionary

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    start_http_server,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from windrow.errors import ConfigError, StoreError
from windrow.logging import event
from windrow.queue.job import Job
from windrow.queue.outcome import Outcome
from windrow.queue.queue import Queue
from windrow.queue.records import QueueInfo
from windrow.worker.observers import Observer, outcome_name

MOST_LABELS: Final = 500
OTHER: Final = "other"
# From a millisecond to an hour: jobs are of all sizes.
RUN_BUCKETS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
WAIT_BUCKETS: Final = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 21600)

_PER_KIND: Final = ("queue", "kind")
_lock: Final = threading.Lock()

logger = logging.getLogger(__name__)

FRESH_SECONDS: Final = 5.0
# A scrape waits for the database no longer than this.
ANSWER_SECONDS: Final = 3.0
MOST_QUEUES: Final = 200


class Metrics(Observer):
    """Counts what a worker does. Several may share a registry, and then count together."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._families = _families_of(registry)

    def claimed(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self._families.of(job).claimed.inc()

    def started(self, job: Job) -> None:
        series = self._families.of(job)
        series.started.inc()
        series.running.inc()
        if job.started_at is not None:  # both times are the database's
            series.wait_seconds.observe(max(0.0, (job.started_at - job.run_at).total_seconds()))

    def ended(self, job: Job, outcome: Outcome | None, seconds: float) -> None:
        series = self._families.of(job)
        series.running.dec()
        series.ended(outcome_name(job, outcome)).inc()
        series.run_seconds.observe(seconds)

    def lost(self, job: Job) -> None:
        self._families.of(job).lost.inc()

    def rescued(self, count: int) -> None:
        self._families.rescued.inc(count)

    def pruned(self, count: int) -> None:
        self._families.pruned.inc(count)


class Families:
    """The metrics themselves, once for each registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, doc: str, labels: Sequence[str] = _PER_KIND) -> Counter:
            return Counter(name, doc, labels, registry=registry)

        def histogram(name: str, doc: str, buckets: Sequence[float]) -> Histogram:
            return Histogram(name, doc, _PER_KIND, buckets=buckets, registry=registry)

        self.claimed = counter("windrow_jobs_claimed", "Jobs claimed")
        self.started = counter("windrow_jobs_started", "Runs that began")
        self.ended = counter("windrow_jobs_ended", "Runs that ended", (*_PER_KIND, "outcome"))
        self.lost = counter("windrow_leases_lost", "Runs whose lease went to another worker")
        self.rescued = counter("windrow_jobs_rescued", "Jobs of dead workers taken back", ())
        self.pruned = counter("windrow_jobs_pruned", "Finished jobs removed", ())
        self.running = Gauge("windrow_jobs_running", "Running now", _PER_KIND, registry=registry)
        self.run_seconds = histogram("windrow_job_run_seconds", "How long a run took", RUN_BUCKETS)
        self.wait_seconds = histogram(
            "windrow_job_wait_seconds",
            "From the time a job was due until it was claimed",
            WAIT_BUCKETS,
        )
        self._series: dict[tuple[str, str], Series] = {}

    def of(self, job: Job) -> Series:
        labels = (job.queue, job.kind)
        if labels not in self._series and len(self._series) >= MOST_LABELS:
            labels = (OTHER, OTHER)
        if labels not in self._series:
            self._series[labels] = Series(self, labels)
        return self._series[labels]


class Series:
    """What belongs to one queue and kind. Kept, because looking a time series up by its labels
    costs more than counting does."""

    def __init__(self, families: Families, labels: tuple[str, str]) -> None:
        self.claimed = families.claimed.labels(*labels)
        self.started = families.started.labels(*labels)
        self.lost = families.lost.labels(*labels)
        self.running = families.running.labels(*labels)
        self.run_seconds = families.run_seconds.labels(*labels)
        self.wait_seconds = families.wait_seconds.labels(*labels)
        self._ended = families.ended
        self._labels = labels
        self._by_outcome: dict[str, Counter] = {}

    def ended(self, outcome: str) -> Counter:
        if outcome not in self._by_outcome:
            self._by_outcome[outcome] = self._ended.labels(*self._labels, outcome)
        return self._by_outcome[outcome]


_families: Final[WeakKeyDictionary[CollectorRegistry, Families]] = WeakKeyDictionary()


def _families_of(registry: CollectorRegistry) -> Families:
    with _lock:
        if registry not in _families:
            _families[registry] = Families(registry)
        return _families[registry]


@contextmanager
def watch_queue(queue: Queue, registry: CollectorRegistry = REGISTRY) -> Iterator[QueueCollector]:
    """Report how full the queues are, as long as this lasts. Enter it in the queue's event loop."""
    collector = QueueCollector(queue, asyncio.get_running_loop())
    registry.register(collector)
    try:
        yield collector
    finally:
        registry.unregister(collector)


@contextmanager
def serve_metrics(
    port: int, *, host: str = "127.0.0.1", registry: CollectorRegistry = REGISTRY
) -> Iterator[int]:
    """Serve /metrics over HTTP as long as this lasts, in a thread of its own; gives the port, which
    is a free one if `port` is 0."""
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"metrics cannot be served on {host}:{port}: {error}") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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


def _most(queues: Sequence[QueueInfo]) -> tuple[Sequence[QueueInfo], collections.Counter[str]]:
    """The largest queues, and how many jobs the others have together."""
    by_size = sorted(queues, key=lambda info: sum(info.counts.values()), reverse=True)
    others: collections.Counter[str] = collections.Counter()
    for info in by_size[MOST_QUEUES:]:
        others.update({str(state): count for state, count in info.counts.items()})
    return by_size[:MOST_QUEUES], others


def _is_running_in(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
