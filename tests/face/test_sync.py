"""`Queue.sync`: the same face, blocking."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
import sqlite3
import threading
import typing
from typing import Any

import psycopg
import pytest

from tests.pgbouncer import without_options
from windrow import NewJob, Queue
from windrow.errors import DuplicateJob, JobNotFound, StoreError
from windrow.queue.job import JobState
from windrow.queue.queue import OpenOptions
from windrow.queue.sync_queue import SyncQueue


def test_it_does_what_the_async_queue_does(store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        made = queue.enqueue("work", {"n": 1}, unique="k")
        queue.enqueue_many([NewJob("work", {"n": 2})])
        with pytest.raises(DuplicateJob):
            queue.enqueue("work", unique="k", on_conflict="reject")
        lease = queue.claim(limit=2)
        assert lease
        for job in lease.jobs:
            lease.progress(job, 50)
            lease.complete(job, job.payload["n"] * 10)
        assert not queue.claim()
        assert queue.get(made.id).result == 10
        assert queue.counts()[JobState.COMPLETED] == 2
        with pytest.raises(JobNotFound):
            queue.get("nothing")


def test_every_method_of_the_queue_is_there_and_blocks(store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        queue.enqueue("work")
        for blocking in (queue, queue.claim(), queue.job_queue()):
            for name, method in inspect.getmembers(type(blocking._target), inspect.isfunction):
                if name.startswith("_"):
                    continue
                found = getattr(blocking, name)
                assert not inspect.iscoroutinefunction(found), method
                assert inspect.signature(found).parameters == (
                    inspect.signature(getattr(blocking._target, name)).parameters
                )


@pytest.mark.parametrize("name", ["enqueue", "schedule", "wait"])
def test_overloads_of_the_blocking_queue_are_those_of_the_async_one(name: str) -> None:
    of_async = [spelled(one) for one in typing.get_overloads(getattr(Queue, name))]
    of_sync = [spelled(one) for one in typing.get_overloads(vars(SyncQueue)[name])]
    assert of_async
    assert of_sync == of_async


def spelled(overload: Any) -> str:
    """A signature with its type variables numbered in their order."""
    text = str(inspect.signature(overload))
    variables = dict.fromkeys(re.findall(r"\b[A-Z]\b", text))
    for number, variable in enumerate(variables):
        text = re.sub(rf"\b{variable}\b", f"T{number}", text)
    return text


def test_options_of_the_blocking_queue_are_those_of_the_async_one() -> None:
    options = set(inspect.signature(Queue.open).parameters) - {"url"}
    assert set(OpenOptions.__annotations__) == options


def test_job_tx_blocks_too(store_url: str, store_name: str) -> None:
    with Queue.sync(store_url) as queue:
        queue.enqueue("work")
        lease = queue.claim()
        [job] = lease.jobs
        job.tx.execute("CREATE TABLE mine (n integer)")
        lease.complete(job)
        assert queue.get(job.id).state == JobState.COMPLETED
    with connect(store_name, store_url) as connection:
        assert connection.execute("SELECT * FROM mine").fetchall() == []


def test_a_queue_that_cannot_be_opened_leaves_no_thread() -> None:
    before = set(threading.enumerate())  # of which some may be about to end
    with pytest.raises(StoreError):
        Queue.sync("postgresql://nobody@127.0.0.1:1/none")
    assert set(threading.enumerate()) <= before


def test_a_job_is_enqueued_in_the_callers_own_blocking_transaction(
    store_url: str, store_name: str
) -> None:
    """As Django or Flask code does it: rows and job commit together, or neither."""
    with Queue.sync(store_url) as queue, connect(store_name, store_url) as connection:
        connection.execute("CREATE TABLE orders (n integer)")
        connection.commit()
        connection.execute("INSERT INTO orders VALUES (1)")
        gone = queue.enqueue("ship", {"n": 1}, unique="order-1", tx=connection)
        connection.rollback()
        connection.execute("INSERT INTO orders VALUES (2)")
        kept = queue.enqueue("ship", {"n": 2}, unique="order-2", tx=connection)
        queue.enqueue_many([NewJob("bill", {"n": 2})], tx=connection)
        assert queue.list() == []
        connection.commit()
        assert [job.kind for job in queue.list()] == ["bill", "ship"]
        assert queue.get(kept.id).payload == {"n": 2}
        with pytest.raises(JobNotFound):
            queue.get(gone.id)


def connect(store_name: str, url: str) -> Any:
    if store_name == "postgres":
        return psycopg.connect(without_options(url))
    return contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///")))


def test_events_are_a_plain_loop(store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        with queue.events() as events:
            job = queue.enqueue("work")
            assert next(events).job_id == job.id
            lease = queue.claim()
            lease.complete(lease.jobs[0])
            assert [next(events).type, next(events).type] == ["job.started", "job.finished"]
            cursor = events.cursor
        assert cursor is not None
        assert [event.type for event in queue.events("0", follow=False)] == [
            "job.created",
            "job.started",
            "job.finished",
        ]
        assert list(queue.events(cursor, follow=False)) == []


def test_threads_that_share_a_queue_each_get_their_own_jobs(store_url: str) -> None:
    made: dict[int, list[str]] = {}
    refused: list[str] = []

    with Queue.sync(store_url) as queue:

        def enqueue(thread: int) -> None:
            made[thread] = []
            for number in range(25):
                job = queue.enqueue("mail", {"thread": thread, "number": number})
                made[thread].append(job.id)
                try:
                    queue.enqueue("mail", unique=f"{number}", on_conflict="reject")
                except DuplicateJob as error:
                    refused.append(error.existing)

        threads = [threading.Thread(target=enqueue, args=(thread,)) for thread in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, ids in made.items():
            stored = queue.get_many(ids)
            assert [stored[id].payload["number"] for id in ids] == list(range(25))
            assert {stored[id].payload["thread"] for id in ids} == {number}
        assert len(refused) == 7 * 25
        assert queue.counts()["ready"] == 8 * 25 + 25


async def test_a_thread_whose_loop_runs_may_block_it(store_url: str) -> None:
    queue = await asyncio.to_thread(Queue.sync, store_url)
    try:
        assert queue.get(queue.enqueue("mail").id).kind == "mail"
    finally:
        await asyncio.to_thread(queue.close)
