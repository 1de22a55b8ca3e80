"""`windrow doctor`: every finding is provoked for real, and says the cause and what helps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.builders import UNKNOWN_ID
from tests.cli.conftest import Read, Windrow
from tests.conformance.conftest import connect_beside
from tests.migrations import make_development_database
from tests.postgres_server import free_port
from windrow import Queue
from windrow.ids import new_id
from windrow.queue.job import JobState
from windrow.queue.records import JobFilter, WorkerRow
from windrow.queue.sync_queue import SyncQueue

Findings = list[dict[str, str]]


@pytest.fixture
def queue(store_url: str) -> Iterator[SyncQueue]:
    with Queue.sync(store_url) as opened:
        yield opened


@pytest.fixture
def doctor(windrow: Windrow, read: Read) -> Callable[..., Findings]:
    """What the doctor finds; its exit code must fit."""

    def look(*words: str, **variables: str) -> Findings:
        printed = windrow("doctor", *words, **variables)
        found: Findings = read("doctor", *words, code=printed.returncode, **variables)
        wrong = [one for one in found if one["level"] != "note"]
        assert printed.returncode == (1 if wrong else 0), printed.stdout
        for one in found:
            assert one["what"][:40] in printed.stdout
            assert one["cause"]
            assert one["fix"]
        return found

    return look


def register(queue: SyncQueue, *, queues: Any = None, kinds: Any = None) -> None:
    row = WorkerRow(new_id(), "host:1", "host", 1, queues, kinds, 10)
    queue._portal.run(queue.store.register_worker(row, 3600))


def told(found: Findings, what: str) -> dict[str, str]:
    """The one finding that says this."""
    [one] = [one for one in found if what in one["what"]]
    return one


def test_all_is_well(windrow: Windrow, doctor: Callable[..., Findings], queue: SyncQueue) -> None:
    assert doctor() == []
    queue.enqueue("work")
    register(queue)
    assert doctor() == []
    assert windrow("doctor").stdout.startswith("all is well\nextras: ")


def test_no_worker_is_alive(doctor: Callable[..., Findings], queue: SyncQueue) -> None:
    queue.enqueue("work")
    one = told(doctor(), "no worker is alive")
    assert (one["level"], one["fix"]) == (
        "error",
        "start a worker on this database: `windrow worker`, or `windrow worker MODULE`",
    )
    queue.claim()
    queue.enqueue("work")
    assert told(doctor(), "no worker is alive")["level"] == "warning"


def test_kind_that_no_worker_takes(doctor: Callable[..., Findings], queue: SyncQueue) -> None:
    job = queue.enqueue("transcode", queue="video")
    register(queue, queues=("video",), kinds=("thumbnail",))
    one = told(doctor(), "nobody takes `transcode` in queue `video`")
    assert "1 worker looks at the queue, and none has a handler for `transcode`" in one["cause"]
    assert job.id in one["cause"]
    queue.enqueue("thumbnail", queue="other")
    one = told(doctor(), "nobody takes `thumbnail` in queue `other`")
    assert "no worker looks at the queue `other`" in one["cause"]


def test_paused_queue_and_group(doctor: Callable[..., Findings], queue: SyncQueue) -> None:
    register(queue)
    group = queue.create_group()
    queue.enqueue("work", queue="web", group=group.id)
    queue.pause("web")
    queue.pause("empty")
    queue.pause_group(group.id)
    found = doctor()
    assert told(found, "queue `web` is paused")["fix"] == ("resume it: `windrow queues resume web`")
    assert told(found, "queue `empty` is paused")["level"] == "note"
    assert "1 of its jobs" in told(found, f"group {group.id} is paused")["cause"]


def test_limit_that_is_reached_and_parked_key(
    doctor: Callable[..., Findings], queue: SyncQueue
) -> None:
    register(queue)
    queue.set_limit("api", active=1)
    for _ in range(3):
        queue.enqueue("work", limits=["api"])
    queue.park_key("host", 3600)
    found = doctor()
    assert told(found, "limit `api` is reached")["cause"] == (
        "0 of 1 are in use; "
        "1 place is taken by ready jobs of the queue default, and 2 jobs are held"
    )
    assert told(found, "key `host` is parked until")["level"] == "note"


def test_limit_whose_places_a_kind_has_that_no_worker_takes(
    doctor: Callable[..., Findings], queue: SyncQueue
) -> None:
    register(queue, kinds=["work"])
    queue.set_limit("api", active=2)
    for kind in ("unknown", "work", "work"):
        queue.enqueue(kind, limits=["api"])
    assert told(doctor(), "limit `api` is reached")["cause"] == (
        "0 of 2 are in use; 2 places are taken by ready jobs of the queue default, "
        "where no worker takes `unknown`, and 1 job is held"
    )


def test_jobs_of_a_dead_worker(doctor: Callable[..., Findings], queue: SyncQueue) -> None:
    queue.enqueue("work", lease=1)
    queue.claim(worker="gone:7")
    queue._portal.run(_until_expired(queue))
    one = told(doctor("--patience", "0"), "1 job is left behind")
    assert "gone:7" in one["cause"]


async def _until_expired(queue: SyncQueue) -> None:
    """Sleep as long as the lease still has, by the database's clock."""
    store = queue.store
    [job] = await store.list_jobs(JobFilter(states=(JobState.ACTIVE,)))
    assert job.lease_expires_at is not None
    while (left := (job.lease_expires_at - (await store.check_health()).now).total_seconds()) >= 0:
        await asyncio.sleep(left + 0.01)


