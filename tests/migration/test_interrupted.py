"""Migrations and rollbacks that are cut off at the worst moment: what has come is neither lost nor
doubled, and what has run does not come again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults import FaultyStore
from tests.migration.test_legacy import jobs_of
from tests.migration.variants import build, build_many
from tests.processes import Command
from windrow import Queue
from windrow.errors import StoreUnavailable
from windrow.queue.opening import open_store
from windrow.queue.store import Store
from windrow.services.migration import migrating
from windrow.services.migration.migrating import migrate, roll_back, verify


@pytest.fixture
def break_off(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bool], None]:
    """Have the next store fail at the first call of a verb, after it was written or before."""

    def plan(verb: str, is_written: bool) -> None:
        async def open_faulty(url: str) -> Store:
            monkeypatch.undo()
            faulty = FaultyStore(await open_store(url))
            (faulty.lose_reply if is_written else faulty.fail_before)(verb)
            return faulty

        monkeypatch.setattr(migrating, "open_store", open_faulty)

    return plan


@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
async def test_a_migration_whose_reply_is_lost_is_repeated_without_doubling_u11(
    store_url: str, tmp_path: Path, break_off: Callable[[str, bool], None], is_written: bool
) -> None:
    legacy = str(build(tmp_path / "d.db", "D"))
    break_off("import_arrivals", is_written)
    with pytest.raises(StoreUnavailable):
        await migrate(store_url, legacy)
    came = 3 if is_written else 0
    assert len(await jobs_of(store_url)) == came

    async with Queue.open(store_url) as queue:  # what came runs meanwhile, and is forgotten
        for job in await queue.list(state="ready"):
            await queue.delete(job.id)
    left = len(await jobs_of(store_url))
    table = (await migrate(store_url, legacy)).tables["ingestion_queue"]

    assert (table.imported, table.known) == (3 - came, came)
    assert len(await jobs_of(store_url)) == left + 3 - came
    assert (await verify(store_url, legacy)).is_good


@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
async def test_a_rollback_whose_reply_is_lost_is_repeated_u11(
    store_url: str, tmp_path: Path, break_off: Callable[[str, bool], None], is_written: bool
) -> None:
    legacy = str(build(tmp_path / "d.db", "D"))
    await migrate(store_url, legacy)
    break_off("remove_imported", is_written)
    with pytest.raises(StoreUnavailable):
        await roll_back(store_url, legacy)

    report = await roll_back(store_url, legacy)

    assert (report.removed, report.kept_count) == (0 if is_written else 3, 0)
    assert await jobs_of(store_url) == []
    assert (await migrate(store_url, legacy)).tables["ingestion_queue"].imported == 3


async def test_what_has_run_and_is_gone_does_not_come_again_after_a_rollback_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = str(build(tmp_path / "d.db", "D"))
    await migrate(store_url, legacy)
    async with Queue.open(store_url) as queue:
        lease = await queue.claim(["unified_queue"], limit=1, seconds=30, worker="me")
        [ran] = lease.jobs
        await lease.complete(ran)
        await queue.delete(ran.id)

    report = await roll_back(store_url, legacy)

    assert (report.removed, report.kept_count) == (2, 1)
    assert report.kept == {ran.id: "it is gone: it has run, or was deleted"}
    table = (await migrate(store_url, legacy)).tables["ingestion_queue"]
    assert (table.imported, table.known) == (2, 1)


async def test_a_rollback_that_is_killed_goes_on_where_it_was_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build_many(tmp_path / "many.db", 3000)
    await migrate(store_url, str(legacy))
    words = ("migrate", "legacy", "--from", str(legacy), "--rollback", "--yes", "-d", store_url)
    process = Command(*words, cwd=tmp_path, environment=os.environ)
    async with Queue.open(store_url) as queue:

        async def count() -> int:
            return sum((await queue.counts("unified_queue")).values())

        async with asyncio.timeout(60):
            while await count() == 3000:
                await asyncio.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        left = await count()
        assert left % 500 == 0
        report = await roll_back(store_url, str(legacy))
        assert (report.removed, report.kept_count) == (left, 0)
        table = (await migrate(store_url, str(legacy))).tables["ingestion_queue"]
        assert (table.imported, table.known, await count()) == (3000, 0, 3000)
