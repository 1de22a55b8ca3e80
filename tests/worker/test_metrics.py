"""Prometheus metrics, read as Prometheus reads them: over HTTP."""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.faults import FaultyStore
from windrow import Cancel, Fail, Job, Queue, Snooze, Worker, handler
from windrow.errors import ConfigError
from windrow.queue.store import Store
from windrow.worker import metrics
from windrow.worker.metrics import Metrics, serve_metrics, watch_queue


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


class Scraped:
    """What one scrape brought."""

    def __init__(self, text: str) -> None:
        self.samples = {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, *sorted(labels.items())))


async def scrape(port: int) -> Scraped:
    def get() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            text: str = answer.read().decode()
            return text

    return Scraped(await asyncio.to_thread(get))


@handler("work")
async def work(job: Job, payload: Mapping[str, Any]) -> Any:
    match payload["how"]:
        case "raise":
            raise ConnectionError("not reached")
        case "fail":
            return Fail("no")
        case "cancel":
            return Cancel("not wanted")
        case "snooze" if job.runs == 1:
            return Snooze(0)
    return "done"


async def test_a_scrape_tells_what_the_worker_did(
    queue: Queue, registry: CollectorRegistry
) -> None:
    for how in ("done", "done", "fail", "cancel", "snooze", "raise"):
        await queue.enqueue("work", {"how": how}, queue="mail")
    await queue.enqueue("work", {"how": "raise"}, queue="mail", max_attempts=1)

    with serve_metrics(0, registry=registry) as port:
        worker = Worker(queue, [work], observers=[Metrics(registry)])
        await worker.run(until_idle=True, wait_for_retries=0)
        seen = await scrape(port)

    of_work = {"queue": "mail", "kind": "work"}
    ended = {
        outcome: seen("windrow_jobs_ended_total", **of_work, outcome=outcome)
        for outcome in ("done", "retry", "fail", "cancel", "snooze", "lost")
    }
    assert ended == {"done": 3, "retry": 1, "fail": 2, "cancel": 1, "snooze": 1, "lost": None}
    assert seen("windrow_jobs_claimed_total", **of_work) == 8
    assert seen("windrow_jobs_started_total", **of_work) == 8
    assert seen("windrow_jobs_running", **of_work) == 0
    assert seen("windrow_job_run_seconds_count", **of_work) == 8
    assert seen("windrow_job_wait_seconds_count", **of_work) == 8
    assert (seen("windrow_job_wait_seconds_sum", **of_work) or 0) > 0


async def test_a_running_job_is_seen_while_it_runs(
    queue: Queue, registry: CollectorRegistry
) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    @handler("slow")
    async def slow(job: Job) -> None:
        began.set()
        await go_on.wait()

    worker = Worker(queue, [slow], observers=[Metrics(registry)])
    working = asyncio.create_task(worker.run())
    with serve_metrics(0, registry=registry) as port:
        await queue.enqueue("slow")
        await began.wait()
        assert (await scrape(port))("windrow_jobs_running", queue="default", kind="slow") == 1
        go_on.set()
        worker.stop()
        await working
        assert (await scrape(port))("windrow_jobs_running", queue="default", kind="slow") == 0


async def test_lost_and_rescued_jobs_are_counted(
    queue: Queue, store: Store, registry: CollectorRegistry
) -> None:
    """A worker that was silent for too long, and the one that takes its job back."""
    ids: list[str] = []

    @handler("work")
    async def lose_the_first(job: Job) -> str:
        if not ids:
            ids.append(job.id)
            await store.extend_leases([job.lease_token or ""], 0)
            await asyncio.Event().wait()
        return "again"

    await queue.enqueue("work")
    # It hears soon that it has lost one, and loses no other because it stood still for a moment.
    often = replace(lose_the_first, lease=60, heartbeat=0.2)
    worker = Worker(queue, [often], observers=[Metrics(registry)], rescue_every=0.1)
    working = asyncio.create_task(worker.run())
    async with asyncio.timeout(30):
        while not ids:
            await asyncio.sleep(0.01)
        await queue.wait(ids[0])
    worker.stop()
    await working

    seen = Scraped(generate_latest(registry).decode())
    of_work = {"queue": "default", "kind": "work"}
    assert seen("windrow_jobs_rescued_total") == 1
    assert seen("windrow_leases_lost_total", **of_work) == 1
    assert seen("windrow_jobs_ended_total", **of_work, outcome="lost") == 1


