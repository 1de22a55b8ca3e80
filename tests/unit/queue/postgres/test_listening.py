"""N8: what is sent over Postgres and when, and a listener that is lost, deaf, or not to be had."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.builders import add, add_and_claim, add_many, claim, complete, row
from tests.conftest import CopyDatabase
from windrow.clock import Clock
from windrow.db.transactions import AsyncpgExecutor
from windrow.queue.postgres import listening
from windrow.queue.postgres.inserting import insert_row
from windrow.queue.postgres.listening import listening_address
from windrow.queue.postgres.store import PostgresStore

LONG = 20.0  # seconds; only a failing test waits for it


class Overheard:
    """All that is sent, on a connection of the test's own."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._heard: list[tuple[str, str]] = []
        self._channels: dict[str, str] = {}

    @classmethod
    async def begin(cls, url: str) -> Overheard:
        overheard = cls(await asyncpg.connect(url))
        for what in (listening.WORK, listening.END):
            channel = await overheard._connection.fetchval("SELECT windrow.channel($1)", what)
            overheard._channels[channel] = f"windrow_{what}"
            await overheard._connection.add_listener(channel, overheard._hear)
        return overheard

    def _hear(self, _connection: object, _pid: int, channel: str, payload: object) -> None:
        self._heard.append((self._channels[channel], str(payload)))

    async def so_far(self) -> list[tuple[str, str]]:
        """What was sent before now: one's own answer comes after it."""
        await self._connection.execute("SELECT 1")
        heard, self._heard = self._heard, []
        return heard

    async def close(self) -> None:
        await self._connection.close()


@pytest.fixture
def url(copy_database: CopyDatabase, postgres_template: str) -> str:
    return copy_database(postgres_template)


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(url, clock=Clock())
    yield opened
    await opened.close()


@pytest.fixture
async def overheard(url: str) -> AsyncIterator[Overheard]:
    opened = await Overheard.begin(url)
    yield opened
    await opened.close()


async def test_nothing_is_sent_while_nobody_sleeps(
    store: PostgresStore, overheard: Overheard
) -> None:
    await add_many(store, 1000)
    for job in await claim(store, 3):
        await complete(store, job)
    async with store.listen_for_work(["default"]):
        pass  # awake again
    await add(store)
    assert await overheard.so_far() == []


async def test_nothing_is_sent_for_a_queue_that_nobody_sleeps_on(
    store: PostgresStore, overheard: Overheard
) -> None:
    async with store.listen_for_work(["mine"]):
        await add(store, queue="theirs")
    assert await overheard.so_far() == []


async def test_a_thousand_jobs_are_told_once(store: PostgresStore, overheard: Overheard) -> None:
    async with store.listen_for_work(["default"]), store.listen_for_work(None):
        await add_many(store, 1000)
        assert await overheard.so_far() == [("windrow_work", "default")]
        await add_many(store, 3)
        assert await overheard.so_far() == [("windrow_work", "default")]


async def test_many_inserts_of_one_transaction_are_told_once(
    store: PostgresStore, overheard: Overheard, url: str
) -> None:

    caller = await asyncpg.connect(url)
    async with store.listen_for_work(None):
        async with caller.transaction():
            for queue in ("a", "b", "a", "b", "a"):
                await store.insert_jobs([row(queue=queue)], tx=caller)
            assert await overheard.so_far() == []
        assert sorted(await overheard.so_far()) == [("windrow_work", "a"), ("windrow_work", "b")]
    await caller.close()


async def test_only_ends_that_somebody_waits_for_are_told(
    store: PostgresStore, overheard: Overheard
) -> None:
    await add_many(store, 3)
    first, second, third = await claim(store, 3)
    await complete(store, first)
    async with store.listen_for_ends([first.id, second.id]):
        await complete(store, third)
        assert await overheard.so_far() == []
        await complete(store, second)
        assert await overheard.so_far() == [("windrow_end", second.id)]


async def test_folding_the_counts_is_no_news(store: PostgresStore, overheard: Overheard) -> None:
    await add_many(store, 3)
    job = await add_and_claim(store, priority=9)
    async with store.listen_for_work(None), store.listen_for_ends([job.id]):
        await store.fold_counts()
        assert await overheard.so_far() == []


