"""U11: the five ingestion tables of old programs, in all their variants, become jobs once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.migration.variants import build, build_many, build_shared, dump
from tests.processes import Command
from windrow import Job, Queue, Worker, handler
from windrow.errors import MigrationFailed
from windrow.queue.job import JobState
from windrow.services.migration import readings
from windrow.services.migration.arriving import Context
from windrow.services.migration.migrating import (
    drop,
    migrate,
    roll_back,
    verify,
)
from windrow.services.migration.origins import Row, SqliteOrigin


async def jobs_of(url: str) -> list[Job]:
    """All of them, with their errors."""
    jobs: list[Job] = []
    async with Queue.open(url) as queue:
        after: str | None = None
        while page := await queue.list(limit=500, after=after):
            jobs += (await queue.get_many([job.id for job in page])).values()
            after = page[-1].id
    return jobs


def by_path(jobs: list[Job]) -> dict[str, Job]:
    return {job.payload.get("file_path", job.id): job for job in jobs}


async def test_rows_of_variant_a_become_items_and_odd_ones_fail_with_the_reason_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "a.db", "A")
    report = await migrate(store_url, str(legacy))
    table = report.tables["ingestion_queue"]
    assert (table.rows, table.imported, table.spoilt, table.refused_count) == (5, 5, 2, 0)
    jobs = await jobs_of(store_url)
    found = {job.payload.get("file_path") or job.payload["file_absolute_path"]: job for job in jobs}
    plain = found["/src/main.rs"]
    assert (plain.kind, plain.queue, plain.state) == (
        "file.ingest",
        "unified_queue",
        JobState.READY,
    )
    assert (plain.tenant, plain.priority, plain.headers["collection"]) == ("t1", 7, "projects")
    assert json.loads(plain.headers["metadata"])["migrated_from"] == "ingestion_queue"
    odd = found["/src/naïve café.md"]
    assert (odd.tenant, odd.attempts, odd.kind) == (None, 2, "file.update")
    assert json.loads(odd.headers["metadata"]) == {
        "unreadable": "{broken",
        "retry_from": "/src/main.rs",
        "migrated_from": "ingestion_queue",
    }
    assert found["/文档/说明.md"].priority == 10
    for path, reason in (("relative.txt", "absolute path"), ("/src/gone.py", "vacuum")):
        spoilt = found[path]
        assert spoilt.state is JobState.FAILED
        assert reason in spoilt.errors[-1].message


@pytest.mark.parametrize(("variant", "state"), [("B", JobState.READY), ("C", JobState.SCHEDULED)])
async def test_errors_come_from_messages_and_a_time_to_retry_is_kept_u11(
    store_url: str, tmp_path: Path, variant: str, state: JobState
) -> None:
    await migrate(store_url, str(build(tmp_path / "b.db", variant)))
    job = by_path(await jobs_of(store_url))["/b/one.py"]
    assert (job.state, job.attempts, job.max_attempts) == (state, 3, 4)
    assert [error.message for error in job.errors] == ["disk full"]


async def test_rows_with_a_status_are_what_they_were_and_begun_ones_wait_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "d.db", "D")
    report = await migrate(store_url, str(legacy))
    jobs = by_path(await jobs_of(store_url))
    assert {path: job.state.value for path, job in jobs.items()} == {
        "/d/waiting.py": "ready",
        "/d/begun.py": "ready",
        "/d/failed.py": "failed",
    }
    assert jobs["/d/waiting.py"].id == "01234567-89ab-cdef-0123-456789abcdef"
    assert report.tables["ingestion_queue"].left == {"done already": 1}
    again = await migrate(store_url, str(legacy), with_finished=True)
    assert (again.tables["ingestion_queue"].imported, again.tables["ingestion_queue"].known) == (
        1,
        3,
    )


async def test_the_other_four_tables_and_dead_letters_come_too_u11(
    store_url: str, tmp_path: Path
) -> None:
    report = await migrate(store_url, str(build(tmp_path / "o.db", "others")))
    came = {name: (table.imported, table.left.total()) for name, table in report.tables.items()}
    assert came == {
        "content_ingestion_queue": (3, 1),
        "processing_queue": (2, 0),
        "missing_metadata_queue": (2, 0),
        "cumulative_deletions_queue": (1, 1),
        "dead_letter_queue": (1, 1),
    }
    jobs = await jobs_of(store_url)
    notes = {job.payload["content"]: job for job in jobs if job.kind == "content.ingest"}
    assert (notes["A note"].tenant, notes["A note"].headers["branch"]) == ("proj", "dev")
    assert notes["Half done"].state is JobState.READY
    assert notes["Broken"].state is JobState.FAILED
    files = by_path([job for job in jobs if job.kind.startswith("file.")])
    assert (files["/p/one.pdf"].priority, files["/p/one.pdf"].tenant) == (9, "t9")
    assert (files["/p/two.pdf"].priority, files["/p/two.pdf"].state) == (5, JobState.SCHEDULED)
    assert sorted(str(job.tenant) for job in jobs if job.payload.get("file_path") == "/m/a.py") == [
        "t1",
        "t2",
    ]
    assert files["/x/old.py"].kind == "file.delete"
    assert files["/x/old.py"].state is JobState.SCHEDULED
    assert files["/dlq/a.py"].errors[0].message == "no parser"


async def test_dead_letters_of_every_type_fail_here_with_their_error_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "head.db", "head")
    table = (await migrate(store_url, str(legacy))).tables["dead_letter_queue"]
    assert (table.imported, table.spoilt) == (4, 2)
    jobs = await jobs_of(store_url)
    assert {job.state for job in jobs} == {JobState.FAILED}
    kinds = {job.kind: job for job in jobs if job.queue == "unified_queue"}
    assert set(kinds) == {"file.ingest", "content.ingest"}
    letter = kinds["file.ingest"]
    assert (letter.payload["file_path"], letter.tenant, letter.attempts) == ("/h/a.py", "t1", 3)
    assert letter.errors[0].message == "no parser"
    assert {job.payload["dlq_id"] for job in jobs if job.queue == "migrated"} == {"h3", "h4"}
    assert (await verify(store_url, str(legacy))).is_good


async def test_what_is_done_comes_from_each_table_when_asked_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "o.db", "others")
    report = await migrate(store_url, str(legacy), with_finished=True)
    assert not any(table.left["done already"] for table in report.tables.values())
    deletion = by_path(await jobs_of(store_url))["/x/older.py"]
    assert (deletion.kind, deletion.state) == ("file.delete", JobState.COMPLETED)
    assert (await drop(store_url, str(legacy), with_finished=True)).is_dropped


@pytest.mark.parametrize(
    ("ingested", "deleted", "due", "expected"),
    [
        ("09:00", "10:00", None, [("file.delete", "ready")]),
        ("10:00", "09:00", None, [("file.ingest", "ready")]),
        ("09:00", "10:00", "2999-01-01", [("file.ingest", "ready"), ("file.delete", "held")]),
        ("10:00", "09:00", "2999-01-01", [("file.ingest", "ready")]),
    ],
)
async def test_the_last_operation_on_a_file_counts_in_whichever_table_it_is_u11(
    store_url: str,
    tmp_path: Path,
    ingested: str,
    deleted: str,
    due: str | None,
    expected: list[tuple[str, str]],
) -> None:
    legacy = build(tmp_path / "o.db", "D", "others")
    with closing(sqlite3.connect(legacy)) as db, db:
        for table in ("ingestion_queue", "cumulative_deletions_queue"):
            db.execute(f"DELETE FROM {table}")
        db.execute(
            "INSERT INTO ingestion_queue (queue_id, file_absolute_path, collection_name, tenant_id,"
            " branch, operation, queued_timestamp)"
            " VALUES ('i', '/f', 'p', 't', 'main', 'ingest', ?)",
            [f"2025-06-01 {ingested}"],
        )
        db.execute(
            "INSERT INTO cumulative_deletions_queue (file_absolute_path, collection_name,"
            " tenant_id, branch, marked_for_deletion_at, deletion_scheduled_at)"
            " VALUES ('/f', 'p', 't', 'main', ?, ?)",
            [f"2025-06-01 {deleted}", due],
        )
    forecast = await migrate(store_url, str(legacy), is_dry_run=True)
    report = await migrate(store_url, str(legacy))
    assert (report.is_over, forecast.tables) == (True, report.tables)
    jobs = [job for job in await jobs_of(store_url) if job.payload.get("file_path") == "/f"]
    assert sorted((job.kind, job.state.value) for job in jobs) == sorted(expected)
    assert (await verify(store_url, str(legacy))).is_good


@pytest.mark.parametrize("variant", ["A", "D"])
async def test_one_file_of_several_tenants_and_branches_comes_for_each_of_them_u11(
    store_url: str, tmp_path: Path, variant: str
) -> None:
    legacy = build_shared(tmp_path / "shared.db", variant)
    forecast = await migrate(store_url, str(legacy), is_dry_run=True)
    report = await migrate(store_url, str(legacy))

    assert forecast.tables == report.tables
    assert (report.is_over, report.tables["ingestion_queue"].imported) == (True, 4)
    jobs = await jobs_of(store_url)
    assert {(job.tenant, job.headers["branch"], job.state.value) for job in jobs} == {
        ("t1", "main", "ready"),
        ("t1", "dev", "ready"),
        ("t1", "next", "ready"),
        ("t2", "main", "ready"),
    }
    assert (await verify(store_url, str(legacy))).is_good
    again = await migrate(store_url, str(legacy))
    assert (again.tables["ingestion_queue"].imported, again.tables["ingestion_queue"].known) == (
        0,
        4,
    )


async def test_no_odd_value_keeps_the_other_rows_from_coming_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "odd.db", "odd")
    report = await migrate(store_url, str(legacy))
    assert report.is_over
    counts = {
        name: (table.rows, table.imported, table.spoilt, dict(table.left))
        for name, table in report.tables.items()
        if table.rows
    }
    again = {"another row asks for the same": 1}
    assert counts == {
        "ingestion_queue": (9, 9, 3, {}),
        "missing_metadata_queue": (1, 0, 0, again),
        "processing_queue": (2, 1, 1, again),
    }
    jobs = by_path(await jobs_of(store_url))
    assert jobs["/odd/nanos.py"].created_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert jobs["/odd/far.py"].state is JobState.READY
    assert (jobs["/odd/words.py"].priority, jobs["/odd/words.py"].attempts) == (5, 0)
    assert (await verify(store_url, str(legacy))).is_good
    assert (await drop(store_url, str(legacy))).is_dropped


async def test_a_row_that_breaks_what_reads_it_is_kept_with_the_reason_u11(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trip(row: Row, id: str, context: Context) -> NoReturn:
        raise LookupError("nobody thought of this")

    name = "processing_queue"
    monkeypatch.setitem(readings._READINGS, name, replace(readings._READINGS[name], convert=trip))
    report = await migrate(store_url, str(build(tmp_path / "o.db", "others")))
    assert (report.tables[name].spoilt, report.tables["missing_metadata_queue"].imported) == (2, 2)
    async with Queue.open(store_url) as queue:
        kept = await queue.get_many([job.id for job in await queue.list(queue="migrated")])
    assert {job.payload["queue_id"] for job in kept.values()} == {"p1", "p2"}
    assert all("nobody thought of this" in str(job.error) for job in kept.values())


async def test_dry_run_says_the_same_and_writes_nothing_u11(store_url: str, tmp_path: Path) -> None:
    legacy = build(tmp_path / "d.db", "D", "others")
    before = dump(legacy)
    forecast = await migrate(store_url, str(legacy), is_dry_run=True)
    assert await jobs_of(store_url) == []
    assert dump(legacy) == before
    report = await migrate(store_url, str(legacy))
    assert forecast.tables == report.tables
    assert "windrow_deprecated" in dump(legacy)


async def test_second_run_changes_nothing_even_when_jobs_have_run_and_gone_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "d.db", "D")
    await migrate(store_url, str(legacy))
    async with Queue.open(store_url) as queue:
        for job in await queue.list(state="ready"):
            await queue.delete(job.id)
    report = await migrate(store_url, str(legacy))
    assert (report.tables["ingestion_queue"].imported, report.tables["ingestion_queue"].known) == (
        0,
        3,
    )
    assert len(await jobs_of(store_url)) == 1
    found = await verify(store_url, str(legacy))
    assert found.is_good
    assert found.gone["ingestion_queue"] == 2


async def test_two_at_once_bring_each_row_once_u11(store_url: str, tmp_path: Path) -> None:
    legacy = build_many(tmp_path / "many.db", 1200)
    reports = await asyncio.gather(*(migrate(store_url, str(legacy)) for _ in range(2)))
    tables = [report.tables["ingestion_queue"] for report in reports]
    assert sum(table.imported for table in tables) == 1200
    assert sum(table.known for table in tables) == 1200
    jobs = await jobs_of(store_url)
    assert len({job.payload["file_path"] for job in jobs}) == len(jobs) == 1200


async def test_two_processes_at_once_bring_each_row_once_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build_many(tmp_path / "many.db", 1200)
    words = ("migrate", "legacy", "--from", str(legacy), "--yes", "-d", store_url, "--json")
    processes = [Command(*words, cwd=tmp_path, environment=os.environ) for _ in range(2)]
    said = [json.loads(process.communicate(timeout=60)) for process in processes]
    tables = [report["tables"]["ingestion_queue"] for report in said]
    assert sum(table["imported"] for table in tables) == 1200
    assert sum(table["known"] for table in tables) == 1200
    assert len(await jobs_of(store_url)) == 1200
    assert (await verify(store_url, str(legacy))).is_good


async def test_rows_come_in_the_order_in_which_they_waited_u11(
    store_url: str, tmp_path: Path
) -> None:
    async with Queue.open(store_url) as queue:
        await queue.enqueue("first", {"file_path": "here before"}, queue="unified_queue")
        await migrate(store_url, str(build_many(tmp_path / "many.db", 600)))
        await queue.enqueue("last", {"file_path": "here after"}, queue="unified_queue")
        lease = await queue.claim(["unified_queue"], limit=700, seconds=30, worker="me")
        paths = [job.payload["file_path"] for job in lease.jobs]
    assert paths == ["here before", *(f"/big/{n}.txt" for n in range(600)), "here after"]


async def test_verification_finds_what_is_missing_and_what_has_changed_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "a.db", "A")
    assert (await verify(store_url, str(legacy))).problem_count == 5
    await migrate(store_url, str(legacy))
    assert (await verify(store_url, str(legacy))).is_good
    with closing(sqlite3.connect(legacy)) as db, db:
        db.execute("UPDATE ingestion_queue SET priority = 1 WHERE tenant_id = 't2'")
        db.execute(
            "INSERT INTO ingestion_queue (file_absolute_path, collection_name, operation)"
            " VALUES ('/new.py', 'projects', 'ingest')"
        )
    found = await verify(store_url, str(legacy))
    assert found.problems == {
        'ingestion_queue/["/文档/说明.md","t2","main"]': "it has changed there since it came",
        'ingestion_queue/["/new.py","default","main"]': "it has not come",
    }


async def test_tables_are_dropped_only_after_a_verification_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "a.db", "A")
    before = dump(legacy)
    assert not (await drop(store_url, str(legacy))).is_good
    assert dump(legacy) == before
    await migrate(store_url, str(legacy))
    assert (await drop(store_url, str(legacy))).is_dropped
    assert "ingestion_queue" not in dump(legacy)


async def test_rollback_takes_away_what_has_not_begun_and_leaves_the_tables_as_they_were_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build(tmp_path / "d.db", "D")
    before = dump(legacy)
    await migrate(store_url, str(legacy))
    assert dump(legacy) != before
    report = await roll_back(store_url, str(legacy))
    assert (report.removed, report.kept_count) == (3, 0)
    assert await jobs_of(store_url) == []
    assert dump(legacy) == before
    again = await migrate(store_url, str(legacy))
    assert again.tables["ingestion_queue"].imported == 3
    async with Queue.open(store_url) as queue:
        await queue.claim(["unified_queue"], limit=1, seconds=30, worker="me")
    report = await roll_back(store_url, str(legacy))
    assert (report.removed, report.kept_count) == (2, 1)
    assert list(report.kept.values()) == ["it has begun, and is active"]


async def test_a_file_that_was_moved_is_the_same_origin_u11(store_url: str, tmp_path: Path) -> None:
    legacy = build(tmp_path / "a.db", "A")
    await migrate(store_url, str(legacy))
    moved = legacy.rename(tmp_path / "moved.db")

    table = (await migrate(store_url, str(moved))).tables["ingestion_queue"]

    assert (table.imported, table.known, len(await jobs_of(store_url))) == (0, 5, 5)
    assert (await verify(store_url, str(moved))).is_good
    another = build(tmp_path / "a.db", "A")  # in the place of the first, and not the same
    assert (await migrate(store_url, str(another))).tables["ingestion_queue"].imported == 5
    assert (await roll_back(store_url, str(moved))).removed == 5
    assert (await verify(store_url, str(another))).is_good


async def test_a_file_that_an_earlier_version_knew_by_its_path_is_known_when_it_is_moved_u11(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def keep_none(origin: SqliteOrigin, *, is_known: bool) -> None: ...

    legacy = build(tmp_path / "a.db", "A")
    with monkeypatch.context() as patch:
        patch.setattr(SqliteOrigin, "keep_name", keep_none)
        await migrate(store_url, str(legacy))
    table = (await migrate(store_url, str(legacy))).tables["ingestion_queue"]
    assert (table.imported, table.known) == (0, 5)
    moved = legacy.rename(tmp_path / "moved.db")

    table = (await migrate(store_url, str(moved))).tables["ingestion_queue"]

    assert (table.imported, table.known, len(await jobs_of(store_url))) == (0, 5, 5)


@pytest.mark.parametrize(
    ("code", "is_moved"), [(sqlite3.SQLITE_READONLY, True), (sqlite3.SQLITE_BUSY, False)]
)
async def test_a_file_that_can_only_be_read_is_known_by_its_path_u11(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, is_moved: bool
) -> None:
    def refuse(origin: SqliteOrigin, do: Any) -> NoReturn:
        error = sqlite3.OperationalError("not now")
        error.sqlite_errorcode = code
        raise MigrationFailed("it cannot be written to") from error

    legacy = str(build(tmp_path / "a.db", "A"))
    with monkeypatch.context() as patch:
        patch.setattr(SqliteOrigin, "_write", refuse)
        if is_moved:
            assert (await migrate(store_url, legacy)).unmarked == "it cannot be written to"
        else:
            with pytest.raises(MigrationFailed, match="cannot be written to"):
                await migrate(store_url, legacy)
    table = (await migrate(store_url, legacy)).tables["ingestion_queue"]
    assert (table.imported, table.known) == ((0, 5) if is_moved else (5, 0))


async def test_looking_makes_no_database_u11(tmp_path: Path) -> None:
    legacy, new = build(tmp_path / "a.db", "A"), tmp_path / "new.db"
    report = await migrate(f"sqlite:///{new}", str(legacy), is_dry_run=True)
    assert report.tables["ingestion_queue"].imported == 5
    for look in (verify, drop, roll_back):
        with pytest.raises(MigrationFailed, match="nothing has come yet"):
            await look(f"sqlite:///{new}", str(legacy))
    assert not new.exists()


async def test_a_job_that_was_here_before_is_not_counted_and_not_rolled_back_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = str(build(tmp_path / "d.db", "D"))
    name, id = "ingestion_queue", "01234567-89ab-cdef-0123-456789abcdef"
    async with Queue.open(store_url) as queue:
        await queue.enqueue("file.ingest", {"file_path": "/other.py"}, id=id)
    forecast = await migrate(store_url, legacy, is_dry_run=True)

    report = await migrate(store_url, legacy)

    assert (report.tables[name].imported, report.tables[name].known) == (2, 1)
    assert forecast.tables == report.tables
    assert (await verify(store_url, legacy)).problems == {
        f"{name}/0123456789abcdef0123456789abcdef": f"job {id} has another payload"
    }
    rollback = await roll_back(store_url, legacy)
    assert (rollback.removed, rollback.kept_count) == (2, 0)
    assert [job.id for job in await jobs_of(store_url)] == [id]
    assert (await migrate(store_url, legacy)).tables[name].known == 1


async def test_old_tables_may_be_in_the_file_of_windrow_itself_u11(tmp_path: Path) -> None:
    legacy = build(tmp_path / "one.db", "D")
    url = f"sqlite:///{legacy}"
    assert (await migrate(url, str(legacy), is_dry_run=True)).tables[
        "ingestion_queue"
    ].imported == 3
    assert (await migrate(url, str(legacy))).tables["ingestion_queue"].imported == 3
    assert (await roll_back(url, str(legacy))).removed == 3
    await migrate(url, str(legacy))
    assert (await drop(url, str(legacy), is_discarding=True)).is_dropped
    assert len(await jobs_of(url)) == 3


async def test_nothing_can_come_between_the_verification_and_the_drop_u11(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    legacy = build(tmp_path / "d.db", "D")
    await migrate(store_url, str(legacy))

    async def drop_late(origin: SqliteOrigin, tables: Sequence[str]) -> None:
        with closing(sqlite3.connect(legacy, timeout=0)) as db, pytest.raises(sqlite3.Error):
            db.execute("UPDATE ingestion_queue SET status = 'pending'")
        await dropping(origin, tables)

    dropping = SqliteOrigin.drop
    monkeypatch.setattr(SqliteOrigin, "drop", drop_late)
    assert (await drop(store_url, str(legacy), is_discarding=True)).is_dropped


async def test_what_came_stays_if_the_tables_cannot_be_marked_u11(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(origin: SqliteOrigin, tables: Sequence[str], is_deprecated: bool) -> NoReturn:
        raise MigrationFailed("read-only")

    monkeypatch.setattr(SqliteOrigin, "mark", refuse)
    report = await migrate(store_url, str(build(tmp_path / "d.db", "D")))
    assert (report.is_over, report.unmarked) == (True, "read-only")


async def test_what_came_is_done_by_a_worker_as_any_item_u11(
    store_url: str, tmp_path: Path
) -> None:
    await migrate(store_url, str(build(tmp_path / "d.db", "D")))
    seen: list[str] = []

    @handler("file.ingest", queue="unified_queue")
    async def ingest(job: Job, payload: dict[str, Any]) -> None:
        seen.append(payload["file_path"])

    async with Queue.open(store_url) as queue:
        await Worker(queue, [ingest], queues=["unified_queue"]).run(until_idle=True)
    assert sorted(seen) == ["/d/begun.py", "/d/waiting.py"]


async def test_what_cannot_be_read_is_said_and_nothing_is_written(
    store_url: str, tmp_path: Path
) -> None:
    (tmp_path / "text.db").write_text("this is no database, but long enough to look like a file")
    sqlite3.connect(tmp_path / "empty.db").close()
    for name, message in (
        ("text.db", "cannot be read as a SQLite database"),
        ("absent.db", "there is no file"),
        ("empty.db", "none of the tables"),
    ):
        with pytest.raises(MigrationFailed, match=message):
            await migrate(store_url, str(tmp_path / name))
    assert await jobs_of(store_url) == []


async def test_killed_in_the_middle_it_goes_on_where_it_was_u11(
    store_url: str, tmp_path: Path
) -> None:
    legacy = build_many(tmp_path / "many.db", 6000)
    words = ("migrate", "legacy", "--from", str(legacy), "--yes", "-d", store_url)
    process = Command(*words, cwd=tmp_path, environment=os.environ)
    async with Queue.open(store_url) as queue:
        async with asyncio.timeout(60):
            while not sum((await queue.counts("unified_queue")).values()):
                await asyncio.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        came = sum((await queue.counts("unified_queue")).values())
        assert came % 500 == 0
        report = await migrate(store_url, str(legacy))
        table = report.tables["ingestion_queue"]
        assert (table.imported, table.known) == (6000 - came, came)
        assert sum((await queue.counts("unified_queue")).values()) == 6000
    assert (await verify(store_url, str(legacy))).is_good
