"""Rows, keys and groups are locked in one order, so that busy workers do not deadlock.

A deadlock is retried and loses nothing, but it costs a second (`deadlock_timeout`) before the
server breaks it. Here workers end runs of several groups and hand on jobs with unique keys,
producers add jobs with the same keys to the same groups, and somebody changes many jobs at once.
docs/decisions/0012-lock-order.md has the order, and what is done out of it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import psycopg
import pytest

from tests.builders import add, boom, claim, completion, finish_of, make_group, row, wish
from tests.conformance.test_documents import document, put
from windrow.catalog import Catalog
from windrow.catalog.contents import Written
from windrow.clock import Clock
from windrow.queue.job import JobState
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.records import JobRow
from windrow.queue.store import Store

TURNS = 60
ENDS = (JobState.COMPLETED, JobState.COMPLETED, JobState.READY)


class Busy:
    """One store of several on a database, and its dice."""

    def __init__(self, store: Store, groups: list[str], jobs: list[str], seed: int) -> None:
        self.store = store
        self.groups = groups
        self.jobs = jobs
        self.dice = random.Random(seed)

    def new(self) -> JobRow:
        return row(unique=self.dice.choice("abcdefgh"), group=self.dice.choice(self.groups))

    async def produce(self) -> None:
        for _ in range(TURNS):
            inserted = await self.store.insert_jobs([self.new() for _ in range(6)])
            self.jobs += [one.id for one in inserted]

    async def work(self) -> None:
        for _ in range(TURNS):
            running = await self.store.claim_jobs(wish(5))
            self.dice.shuffle(running)
            ends = [
                finish_of(job, self.dice.choice(ENDS), error=boom(), then=(self.new(), self.new()))
                for job in running
            ]
            await self.store.finish_jobs(ends)

    async def change(self) -> None:
        for _ in range(TURNS):
            some = self.dice.sample(self.jobs, min(8, len(self.jobs)))
            verbs = [self.store.pause_jobs, self.store.resume_jobs]
            await self.dice.choice(verbs)(some)


@pytest.mark.long
async def test_busy_workers_and_producers_do_not_deadlock(
    make_database: Callable[[], str],
) -> None:
    url = make_database()
    stores = [await PostgresStore.open(url, clock=Clock()) for _ in range(6)]
    await stores[0].migrate()
    groups = [(await make_group(stores[0], is_open=True)).id for _ in range(3)]
    jobs: list[str] = []
    crowd = [Busy(store, groups, jobs, seed) for seed, store in enumerate(stores)]
    await asyncio.gather(
        *(one.produce() for one in crowd[:2]),
        *(one.work() for one in crowd[2:5]),
        crowd[5].change(),
    )
    for store in stores:
        await store.close()

    assert deadlocks(url) == 0


async def test_the_end_of_a_group_does_not_wait_for_who_has_its_root(
    make_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The root is needed after the group, against the order: so nothing is held meanwhile."""
    has_let_go = asyncio.Event()

    def pause(least: float, most: float) -> float:
        has_let_go.set()
        return most

    monkeypatch.setattr("windrow.db.postgres.connections.random.uniform", pause)
    url = make_database()
    store = await PostgresStore.open(url, clock=Clock())
    await store.migrate()
    root = await add(store, "root")
    [run] = await claim(store, 1)
    group = await make_group(store, root=root)
    await add(store, group=group.id)
    await store.finish_jobs([completion(run)])
    [member] = await claim(store, 1)
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("SELECT FROM windrow.job_live WHERE id = %s FOR UPDATE", [root])
        ending = asyncio.create_task(store.finish_jobs([completion(member)]))
        async with asyncio.timeout(20):
            await has_let_go.wait()
        await other.execute("SELECT FROM windrow.job_group WHERE id = %s FOR UPDATE", [group.id])
        await other.commit()
    await ending
    ended = await store.get_jobs([root])
    assert ended[root].state is JobState.COMPLETED
    await store.close()
    assert deadlocks(url) == 0


async def test_end_in_a_transaction_of_its_own_locks_the_root_before_the_group(
    make_database: Callable[[], str],
) -> None:
    """It cannot be retried, so a deadlock with the end of the root would end in another run."""
    url = make_database()
    store = await PostgresStore.open(url, clock=Clock())
    await store.migrate()
    root = await add(store, "root")
    [run] = await claim(store, 1)
    group = await make_group(store, root=root)
    await add(store, group=group.id)
    [member] = await claim(store, 1)
    tx = await store.begin()
    await tx.note(group.id, "answers", ["404"])
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("SELECT FROM windrow.job_live WHERE id = %s FOR UPDATE", [root])
        ending = asyncio.create_task(store.finish_jobs([completion(member)], tx=tx))
        await _until_blocked(url)
        await other.execute("SELECT FROM windrow.job_group WHERE id = %s FOR UPDATE", [group.id])
        await other.commit()
    assert (await ending).lost == ()
    await store.finish_jobs([completion(run)])
    ended = await store.get_jobs([root])
    assert ended[root].state is JobState.COMPLETED
    await store.close()
    assert deadlocks(url) == 0


