"""Waiting work of Celery, RQ and Procrastinate, sent by these themselves, becomes jobs."""

from __future__ import annotations

import decimal
import json
import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import celery
import procrastinate
import pytest
import redis
import rq
from rq.serializers import JSONSerializer

from tests.conftest import MakeDatabase
from tests.migration.test_legacy import jobs_of
from windrow.errors import MigrationFailed
from windrow.queue.job import JobState
from windrow.services.migration import redis_origin
from windrow.services.migration.migrating import drop, migrate, roll_back, verify
from windrow.services.migration.redis_origin import RedisOrigin


@pytest.fixture
def old_redis(redis_url: str) -> Iterator[tuple[str, Any]]:
    """An empty Redis that is not Windrow's: its URL, and a client. Each process has its own."""
    number = 8 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    url = f"{redis_url.rpartition('/')[0]}/{number}"
    client = redis.Redis.from_url(url)
    client.flushdb()
    yield url, client
    client.flushdb()
    client.close()


def double(number: int) -> int:  # what RQ is asked to run, by name
    return number * 2


async def test_tasks_of_celery_wait_here_with_their_arguments(
    store_url: str, old_redis: tuple[str, Any]
) -> None:
    url, client = old_redis
    app = celery.Celery(broker=url)
    plain = app.send_task("shop.mail", args=[7], kwargs={"to": "Zoë"})
    app.send_task("shop.later", eta=datetime.now(UTC) + timedelta(hours=1), queue="slow")
    app.send_task("shop.over", expires=datetime.now(UTC) - timedelta(hours=1))
    app.send_task("shop.last", priority=9)
    app.send_task("shop.pickled", args=[{1, 2}], serializer="pickle")
    app.send_task("shop.first", chain=[app.signature("shop.second")])
    client.lpush("celery", b"not a message")

    report = await migrate(store_url, url, system="celery")

    assert report.is_over
    assert report.tables["celery/celery"].left == {"expired there": 1}
    assert report.tables["celery/celery"].spoilt == 2
    jobs = {job.kind: job for job in await jobs_of(store_url)}
    mail = jobs["shop.mail"]
    assert (mail.id, mail.queue, mail.state) == (plain.id, "celery", JobState.READY)
    assert mail.payload == {"args": [7], "kwargs": {"to": "Zoë"}}
    assert (jobs["shop.later"].queue, jobs["shop.later"].state) == ("slow", JobState.SCHEDULED)
    assert jobs["shop.last"].priority < mail.priority
    assert jobs["shop.first"].payload["then"]["chain"][0]["task"] == "shop.second"
    assert "only JSON is read" in jobs["shop.pickled"].errors[0].message
    assert jobs["unknown"].state is JobState.FAILED

    again = await migrate(store_url, url, system="celery")
    assert sum(table.imported for table in again.tables.values()) == 0
    assert (await drop(store_url, url, system="celery")).is_dropped
    assert client.llen("celery") == 0


async def test_messages_of_celery_that_are_there_twice_or_broken_keep_no_other_from_coming(
    store_url: str, old_redis: tuple[str, Any]
) -> None:
    url, client = old_redis
    app = celery.Celery(broker=url)
    again = app.send_task("shop.mail", args=[7])
    client.lpush("celery", client.lindex("celery", 0))  # as what was delivered again
    app.send_task("shop.mail", args=[8])
    for headers, body in (([1], [[], {}, None]), ({"id": "five"}, 5), ({"id": "list"}, [5, 5, 5])):
        message = {
            "headers": headers,
            "body": json.dumps(body),
            "properties": {},
            "content-type": "application/json",
        }
        client.lpush("celery", json.dumps(message))

    report = await migrate(store_url, url, system="celery")

    table = report.tables["celery/celery"]
    assert (table.rows, table.imported, table.spoilt) == (6, 5, 3)
    assert table.left == {"it is there twice": 1}
    jobs = await jobs_of(store_url)
    assert len(jobs) == 5
    assert again.id in {job.id for job in jobs}
    assert (await verify(store_url, url, system="celery")).is_good


