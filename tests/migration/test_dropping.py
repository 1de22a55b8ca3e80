"""Tables that are dropped where they were: what came from them is then the only copy."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn, cast

import asyncpg
import pytest

from tests.conftest import MakeDatabase
from tests.migration.test_legacy import jobs_of
from tests.migration.variants import D, build, dump
from windrow import Queue
from windrow.errors import MigrationFailed
from windrow.queue.importing import ImportStore
from windrow.services.migration import migrating
from windrow.services.migration.migrating import drop, migrate, roll_back, verify
from windrow.services.migration.origins import SqliteOrigin, open_database


async def name_of(legacy: Path) -> str:
    origin = await open_database(str(legacy))
    await origin.close()
    return origin.name


@pytest.mark.parametrize("is_made_again", [False, True])
async def test_what_came_from_a_dropped_table_is_not_rolled_back(
    store_url: str, tmp_path: Path, is_made_again: bool
) -> None:
    legacy = build(tmp_path / "d.db", "D")
    await migrate(store_url, str(legacy))
    assert (await drop(store_url, str(legacy), is_discarding=True)).is_dropped
    if is_made_again:  # by the old program, which was started once more
        with closing(sqlite3.connect(legacy)) as db, db:
            db.executescript(D)

    report = await roll_back(store_url, str(legacy))

    assert (report.removed, report.kept_count) == (0, 3)
    assert all("was dropped there on" in why for why in report.kept.values())
    assert len(await jobs_of(store_url)) == 3


async def test_what_came_from_a_table_that_somebody_else_dropped_is_not_rolled_back(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "d.db", "D", "others")
    await migrate(store_url, str(legacy))
    with closing(sqlite3.connect(legacy)) as db, db:
        db.execute("DROP TABLE ingestion_queue")

    report = await roll_back(store_url, str(legacy))

    assert (report.removed, report.kept_count) == (9, 3)
    assert all("is not there any more" in why for why in report.kept.values())
    assert {job.payload["file_path"].split("/")[1] for job in await jobs_of(store_url)} == {"d"}


async def test_what_came_from_dropped_tables_of_postgres_is_not_rolled_back(
    store_url: str, make_database: MakeDatabase
) -> None:
    url = make_database()
    db = await asyncpg.connect(url)
    await db.execute("CREATE TABLE crawl_jobs (id text PRIMARY KEY, payload text)")
    await db.execute("INSERT INTO crawl_jobs VALUES ('a', '{}')")
    await migrate(store_url, url)
    assert (await drop(store_url, url)).is_dropped
    await db.execute("CREATE TABLE crawl_jobs (id text PRIMARY KEY, payload text)")
    await db.close()

    report = await roll_back(store_url, url)

    assert (report.removed, report.kept_count) == (0, 1)
    assert len(await jobs_of(store_url)) == 1


async def test_tables_that_were_not_dropped_after_all_can_be_rolled_back(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    legacy = build(tmp_path / "d.db", "D")
    await migrate(store_url, str(legacy))

    async def refuse(*_: Any) -> NoReturn:
        raise MigrationFailed("not now")

    for step in ("_verify", "drop"):
        with monkeypatch.context() as patch:
            patch.setattr(migrating if step == "_verify" else SqliteOrigin, step, refuse)
            with pytest.raises(MigrationFailed, match="not now"):
                await drop(store_url, str(legacy), is_discarding=True)
    with closing(sqlite3.connect(legacy)) as db, db:
        db.execute("UPDATE ingestion_queue SET priority = 1")
    assert not (await drop(store_url, str(legacy))).is_good

    assert (await roll_back(store_url, str(legacy))).removed == 3


async def test_a_rollback_that_began_before_a_drop_takes_nothing_away_that_is_dropped(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    legacy = build(tmp_path / "d.db", "D")
    await migrate(store_url, str(legacy))
    looked, dropped = asyncio.Event(), asyncio.Event()
    looking = migrating._only_there

    async def look_early(*given: Any) -> Any:
        found = await looking(*given)
        looked.set()
        await dropped.wait()
        return found

    monkeypatch.setattr(migrating, "_only_there", look_early)
    rollback = asyncio.create_task(roll_back(store_url, str(legacy)))
    await looked.wait()
    assert (await drop(store_url, str(legacy), is_discarding=True)).is_dropped
    dropped.set()

    report = await rollback

    assert (report.removed, report.kept_count) == (0, 3)
    assert len(await jobs_of(store_url)) == 3
    assert "ingestion_queue" not in dump(legacy)


async def test_of_a_drop_and_a_removal_at_once_one_waits_for_the_other(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "d.db", "D")
    tables = ["ingestion_queue"]
    for _ in range(5):
        await migrate(store_url, str(legacy))
        async with Queue.open(store_url) as one, Queue.open(store_url) as two:
            noted, other = await name_of(legacy), cast(ImportStore, two.store)
            keys = [note.key for note in await other.list_imported(noted, "", 10)]
            removal, fresh = await asyncio.gather(
                cast(ImportStore, one.store).remove_imported(noted, keys, tables),
                other.note_dropped(noted, tables),
            )
            left = await other.find_imported(noted, keys)
            assert fresh == tables
            assert (removal.jobs, len(left)) in ((3, 0), (0, 3))
            await other.forget_dropped(noted, tables)


async def test_rows_that_are_done_keep_the_tables_from_being_dropped(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "d.db", "D")
    await migrate(store_url, str(legacy))
    before = dump(legacy)

    kept = await drop(store_url, str(legacy))

    assert (kept.is_good, kept.is_dropped, kept.done) == (True, False, {"ingestion_queue": 1})
    assert dump(legacy) == before
    await migrate(store_url, str(legacy), with_finished=True)
    assert (await drop(store_url, str(legacy), with_finished=True)).is_dropped


@pytest.mark.parametrize(
    ("needs", "what"),
    [
        ("CREATE VIEW waiting AS SELECT count(*) FROM crawl_jobs", "view waiting"),
        ("CREATE TABLE pages (crawl TEXT REFERENCES crawl_jobs (id))", "pages"),
    ],
)
@pytest.mark.parametrize("is_postgres", [False, True], ids=["file", "server"])
async def test_what_others_need_is_not_dropped_and_they_are_named(
    store_url: str,
    tmp_path: Path,
    make_database: MakeDatabase,
    needs: str,
    what: str,
    is_postgres: bool,
) -> None:
    schema = "CREATE TABLE crawl_jobs (id TEXT PRIMARY KEY, payload TEXT);"
    schema += f"INSERT INTO crawl_jobs VALUES ('a', '{{}}'); {needs};"
    if is_postgres:
        place = make_database()
        db = await asyncpg.connect(place)
        await db.execute(schema)
        await db.close()
    else:
        place = str(tmp_path / "old.db")
        with closing(sqlite3.connect(place)) as file, file:
            file.executescript(schema + "CREATE VIEW broken AS SELECT * FROM gone;")
    await migrate(store_url, place)

    with pytest.raises(MigrationFailed, match=what):
        await drop(store_url, place)

    assert (await verify(store_url, place)).matched["crawl_jobs"] == 1
    assert (await roll_back(store_url, place)).removed == 1