def test_queue_that_nobody_keeps_up_with(doctor: Callable[..., Findings], queue: SyncQueue) -> None:
    register(queue)
    queue.enqueue("work", run_at=datetime.now(UTC) - timedelta(hours=2))
    assert "120 minutes" in told(doctor(), "a job in queue `default` has been ready")["what"]


def test_queue_whose_jobs_nobody_takes_is_not_told_to_need_more_workers(
    doctor: Callable[..., Findings], queue: SyncQueue
) -> None:
    old = datetime.now(UTC) - timedelta(hours=2)
    queue.enqueue("transcode", run_at=old)
    register(queue, kinds=["scrape"])
    [one] = doctor()
    assert one["what"].startswith("nobody takes")


def test_failures_of_the_last_hour(doctor: Callable[..., Findings], queue: SyncQueue) -> None:
    register(queue)
    for number in range(2):
        queue.enqueue("work", {"n": number}, max_attempts=1)
    lease = queue.claim()
    lease.fail(lease.jobs[0], "broken")
    one = told(doctor(), "1 job failed in the last hour")
    assert one["level"] == "warning"
    assert "windrow jobs list --state failed" in one["fix"]


def test_one_held_job_is_one(doctor: Callable[..., Findings], queue: SyncQueue) -> None:
    register(queue)
    queue.set_limit("api", active=1)
    for _ in range(2):
        queue.enqueue("work", limits=["api"])
    assert told(doctor(), "limit `api`")["cause"] == (
        "0 of 1 are in use; 1 place is taken by ready jobs of the queue default, and 1 job is held"
    )


def test_completed_job_needs_no_help(windrow: Windrow, read: Read, queue: SyncQueue) -> None:
    job = queue.enqueue("work")
    lease = queue.claim()
    lease.complete(lease.jobs[0])
    [one] = read("doctor", "--job", job.id)
    assert (one["what"], one["fix"]) == ("it has completed", "")
    assert "fix" not in windrow("doctor", "--job", job.id).stdout


def test_tables_that_do_not_fit(doctor: Callable[..., Findings], empty_url: str) -> None:
    [one] = doctor("--database", empty_url)
    assert one["what"] == "the tables do not fit this Windrow"
    assert one["fix"] == "migrate the database: `windrow db migrate`"


def test_tables_of_a_newer_windrow(
    doctor: Callable[..., Findings], store_name: str, store_url: str
) -> None:
    table = {"sqlite": "windrow_migration", "postgres": "windrow.migration"}[store_name]
    beside = connect_beside(store_name, store_url)
    beside.execute(f"UPDATE {table} SET version = 9999 WHERE version = 1")
    beside.close()
    [one] = doctor()
    assert one["fix"] == "upgrade Windrow"


def test_tables_of_a_development_version(
    doctor: Callable[..., Findings], store_name: str, empty_url: str
) -> None:
    beside = connect_beside(store_name, empty_url)
    make_development_database(store_name, beside)
    [one] = doctor("--database", empty_url)
    assert (one["level"], one["what"]) == ("error", "the tables do not fit this Windrow")
    assert "(migration 0001_queue)" in one["cause"]
    assert one["fix"] == "start with a new database"
    beside.close()


def test_database_that_is_not_there(doctor: Callable[..., Findings], store_name: str) -> None:
    url = {"sqlite": "sqlite:///no/folder/jobs.db", "postgres": "postgresql://127.0.0.1:1/jobs"}
    [one] = doctor("--database", url[store_name])
    assert (one["level"], one["what"]) == ("error", "the database cannot be used")


def test_doctor_of_one_job(doctor: Callable[..., Findings], queue: SyncQueue) -> None:
    job = queue.enqueue("work", queue="web")
    queue.pause("web")
    found = doctor("--job", job.id)
    assert [one["what"] for one in found] == ["its queue `web` is paused", "no worker takes it"]


def test_doctor_of_a_job_that_is_not_there(windrow: Windrow) -> None:
    printed = windrow("doctor", "--job", UNKNOWN_ID)
    assert printed.returncode == 1
    assert printed.stderr.splitlines()[0] == f"error: no such job: {UNKNOWN_ID}"


def test_index_server_that_does_not_answer(doctor: Callable[..., Findings]) -> None:
    found = doctor(WINDROW_QDRANT_URL=f"http://127.0.0.1:{free_port()}")
    assert told(found, "the index does not answer")["level"] == "error"
