"""What SQLite refuses comes out as an error of Windrow's that says what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.builders import add, claim, completion, exists, row
from windrow.clock import Clock
from windrow.errors import (
    ConfigError,
    StoreConflict,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from windrow.queue.sqlite.store import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(f"sqlite:///{tmp_path}/jobs.db", clock=Clock())
    await store.migrate()
    yield store
    await store.close()


async def set_up(store: SqliteStore, pragma: str) -> None:
    """Run a PRAGMA on the writer's connection."""
    await store._writer.run(lambda connection: connection.execute(f"PRAGMA {pragma}").fetchall())


async def test_full_disk_is_told_and_nothing_is_half_written(store: SqliteStore) -> None:
    await set_up(store, "max_page_count = 60")
    rows = [row(payload="x" * 1000) for _ in range(500)]
    with pytest.raises(StoreFull, match=r"jobs\.db"):
        await store.insert_jobs(rows)
    assert not await exists(store, rows[0].id)
    assert await store.list_queues() == []

    await set_up(store, "max_page_count = 1000000")
    await store.insert_jobs(rows)
    assert len(await claim(store, 1000)) == 500


async def test_read_only_database_can_still_be_read(store: SqliteStore) -> None:
    job_id = await add(store)
    await set_up(store, "query_only = on")
    with pytest.raises(StoreReadOnly, match=r"jobs\.db"):
        await add(store)

    assert await exists(store, job_id)


async def test_lock_that_is_never_released_is_a_conflict(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.db.sqlite.connection.BUSY_SECONDS", 0.05)
    other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreConflict) as refused:
        await add(store)
    assert refused.value.transient

    other.execute("ROLLBACK")
    other.close()
    await add(store)


async def test_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are just notes\n" * 100)
    with pytest.raises(StoreError, match=r"notes\.txt is not an SQLite database"):
        await SqliteStore.open(f"sqlite:///{tmp_path}/notes.txt", clock=Clock())


async def test_folder_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").mkdir()
    with pytest.raises(StoreUnavailable, match=r"cannot open .*jobs\.db"):
        await SqliteStore.open(f"sqlite:///{tmp_path}/jobs.db", clock=Clock())


async def test_closed_store_says_so(tmp_path: Path) -> None:
    store = await SqliteStore.open(f"sqlite:///{tmp_path}/jobs.db", clock=Clock())
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await add(store)
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.list_queues()


async def test_library_that_is_too_old_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(ConfigError, match=r"Windrow needs 3\.35\.0"):
        await SqliteStore.open(f"sqlite:///{tmp_path}/jobs.db", clock=Clock())


async def test_mistake_in_a_jobs_own_statement_undoes_the_finish(store: SqliteStore) -> None:
    job_id = await add(store)
    [job] = await claim(store)
    tx = await store.begin()
    await tx.execute("INSERT INTO no_such_table VALUES (?)", 1)
    with pytest.raises(StoreError, match="no_such_table"):
        await store.finish_jobs([completion(job)], tx=tx)

    assert (await store.get_jobs([job_id]))[job_id].state == "active"


@pytest.mark.parametrize("sql", ["COMMIT", " -- done\n commit", "/* x */ ; Rollback", "PRAGMA x"])
async def test_jobs_transaction_cannot_be_ended_from_inside(store: SqliteStore, sql: str) -> None:
    tx = await store.begin()
    with pytest.raises(StoreError, match="cannot be used"):
        await tx.execute(sql)


async def test_jobs_transaction_cannot_read(store: SqliteStore) -> None:
    tx = await store.begin()
    with pytest.raises(StoreError, match="only writes"):
        await tx.fetch("SELECT 1")


@pytest.mark.parametrize("strange", ["", "no-id", "\ud800", "nul\0"])
async def test_ids_that_cannot_be_are_just_not_found(store: SqliteStore, strange: str) -> None:
    assert await store.get_jobs([strange]) == {}
    for changes in (
        await store.cancel_jobs([strange], "no"),
        await store.retry_jobs([strange]),
        await store.delete_jobs([strange]),
    ):
        assert changes[strange].before is None
