"""register_worker: who is alive, by the database's clock."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import UNKNOWN_ID
from tests.conformance.conftest import RunSql
from tests.conftest import OpenAnother
from tests.faults import FaultyStore
from windrow.clock import Clock, FakeClock
from windrow.errors import StoreUnavailable
from windrow.ids import new_id
from windrow.queue.records import WorkerRow
from windrow.queue.store import Store


def worker(name: str = "host:1", **fields: Any) -> WorkerRow:
    defaults: dict[str, Any] = {"queues": None, "kinds": None, "concurrency": 4}
    return WorkerRow(id=new_id(), name=name, host="host", pid=1, **(defaults | fields))


async def names(store: Store) -> list[str]:
    return [info.name for info in await store.list_workers()]


async def test_registered_worker_is_listed_with_all_it_said(store: Store, clock: FakeClock) -> None:
    now = clock.now()
    row = worker(queues=("web", "ü"), kinds=("scrape",), running=3, version="1.2", trouble="ö")
    await store.register_worker(row, 10)

    [info] = await store.list_workers()

    assert info.id == row.id
    assert (info.name, info.host, info.pid) == ("host:1", "host", 1)
    assert (info.queues, info.kinds) == (("web", "ü"), ("scrape",))
    assert (info.concurrency, info.running, info.version, info.trouble) == (4, 3, "1.2", "ö")
    assert (info.started_at, info.seen_at) == (now, now)
    assert info.expires_at == now + timedelta(seconds=10)


async def test_one_that_takes_anything_is_told_from_one_that_takes_nothing(store: Store) -> None:
    await store.register_worker(worker("a"), 10)
    await store.register_worker(worker("b", queues=(), kinds=()), 10)
    first, second = await store.list_workers()
    assert (first.queues, first.kinds) == (None, None)
    assert (second.queues, second.kinds) == ((), ())
    assert first.takes("web", "scrape")
    assert not second.takes("web", "scrape")


async def test_heartbeat_keeps_it_alive_and_tells_how_it_is(store: Store, clock: FakeClock) -> None:
    began = clock.now()
    row = worker()
    await store.register_worker(row, 10)
    clock.advance(9)
    changed = WorkerRow(row.id, "host:1", "host", 1, ("web",), None, 8, 5, "2")
    await store.register_worker(changed, 10)
    clock.advance(9)

    [info] = await store.list_workers()

    assert (info.queues, info.concurrency, info.running, info.version) == (("web",), 8, 5, "2")
    assert info.started_at == began
    assert info.seen_at == began + timedelta(seconds=9)


async def test_silent_worker_is_not_listed_and_then_forgotten(
    store: Store, clock: FakeClock, run_sql: RunSql
) -> None:
    await store.register_worker(worker("silent"), 0.5)
    clock.advance(0.499999)
    assert await names(store) == ["silent"]
    clock.advance(0.000001)
    assert await names(store) == []
    await store.register_worker(worker("alive"), 10)
    assert run_sql("select name from windrow.worker") == [("alive",)]


async def test_one_that_was_silent_too_long_comes_back(store: Store, clock: FakeClock) -> None:
    row = worker()
    await store.register_worker(row, 10)
    clock.advance(60)
    await store.register_worker(row, 10)
    assert await names(store) == ["host:1"]


async def test_worker_that_stops_is_gone_at_once(store: Store) -> None:
    row = worker()
    await store.register_worker(row, 10)
    assert await store.drop_worker(row.id)
    assert not await store.drop_worker(row.id)
    assert await names(store) == []


@pytest.mark.parametrize("unknown", [UNKNOWN_ID, "no id", ""])
async def test_dropping_nobody_changes_nothing(store: Store, unknown: str) -> None:
    await store.register_worker(worker(), 10)
    assert not await store.drop_worker(unknown)
    assert await names(store) == ["host:1"]


async def test_workers_are_listed_by_name(store: Store) -> None:
    for name in ("b:2", "a:9", "B:1", "a:10"):
        await store.register_worker(worker(name), 10)
    assert await names(store) == ["B:1", "a:10", "a:9", "b:2"]


async def test_registering_whose_reply_was_lost_is_repeated(store: Store) -> None:
    faulty = FaultyStore(store)
    faulty.lose_reply("register_worker")
    row = worker()
    with pytest.raises(StoreUnavailable):
        await faulty.register_worker(row, 10)
    await faulty.register_worker(row, 10)
    assert await names(store) == ["host:1"]


async def test_those_that_take_each_other_for_dead_all_come_back(
    store: Store, open_another: OpenAnother, clock: FakeClock
) -> None:
    stores = [store, *[await open_another() for _ in range(3)]]
    rows = [worker(f"host:{n}") for n in range(8)]
    for _ in range(20):
        await asyncio.gather(
            *(stores[n % 4].register_worker(row, 10) for n, row in enumerate(rows))
        )
        clock.advance(10)
    await asyncio.gather(*(store.register_worker(row, 10) for row in rows))
    assert sorted(await names(store)) == [row.name for row in rows]


async def test_the_databases_own_clock_counts_when_none_is_given(open_another: OpenAnother) -> None:
    real = await open_another(Clock())
    await real.register_worker(worker("alive"), 3600)
    await real.register_worker(worker("dead"), 0)
    assert await names(real) == ["alive"]
