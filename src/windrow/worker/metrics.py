"""Prometheus metrics: what a worker does (`Metrics`), how full the queues are (`QueueCollector`).

    metrics = Metrics()
    with serve_metrics(9187), watch_queue(queue):
        await Worker(queue, handlers, observers=[metrics]).run()

Nothing here reads jobs: the counts of the queues are kept by the database anyway, and are asked for
at most every few seconds, however often somebody scrapes. The number of time series is bounded:
past `MOST_LABELS` combinations of a queue and a kind the rest is counted as "other".
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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

from windrow.errors import ConfigError
from windrow.queue.job import Job
from windrow.queue.outcome import Outcome
from windrow.queue.queue import Queue
from windrow.worker.depths import QueueCollector
from windrow.worker.observers import Observer, outcome_name

MOST_LABELS: Final = 500
OTHER: Final = "other"
# From a millisecond to an hour: jobs are of all sizes.
RUN_BUCKETS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
WAIT_BUCKETS: Final = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 21600)

_PER_KIND: Final = ("queue", "kind")


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
_lock: Final = threading.Lock()


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