async def test_a_scrape_tells_how_full_the_queues_are(
    queue: Queue, registry: CollectorRegistry
) -> None:
    await queue.enqueue("work", {}, queue="mail")
    await queue.enqueue("work", {}, queue="mail", delay=3600)
    await queue.pause("web")

    with serve_metrics(0, registry=registry) as port, watch_queue(queue, registry):
        seen = await scrape(port)

    assert seen("windrow_store_up") == 1
    assert seen("windrow_queue_jobs", queue="mail", state="ready") == 1
    assert seen("windrow_queue_jobs", queue="mail", state="scheduled") == 1
    assert seen("windrow_queue_paused", queue="mail") == 0
    assert seen("windrow_queue_paused", queue="web") == 1
    assert (seen("windrow_queue_oldest_ready_seconds", queue="mail") or 0) > 0
    assert Scraped(generate_latest(registry).decode())("windrow_store_up") is None


async def test_the_database_is_asked_seldom_however_often_somebody_scrapes(
    store: Store, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 3600.0)
    counted = FaultyStore(store)
    queue = Queue(counted)
    with serve_metrics(0, registry=registry) as port, watch_queue(queue, registry):
        await asyncio.gather(*(scrape(port) for _ in range(5)))
        await queue.enqueue("work")
        stale = await scrape(port)
        monkeypatch.setattr(metrics, "FRESH_SECONDS", 0.0)
        fresh = await scrape(port)

    assert counted.calls("list_queues") == 2
    assert stale("windrow_queue_jobs", queue="default", state="ready") is None
    assert fresh("windrow_queue_jobs", queue="default", state="ready") == 1


async def test_no_counts_are_shown_while_the_database_is_away(
    store: Store, registry: CollectorRegistry
) -> None:
    faulty = FaultyStore(store)
    faulty.fail_before("list_queues")
    queue = Queue(faulty)
    await queue.enqueue("work")
    with serve_metrics(0, registry=registry) as port, watch_queue(queue, registry):
        seen = await scrape(port)
    assert seen("windrow_store_up") == 0
    assert seen("windrow_queue_jobs", queue="default", state="ready") is None


async def test_who_collects_in_the_loop_itself_refreshes_first(
    queue: Queue, registry: CollectorRegistry
) -> None:
    await queue.enqueue("work")
    with watch_queue(queue, registry) as collector:
        assert Scraped(generate_latest(registry).decode())("windrow_store_up") == 0
        await collector.refresh()
        seen = Scraped(generate_latest(registry).decode())
    assert seen("windrow_queue_jobs", queue="default", state="ready") == 1


async def test_labels_are_bounded_by_counting_the_rest_together(
    queue: Queue, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MOST_LABELS", 2)
    monkeypatch.setattr(metrics, "MOST_QUEUES", 2)
    for number in range(5):
        await queue.enqueue("work", {"how": "done"}, queue=f"queue-{number}")
    with watch_queue(queue, registry) as collector:
        await collector.refresh()
        full = Scraped(generate_latest(registry).decode())
        await Worker(queue, [work], observers=[Metrics(registry)]).run(until_idle=True)
        seen = Scraped(generate_latest(registry).decode())

    assert full("windrow_queue_jobs", queue="other", state="ready") == 3
    assert sum(1 for name, *_ in full.samples if name == "windrow_queue_jobs") == 3
    assert seen("windrow_jobs_ended_total", queue="other", kind="other", outcome="done") == 3
    assert sum(1 for name, *_ in seen.samples if name == "windrow_jobs_claimed_total") == 3


async def test_several_workers_of_a_process_count_together(
    queue: Queue, registry: CollectorRegistry
) -> None:
    for _ in range(2):
        await queue.enqueue("work", {"how": "done"}, queue="mail")
        await Worker(queue, [work], observers=[Metrics(registry)]).run(until_idle=True)
    seen = Scraped(generate_latest(registry).decode())
    assert seen("windrow_jobs_ended_total", queue="mail", kind="work", outcome="done") == 2


def test_a_port_that_is_taken_is_named(registry: CollectorRegistry) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(ConfigError, match=f"cannot be served on 127.0.0.1:{port}"),
            serve_metrics(port, registry=registry),
        ):
            raise AssertionError("must not be reached")
