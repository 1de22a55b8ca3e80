"""How far the stream of events can be read while transactions are under way, and what a prune does
beside readers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.builders import add
from windrow import Queue
from windrow.clock import FakeClock
from windrow.queue.events import OLDEST, Event
from windrow.queue.postgres.store import PostgresStore

DAY = 86_400
WRITE = (
    "INSERT INTO windrow.event (at, leaf, type, state, kind, job_ids)"
    " SELECT now(), windrow.event_leaf(now()), 'job.created', 'ready', %s,"
    " ARRAY[gen_random_uuid()] FROM generate_series(1, %s)"
)
TICKETS = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
    " AND classid::bigint >> 16 = 30569 AND pid = pg_backend_pid()"
)


@pytest.fixture
def beside(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction of somebody else."""
    with psycopg.connect(url) as connection:
        yield connection


async def all_events(store: PostgresStore) -> list[Event]:
    return [event async for event in Queue(store).events(OLDEST, follow=False)]


def tickets(connection: psycopg.Connection[Any]) -> int:
    found = connection.execute(TICKETS).fetchone()
    assert found is not None
    return int(found[0])


async def test_other_transactions_hold_no_reader_back(
    store: PostgresStore, beside: psycopg.Connection[Any]
) -> None:
    beside.execute("CREATE TABLE other AS SELECT pg_current_xact_id()")
    job_id = await add(store)

    assert [event.job_id for event in await all_events(store)] == [job_id]


async def test_a_transaction_holds_one_ticket_however_much_it_writes(
    store: PostgresStore, beside: psycopg.Connection[Any]
) -> None:
    for _ in range(20):
        beside.execute(WRITE, ("many", 100))
    assert tickets(beside) == 1
    beside.commit()

    assert tickets(beside) == 0
    assert len(await all_events(store)) == 2000


async def test_what_was_written_before_the_ticket_can_be_read(
    store: PostgresStore, beside: psycopg.Connection[Any]
) -> None:
    early = await add(store)
    beside.execute(WRITE, ("late", 1))
    await add(store)

    assert [event.job_id for event in await all_events(store)] == [early]


async def test_a_ticket_lost_with_a_savepoint_is_taken_anew(
    store: PostgresStore, beside: psycopg.Connection[Any]
) -> None:
    beside.execute("SAVEPOINT one")
    beside.execute(WRITE, ("undone", 1))
    beside.execute("ROLLBACK TO SAVEPOINT one")
    assert tickets(beside) == 0
    known = await add(store)
    assert [event.job_id for event in await all_events(store)] == [known]

    beside.execute(WRITE, ("late", 1))
    assert tickets(beside) == 1
    await add(store)
    assert len(await all_events(store)) == 1
    beside.commit()
    assert [event.kind for event in await all_events(store)] == ["work", "late", "work"]


async def test_a_savepoint_that_is_kept_keeps_the_ticket(
    beside: psycopg.Connection[Any],
) -> None:
    beside.execute("SAVEPOINT one")
    beside.execute(WRITE, ("kept", 1))
    beside.execute("RELEASE SAVEPOINT one")
    beside.execute(WRITE, ("kept", 1))

    assert tickets(beside) == 1


async def test_a_prune_waits_for_no_reader_and_nobody_for_it(
    store: PostgresStore, clock: FakeClock, beside: psycopg.Connection[Any]
) -> None:
    await add(store)
    clock.advance(2 * DAY)
    beside.execute("SELECT * FROM windrow.event").fetchall()
    assert await store.prune_events(DAY)
    assert len(await all_events(store)) == 1
    await add(store)
    beside.rollback()
    assert await store.prune_events(DAY)

    assert len(await all_events(store)) == 1


async def test_a_leaf_is_used_again_after_eight_days(
    store: PostgresStore, clock: FakeClock, beside: psycopg.Connection[Any]
) -> None:
    """A prune that comes late finds two ages in one leaf, and leaves it until both are old."""
    await add(store)
    clock.advance(8 * DAY)
    await add(store)
    leaves = beside.execute("SELECT DISTINCT leaf FROM windrow.event").fetchall()
    await store.prune_events(DAY)

    assert len(leaves) == 1
    assert len(await all_events(store)) == 2
    clock.advance(DAY + 1)
    beside.rollback()
    await store.prune_events(DAY)
    assert await all_events(store) == []