async def test_a_transaction_that_waited_and_was_ended_for_a_deadlock_is_done_again(
    make_database: Callable[[], str],
) -> None:
    """After some tries a root is waited for against the order, and whoever has it may want the
    group: the server ends who has waited longer."""
    url = make_database()
    store = await PostgresStore.open(url, clock=Clock())
    await store.migrate()
    root = await add(store, "root")
    [run] = await claim(store, 1)
    group = await make_group(store, root=root)
    await store.finish_jobs([completion(run)])
    member = await add(store, group=group.id)
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("SET deadlock_timeout = '60s'")
        await other.execute("SELECT FROM windrow.job_live WHERE id = %s FOR UPDATE", [root])
        cancelling = asyncio.create_task(store.cancel_group(group.id, "enough"))
        await _until_blocked(url)
        await other.execute("SELECT FROM windrow.job_group WHERE id = %s FOR UPDATE", [group.id])
        await other.commit()
    cancelled = await cancelling
    assert cancelled.state == "cancelled"
    found = await store.get_jobs([root, member])
    assert {job.state for job in found.values()} == {JobState.CANCELLED}
    await store.close()
    assert deadlocks(url) == 1


async def test_a_group_is_cancelled_beside_who_changes_its_members(
    make_database: Callable[[], str],
) -> None:
    """Its members are locked in the order of their ids, whether they run or not."""
    url = make_database()
    store = await PostgresStore.open(url, clock=Clock())
    await store.migrate()
    group = await make_group(store)
    running = await add(store, group=group.id, priority=9)
    waiting = await add(store, group=group.id)
    await claim(store, 1)
    async with await psycopg.AsyncConnection.connect(url) as other:
        lock = "SELECT FROM windrow.job_live WHERE id = %s FOR UPDATE"
        await other.execute(lock, [running])
        cancelling = asyncio.create_task(store.cancel_group(group.id, "enough"))
        await _until_blocked(url)
        await other.execute(lock, [waiting])
        await other.commit()
    await cancelling
    await store.close()
    assert deadlocks(url) == 0


async def test_contents_are_locked_before_documents_by_the_index_too(
    make_database: Callable[[], str],
) -> None:
    """As by a page that is scraped again while its text is written to the index."""
    url = make_database()
    store = await PostgresStore.open(url, clock=Clock())
    await store.migrate()
    row, content = document()
    await put(store, (row, content))
    catalog = Catalog(store.database)
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("SELECT FROM windrow.content WHERE id = %s FOR UPDATE", [content.id])
        switching = asyncio.create_task(catalog.contents.switch([Written(content.id, 1, "space")]))
        await _until_blocked(url)
        await other.execute("SELECT FROM windrow.document WHERE id = %s FOR UPDATE", [row.id])
        await other.commit()
    await switching
    [found] = await catalog.documents.get([row.id])
    assert found.is_searchable
    await store.close()
    assert deadlocks(url) == 0


async def test_a_page_that_another_crawl_meets_while_it_is_being_deleted_stays(
    make_database: Callable[[], str],
) -> None:
    """The condition is checked again for the row as it is after the wait for its lock."""
    url = make_database()
    store = await PostgresStore.open(url, clock=Clock())
    await store.migrate()
    pages = [document(uri=uri, metadata={"crawl": "first"}) for uri in ("a", "b")]
    await put(store, *pages)
    catalog = Catalog(store.database)
    (met, _), (unmet, _) = pages
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute(
            """UPDATE windrow.document SET metadata = '{"crawl": "second"}' WHERE id = %s""",
            [met.id],
        )
        deleting = asyncio.create_task(
            catalog.documents.delete_pages({met.id: "first", unmet.id: "first"})
        )
        await _until_blocked(url)
        await other.commit()

    assert await deleting == 1
    assert [one.id for one in await catalog.documents.get([met.id, unmet.id])] == [met.id]
    await store.close()


async def _until_blocked(url: str) -> None:
    """Until somebody waits for a lock in the database."""
    query = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    async with (
        asyncio.timeout(20),
        await psycopg.AsyncConnection.connect(url, autocommit=True) as db,
    ):
        while (await (await db.execute(query)).fetchone()) == (0,):
            await asyncio.sleep(0.01)


def deadlocks(url: str) -> int:
    """How many the server has broken on a database so far."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert found is not None
    return int(found[0])
