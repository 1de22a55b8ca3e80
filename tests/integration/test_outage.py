"""N8: the database goes away and comes back. Who waits for a job, or for work, is still there."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import asyncpg
import pytest

from tests.builders import add, claim
from tests.conftest import MakeDatabase
from tests.faults import FaultyStore
from tests.postgres_server import PostgresServer
from windrow import Queue
from windrow.clock import Clock
from windrow.errors import StoreUnavailable
from windrow.queue.postgres.store import PostgresStore

LONG = 120.0  # seconds; only a failing test waits for it, and a busy machine needs 30
ROUNDS = 15
STOPS = pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restart", "crash"])
END_LISTENERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name = 'windrow-listener'"
)


def finish_elsewhere(url: str) -> None:
    with Queue.sync(url) as queue:
        lease = queue.claim()
        lease.complete(lease.jobs[0], {"done": "elsewhere"})


@STOPS
async def test_a_wait_outlasts_a_restart_of_the_database(
    server: PostgresServer, queue: Queue, how: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    made = await queue.enqueue("work")
    # Spawned: a child must not inherit the threads and connections of this process.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        await loop.run_in_executor(other, abs, 1)  # it runs before the server is gone
        waiter = asyncio.create_task(queue.wait(made.id, timeout=LONG))
        await asyncio.sleep(0)
        await asyncio.to_thread(server.halt, how)
        while "waiting for the database to come back" not in caplog.text:
            assert not waiter.done()
            await asyncio.sleep(0.01)
        await asyncio.to_thread(server.resume)
        await loop.run_in_executor(other, finish_elsewhere, server.url())
        assert (await waiter).result == {"done": "elsewhere"}


async def test_a_wait_whose_time_is_up_in_an_outage_says_that_the_database_is_away(
    server: PostgresServer, queue: Queue
) -> None:
    made = await queue.enqueue("work")
    await asyncio.to_thread(server.halt)
    with pytest.raises(StoreUnavailable):
        await queue.wait(made.id, timeout=0.7)


@STOPS
async def test_sleepers_are_told_again_after_a_restart(
    server: PostgresServer, queue: Queue, how: signal.Signals
) -> None:
    """A crash empties the tables of who sleeps, so they write themselves down once more."""
    async with queue.store.listen_for_work(["default"]) as bell:
        assert not await bell.wait(0.01)
        await asyncio.to_thread(server.halt, how)
        await asyncio.to_thread(server.resume)
        assert await bell.wait(LONG), "the listener is back"
        while await bell.wait(0.2):  # and written down anew: look, unless both were one ring
            continue
        await queue.enqueue("work")
        assert await bell.wait(LONG), "told"


async def test_no_work_is_slept_over_while_listeners_are_killed(
    make_database: MakeDatabase, postgres_template: str
) -> None:
    """The listener's session is ended at the very moment at which a job comes, again and again:
    whoever sleeps is woken by the job or by the listener that is back."""
    url = make_database(postgres_template)
    store = await PostgresStore.open(url, clock=Clock())
    other = await PostgresStore.open(url, clock=Clock())
    beside: Any = await asyncpg.connect(url)
    ended = 0
    async with store.listen_for_work(["default"]) as bell:
        for n in range(ROUNDS):
            killed, _ = await asyncio.gather(beside.fetch(END_LISTENERS), add(other))
            ended += len(killed)
            while not await claim(store):
                assert await bell.wait(LONG), f"slept over the job of round {n}"
    assert ended > 0
    await beside.close()
    for opened in (store, other):
        await opened.close()


async def test_a_wait_goes_on_after_looks_that_failed(
    make_database: MakeDatabase, postgres_template: str
) -> None:
    store = await PostgresStore.open(make_database(postgres_template), clock=Clock())
    faulty: Any = FaultyStore(store)
    for call in (1, 2, 4):
        faulty.fail_before("get_states", call)
    faulty.lose_reply("get_jobs", 1)
    queue = Queue(faulty)
    made = await queue.enqueue("work")
    waiter = asyncio.create_task(queue.wait(made.id, timeout=LONG))
    lease = await Queue(store).claim()
    await lease.complete(lease.jobs[0])
    assert (await waiter).id == made.id
    await store.close()
