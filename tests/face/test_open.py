"""Opening a queue: what is made by itself, what is asked for, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.conftest import connect_beside
from tests.conftest import MakeDatabase
from tests.migrations import make_development_database, traces
from windrow import Queue
from windrow.errors import (
    ConfigError,
    SchemaOutdated,
    SchemaTooNew,
    SchemaTooOld,
    StoreError,
    StoreUnavailable,
)


async def test_a_sqlite_queue_is_made_when_it_is_opened(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    async with Queue.open(url) as queue:
        made = await queue.enqueue("work")
    queue = await Queue.open(url)
    try:
        assert (await queue.get(made.id)).kind == "work"
    finally:
        await queue.close()


async def test_an_empty_postgres_says_what_to_run(make_database: MakeDatabase) -> None:
    url = make_database()
    with pytest.raises(SchemaOutdated, match=r"has no Windrow tables yet.*windrow db migrate"):
        await Queue.open(url)
    async with Queue.open(url, migrate=True) as queue:
        await queue.enqueue("work")
    async with Queue.open(url) as queue:
        assert await queue.claim()


async def test_a_database_of_a_newer_version_is_refused(store_url: str, store_name: str) -> None:
    async with Queue.open(store_url) as queue:
        await queue.enqueue("work")
        [job] = (lease := await queue.claim()).jobs
        table = "windrow.migration" if store_name == "postgres" else "windrow_migration"
        await job.tx.execute(f"UPDATE {table} SET version = version + 1000")
        await lease.complete(job)
    with pytest.raises(SchemaTooNew, match="upgrade Windrow"):
        await Queue.open(store_url)
    with pytest.raises(SchemaTooNew):
        await Queue.open(store_url, migrate=True)


@pytest.mark.parametrize("should_migrate", [None, True, False])
async def test_a_database_of_a_development_version_is_refused(
    empty_url: str, store_name: str, should_migrate: bool | None
) -> None:
    beside = connect_beside(store_name, empty_url)
    make_development_database(store_name, beside)
    before = traces(store_name, beside)
    with pytest.raises(SchemaTooOld, match="start with a new database"):
        await Queue.open(empty_url, migrate=should_migrate)
    assert traces(store_name, beside) == before
    beside.close()


@pytest.mark.parametrize(
    "url", ["", "jobs.db", "mysql://root@localhost/x", "sqlite://", "sqlite:///:memory:"]
)
async def test_a_url_it_does_not_know_is_explained(url: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:///"):
        await Queue.open(url)


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises((ConfigError, StoreError), match="nowhere"):
        await Queue.open(f"sqlite:///{tmp_path}/nowhere/jobs.db")


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are notes, not a database " * 100)
    with pytest.raises(StoreError, match=r"notes\.db"):
        await Queue.open(f"sqlite:///{tmp_path / 'notes.db'}")


async def test_a_server_that_is_not_there_is_unavailable(
    unused_tcp_port_factory: Callable[[], int],
) -> None:
    url = f"postgresql://windrow@127.0.0.1:{unused_tcp_port_factory()}/jobs"
    with pytest.raises(StoreUnavailable):
        await Queue.open(url)
