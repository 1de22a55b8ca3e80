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
            self._families.claimed.labels(*self._families.labels(job)).inc()

    def started(self, job: Job) -> None:
        labels = self._families.labels(job)
        self._families.started.labels(*labels).inc()
        self._families.running.labels(*labels).inc()
        if job.started_at is not None:  # both times are the database's
            waited = (job.started_at - job.run_at).total_seconds()
            self._families.wait_seconds.labels(*labels).observe(max(0.0, waited))

    def ended(self, job: Job, outcome: Outcome | None, seconds: float) -> None:
        labels = self._families.labels(job)
        self._families.running.labels(*labels).dec()
        self._families.ended.labels(*labels, outcome_name(job, outcome)).inc()
        self._families.run_seconds.labels(*labels).observe(seconds)

    def lost(self, job: Job) -> None:
        self._families.lost.labels(*self._families.labels(job)).inc()

    def rescued(self, count: int) -> None:
        self._families.rescued.inc(count)

    def pruned(self, count: int) -> None:
        self._families.pruned.inc(count)


class Families:
    """The metrics themselves, once for each registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, doc: str, labels: Sequence[str] = _PER_KIND) -> Counter:
            return Counter(name, doc, labels, registry=registry)

        self.claimed = counter("windrow_jobs_claimed", "Jobs claimed")
        self.started = counter("windrow_jobs_started", "Runs that began")
        self.ended = counter("windrow_jobs_ended", "Runs that ended", (*_PER_KIND, "outcome"))
        self.lost = counter("windrow_leases_lost", "Runs whose lease went to another worker")
        self.rescued = counter("windrow_jobs_rescued", "Jobs of dead workers taken back", ())
        self.pruned = counter("windrow_jobs_pruned", "Finished jobs removed", ())
        self.running = Gauge(
            "windrow_jobs_running", "Jobs running now", _PER_KIND, registry=registry
        )
        self.run_seconds = Histogram(
            "windrow_job_run_seconds",
            "How long a run took",
            _PER_KIND,
            buckets=RUN_BUCKETS,
            registry=registry,
        )
        self.wait_seconds = Histogram(
            "windrow_job_wait_seconds",
            "From the time a job was due until it was claimed",
            _PER_KIND,
            buckets=WAIT_BUCKETS,
            registry=registry,
        )
        self._seen: set[tuple[str, str]] = set()

    def labels(self, job: Job) -> tuple[str, str]:
        labels = (job.queue, job.kind)
        if labels in self._seen:
            return labels
        if len(self._seen) >= MOST_LABELS:
            return OTHER, OTHER
        self._seen.add(labels)
        return labels


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