async def test_a_task_that_comes_after_the_verification_is_not_dropped(
    store_url: str, old_redis: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, client = old_redis
    app = celery.Celery(broker=url)
    app.send_task("shop.mail", args=[7])
    await migrate(store_url, url, system="celery")

    async def drop_late(origin: RedisOrigin, tables: Sequence[str]) -> None:
        app.send_task("shop.mail", args=[8])
        await dropping(origin, tables)

    dropping = RedisOrigin.drop
    monkeypatch.setattr(RedisOrigin, "drop", drop_late)
    with pytest.raises(MigrationFailed, match="migrate again"):
        await drop(store_url, url, system="celery")
    assert client.llen("celery") == 2
    monkeypatch.undo()
    await migrate(store_url, url, system="celery")
    assert (await drop(store_url, url, system="celery")).is_dropped
    assert client.llen("celery") == 0


async def test_what_a_worker_of_celery_held_comes_too(
    store_url: str, old_redis: tuple[str, Any]
) -> None:
    url, client = old_redis
    app = celery.Celery(broker=url)
    held = app.send_task("shop.mail", args=[1])
    with app.connection_for_read() as connection:
        queue = connection.SimpleQueue("celery")
        queue.get(timeout=5)  # taken, and never acknowledged
        assert client.hlen("unacked") == 1
        report = await migrate(store_url, url, system="celery")
    assert report.tables["celery/unacked"].imported == 1
    assert [job.id for job in await jobs_of(store_url)] == [held.id]


async def test_a_redis_is_the_same_by_each_of_its_names_here(
    store_url: str, old_redis: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = old_redis
    celery.Celery(broker=url).send_task("shop.mail", task_id="no uuid")
    with monkeypatch.context() as patch:  # as earlier versions called it
        patch.setattr(redis_origin, "_HERE", ())
        await migrate(store_url, url, system="celery")
    for name in ("localhost", "127.0.0.1"):
        place = url.replace("127.0.0.1", name).replace("localhost", name)
        report = await migrate(store_url, place, system="celery")
        assert report.tables["celery/celery"].known == 1
    assert len(await jobs_of(store_url)) == 1


async def test_a_task_that_waits_and_is_held_at_once_comes_and_goes_once(
    store_url: str, old_redis: tuple[str, Any]
) -> None:
    url, client = old_redis
    app = celery.Celery(broker=url)
    app.send_task("shop.mail", args=[1])
    again = client.lindex("celery", 0)
    with app.connection_for_read() as connection:
        connection.SimpleQueue("celery").get(timeout=5)
        client.lpush("celery", again)  # as what is delivered again while a worker is at it
        forecast = await migrate(store_url, url, system="celery", is_dry_run=True)
        report = await migrate(store_url, url, system="celery")

        assert forecast.tables == report.tables
        counts = {name: (one.imported, one.known) for name, one in report.tables.items()}
        assert counts == {"celery/celery": (1, 0), "celery/unacked": (0, 1)}
        assert (await verify(store_url, url, system="celery")).is_good
        rollback = await roll_back(store_url, url, system="celery")
    assert (rollback.removed, rollback.kept_count) == (1, 0)
    assert await jobs_of(store_url) == []


@pytest.mark.parametrize("serializer", [None, JSONSerializer])
async def test_jobs_of_rq_wait_here_with_plain_arguments(
    store_url: str, old_redis: tuple[str, Any], serializer: Any
) -> None:
    url, client = old_redis
    queue = rq.Queue("mail", connection=client, serializer=serializer)
    name = f"{__name__}.double"
    waiting = queue.enqueue(name, 7, unit="€")
    queue.enqueue_at(datetime.now(UTC) + timedelta(hours=1), name, 8)
    queue.enqueue(name, 9, depends_on=waiting)
    if serializer is None:
        queue.enqueue(name, decimal.Decimal("1.5"), {"at": datetime(2026, 1, 2, tzinfo=UTC)})
        queue.enqueue(name, client.connection_pool.connection_class)  # no plain value

    report = await migrate(store_url, url, system="rq")

    assert report.is_over
    jobs = await jobs_of(store_url)
    by_argument = {str(job.payload["args"][0]): job for job in jobs if "args" in job.payload}
    plain = by_argument["7"]
    assert (plain.kind, plain.queue, plain.id) == (name, "mail", waiting.id)
    assert plain.payload == {"args": [7], "kwargs": {"unit": "€"}}
    assert by_argument["8"].state is JobState.SCHEDULED
    assert by_argument["9"].state is JobState.PAUSED
    assert by_argument["9"].headers["rq_depends_on"] == [waiting.id]
    if serializer is None:
        assert by_argument["1.5"].payload["args"][1] == {"at": "2026-01-02T00:00:00Z"}
        [spoilt] = [job for job in jobs if job.state is JobState.FAILED]
        assert "is no plain value" in spoilt.errors[0].message
    assert (await verify(store_url, url, system="rq")).is_good
    assert (await roll_back(store_url, url, system="rq")).kept_count == 0
    assert await jobs_of(store_url) == []
    await migrate(store_url, url, system="rq")
    assert (await drop(store_url, url, system="rq")).is_dropped
    assert client.keys("rq:job:*") == client.keys("rq:queue:*") == []


async def test_failed_jobs_of_rq_come_with_their_error(
    store_url: str, old_redis: tuple[str, Any]
) -> None:
    url, client = old_redis
    queue = rq.Queue("mail", connection=client)
    queue.enqueue(f"{__name__}.double")  # without the argument it needs
    rq.SimpleWorker([queue], connection=client).work(burst=True, logging_level="CRITICAL")
    await migrate(store_url, url, system="rq")
    [job] = await jobs_of(store_url)
    assert job.state is JobState.FAILED


async def test_jobs_of_procrastinate_keep_locks_and_times(
    store_url: str, make_database: MakeDatabase
) -> None:
    url = make_database()
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()

        @app.task(name="shop.mail", queue="mail", queueing_lock="one", priority=3)
        async def mail(to: str) -> None: ...

        await mail.configure(lock="customer-7").defer_async(to="Zoë")
        await app.configure_task("shop.later", schedule_in={"hours": 1}).defer_async()
        await app.configure_task("shop.done").defer_async()
        connection = await asyncpg.connect(url)
        await connection.execute("UPDATE procrastinate_jobs SET status = 'succeeded' WHERE id = 3")
        for number in (4, 5):  # what runs has let go of its queueing lock
            await app.configure_task("shop.run", queueing_lock="one-run").defer_async()
            await connection.execute(
                f"UPDATE procrastinate_jobs SET status = 'doing' WHERE id = {number}"
            )
        await app.configure_task("shop.run", queueing_lock="one-run").defer_async()
    await connection.close()

    report = await migrate(store_url, url, system="procrastinate")

    table = report.tables["procrastinate_jobs"]
    assert (table.imported, table.left) == (5, {"done already": 1})
    found = await jobs_of(store_url)
    locks = [job.unique for job in found if job.kind == "shop.run"]
    assert sorted(locks, key=str) == [None, None, "one-run"]
    jobs = {job.kind: job for job in found}
    sent = jobs["shop.mail"]
    assert (sent.queue, sent.priority, sent.unique) == ("mail", 8, "one")
    assert sent.payload == {"to": "Zoë"}
    assert sent.headers["procrastinate_lock"] == "customer-7"
    assert jobs["shop.later"].state is JobState.SCHEDULED
    assert jobs["shop.later"].run_at.timestamp() > time.time() + 3000
    assert (await verify(store_url, url, system="procrastinate")).is_good

    # What is Procrastinate's own goes with its table; what somebody else made is named.
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE VIEW waiting AS SELECT count(*) FROM procrastinate_jobs")
    with pytest.raises(MigrationFailed, match="view waiting") as refused:
        await drop(store_url, url, system="procrastinate", is_discarding=True)
    assert "procrastinate_events" not in str(refused.value)
    await connection.execute("DROP VIEW waiting")
    assert (await drop(store_url, url, system="procrastinate", is_discarding=True)).is_dropped
    assert await connection.fetchval("SELECT to_regclass('procrastinate_jobs')") is None
    await connection.close()