async def test_a_sleeper_that_died_is_not_told(
    store: PostgresStore, overheard: Overheard, url: str
) -> None:
    connection = await asyncpg.connect(url)
    async with store.listen_for_work(None):
        await connection.execute("UPDATE windrow.sleeper SET until = now() - interval '1 s'")
        await add(store)
        assert await overheard.so_far() == []
    await connection.close()


async def test_a_lost_listener_is_made_anew_and_everybody_looks(
    store: PostgresStore, url: str
) -> None:
    connection = await asyncpg.connect(url)
    async with store.listen_for_work(["default"]) as bell:
        killed = await connection.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'windrow-listener'"
        )
        assert len(killed) == 1
        assert await bell.wait(LONG), "woken by the new connection"
        await add(store)
        assert await bell.wait(LONG), "woken by the insert"
    await connection.close()


async def test_a_listener_that_hears_nothing_says_so_and_polls(
    url: str,
    copy_database: CopyDatabase,
    postgres_template: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listening, "TEST_SECONDS", 0.3)
    elsewhere = copy_database(postgres_template)
    store = await PostgresStore.open(url, clock=Clock(), direct_url=elsewhere)
    with caplog.at_level(logging.WARNING):
        async with store.listen_for_work(None) as bell:
            assert not await bell.wait(0.01)
    assert "WINDROW_DATABASE_DIRECT_URL" in caplog.text
    await store.close()


async def test_a_listener_that_cannot_connect_says_so_and_polls(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = "postgresql://localhost:1/nowhere"
    store = await PostgresStore.open(url, clock=Clock(), direct_url=nowhere)
    with caplog.at_level(logging.WARNING):
        async with store.listen_for_work(None) as bell:
            assert not await bell.wait(0.01)
    assert "polling instead" in caplog.text
    await store.close()


@pytest.mark.parametrize(
    ("url", "direct_url", "address"),
    [
        ("postgresql://host/jobs", None, "postgresql://host/jobs"),
        ("postgresql://host/jobs?pool_size=3", "", "postgresql://host/jobs"),
        ("postgresql://pooler/jobs?pooled=true", None, None),
        (
            "postgresql://pooler/jobs?pooled=true",
            "postgresql://host/jobs",
            "postgresql://host/jobs",
        ),
        ("postgresql://pooler/jobs", "postgresql://host/jobs", "postgresql://host/jobs"),
    ],
)
def test_listening_goes_past_a_pooler_or_not_at_all(
    url: str, direct_url: str | None, address: str | None
) -> None:
    assert listening_address(url, direct_url) == address


async def test_a_sleeper_that_comes_while_others_commit_looks_once_more(
    store: PostgresStore, url: str
) -> None:
    committing = await asyncpg.connect(url)
    async with committing.transaction():
        await committing.execute(
            "SELECT pg_advisory_xact_lock_shared(hashtextextended('windrow.wake', 0))"
        )
        async with store.listen_for_work(None) as bell:
            assert await bell.wait(LONG)
    await committing.close()


async def test_a_sleeper_that_comes_while_a_job_is_inserted_looks_once_more(
    store: PostgresStore, overheard: Overheard, url: str
) -> None:
    """N8: the statement looks for sleepers itself, and is not seen before its commit."""
    inserting = await asyncpg.connect(url)
    async with inserting.transaction():
        assert await insert_row(AsyncpgExecutor(inserting), row(), None)
        async with store.listen_for_work(None) as bell:
            assert await bell.wait(LONG)
    assert await overheard.so_far() == []
    await inserting.close()


@pytest.mark.parametrize(
    "kinds", [["work"], ["work", "work"], ["work", "mail"]], ids=["one", "alike", "mixed"]
)
async def test_a_job_that_is_not_due_is_not_told(
    store: PostgresStore, overheard: Overheard, kinds: list[str]
) -> None:
    async with store.listen_for_work(None):
        await store.insert_jobs([row(kind, delay=600.0) for kind in kinds])
        await store.insert_jobs([row(kind, queue="due") for kind in kinds])
    assert await overheard.so_far() == [("windrow_work", "due")]
