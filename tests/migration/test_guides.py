"""The guides for those who come from other queues: their programs run as printed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import celery
import procrastinate
import pytest
import redis
import rq

from tests.cli.conftest import Read, Windrow, read, windrow
from tests.conftest import MakeDatabase
from tests.test_docs import fenced
from windrow import Queue

__all__ = ["read", "windrow"]  # fixtures

GUIDES = Path(__file__).parent.parent.parent / "docs/guides"


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


def program(system: str, number: int) -> str:
    return fenced(GUIDES / f"coming-from-{system}.md", "python")[number]


async def run(text: str, **variables: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", text),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | variables,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    return out.decode()


@pytest.mark.parametrize(
    ("system", "queue", "payload", "printed"),
    [
        (
            "celery",
            "celery",
            {"args": [7], "kwargs": {"to": "Zoë"}},
            "mail order 7 to Zoë\nmail order 8 to Ann\n",
        ),
        ("rq", "mail", {"args": [7], "kwargs": {}}, "mail order 7\nmail order 8\n"),
        ("procrastinate", "mail", {"to": "Zoë"}, "mail Zoë\nmail Ann\n"),
    ],
)
async def test_the_handler_takes_what_was_moved_and_what_is_new(
    store_url: str, system: str, queue: str, payload: dict[str, object], printed: str
) -> None:
    async with Queue.open(store_url) as opened:
        moved = await opened.enqueue("shop.mail", payload, queue=queue)
        out = await run(program(system, -1), WINDROW_DATABASE_URL=store_url)
        assert sorted(out.splitlines()) == sorted(printed.splitlines())
        assert (await opened.get(moved.id)).state == "completed"


def test_tasks_of_celery_wait_here_with_their_arguments(
    windrow: Windrow, read: Read, old_redis: tuple[str, Any]
) -> None:
    url, client = old_redis
    app = celery.Celery(broker=url)
    held = app.send_task("shop.held", args=[1])
    with app.connection_for_read() as connection:
        connection.SimpleQueue("celery").get(timeout=5)  # taken, and never acknowledged
        assert client.hlen("unacked") == 1
        mail = app.send_task("shop.mail", args=[7], kwargs={"to": "Zoë"})
        client.lpush("celery", client.lindex("celery", 0))  # delivered again
        later = app.send_task("shop.later", eta=datetime.now(UTC) + timedelta(hours=1))
        lines = asyncio.run(run(program("celery", 0), BROKER_URL=url))

    report = read("jobs", "import", "-", input=lines)
    assert report["outcomes"] == {"inserted": 3, "existing": 1}
    jobs = {job["id"]: job for job in read("jobs", "list")}
    assert jobs.keys() == {held.id, mail.id, later.id}
    assert jobs[mail.id]["payload"] == {"args": [7], "kwargs": {"to": "Zoë"}}
    assert (jobs[mail.id]["kind"], jobs[mail.id]["queue"]) == ("shop.mail", "celery")
    assert jobs[later.id]["state"] == "scheduled"


def double(number: int) -> int:  # what RQ is asked to run, by name
    return number * 2


def test_jobs_of_rq_wait_here_with_their_arguments(
    windrow: Windrow, read: Read, old_redis: tuple[str, Any]
) -> None:
    url, client = old_redis
    queue = rq.Queue("mail", connection=client)
    name = f"{__name__}.double"
    waiting = queue.enqueue(name, 7, unit="€")
    scheduled = queue.enqueue_at(datetime.now(UTC) + timedelta(hours=1), name, 8)
    lines = asyncio.run(run(program("rq", 0), REDIS_URL=url))

    assert read("jobs", "import", "-", input=lines)["outcomes"] == {"inserted": 2}
    jobs = {job["id"]: job for job in read("jobs", "list")}
    assert jobs.keys() == {waiting.id, scheduled.id}
    assert jobs[waiting.id]["payload"] == {"args": [7], "kwargs": {"unit": "€"}}
    assert (jobs[waiting.id]["kind"], jobs[waiting.id]["queue"]) == (name, "mail")
    assert jobs[scheduled.id]["state"] == "scheduled"


async def _defer(url: str) -> list[str]:
    """Waiting jobs of Procrastinate, as the statement of the guide writes them."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        mail = app.configure_task("shop.mail", queue="mail", queueing_lock="one", priority=3)
        await mail.defer_async(to="Zoë", text='a "quoted"\nline\\')
        await app.configure_task("shop.later", schedule_in={"hours": 1}).defer_async()
        done = await app.configure_task("shop.done").defer_async()
    connection = await asyncpg.connect(url)
    done_now = "UPDATE procrastinate_jobs SET status = 'succeeded' WHERE id = $1"
    await connection.execute(done_now, done)
    [statement] = fenced(GUIDES / "coming-from-procrastinate.md", "sql")
    lines = [row[0] for row in await connection.fetch(statement)]
    await connection.close()
    return lines


def test_jobs_of_procrastinate_keep_locks_and_times(
    windrow: Windrow, read: Read, make_database: MakeDatabase
) -> None:
    lines = asyncio.run(_defer(make_database()))

    report = read("jobs", "import", "-", input="\n".join(lines))
    assert report["outcomes"] == {"inserted": 2}
    jobs = {job["kind"]: job for job in read("jobs", "list")}
    sent = jobs["shop.mail"]
    assert (sent["queue"], sent["priority"], sent["unique"]) == ("mail", 8, "one")
    assert sent["payload"] == {"to": "Zoë", "text": 'a "quoted"\nline\\'}
    assert jobs["shop.later"]["state"] == "scheduled"
    assert all(json.loads(line)["id"] in {job["id"] for job in jobs.values()} for line in lines)
