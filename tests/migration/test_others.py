# ruff: noqa: E501
"""Tables that a dialect shows, where they are tables of their own; NuQ, PGMQ and an export."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pgmq
import pytest

from tests.conftest import MakeDatabase
from tests.migration.test_legacy import jobs_of
from windrow import Queue
from windrow.catalog import Catalog
from windrow.errors import GroupNotFound, MigrationFailed
from windrow.queue.job import JobState
from windrow.services.migration.migrating import (
    drop,
    migrate,
    roll_back,
    verify,
)
from windrow.services.migration.origins import PostgresOrigin

GROUP = "11111111-1111-4111-8111-111111111111"
ENDED = "22222222-2222-4222-8222-222222222222"
OWNER = "33333333-3333-4333-8333-333333333333"

TABLES = """
CREATE TABLE unified_queue (
  queue_id TEXT PRIMARY KEY, item_type TEXT, op TEXT, tenant_id TEXT, collection TEXT, priority INTEGER,
  status TEXT, created_at TEXT, updated_at TEXT, lease_until TEXT, worker_id TEXT,
  idempotency_key TEXT UNIQUE, payload_json TEXT, retry_count INTEGER DEFAULT 0,
  max_retries INTEGER DEFAULT 3, error_message TEXT, last_error_at TEXT, branch TEXT, metadata TEXT);
INSERT INTO unified_queue (queue_id, item_type, op, tenant_id, collection, priority, status, created_at,
  idempotency_key, payload_json, lease_until, metadata) VALUES
 ('u1', 'file', 'ingest', 't1', 'projects', 7, 'pending', '2025-01-01T00:00:00Z', 'k1', '{"file_path": "/a"}', NULL, '{}'),
 ('u2', 'file', 'delete', 't1', 'projects', 7, 'in_progress', '2025-01-01T00:00:01Z', 'k2', '{"file_path": "/b"}', '2025-01-01T00:05:00Z', NULL),
 ('u3', 'content', 'ingest', 't1', 'notes', 8, 'pending', '2025-01-01T00:00:02Z', 'k3', '{"content": "x"}', '2999-01-01T00:00:00Z', NULL),
 ('u4', 'file', 'ingest', 't1', 'projects', 5, 'done', '2025-01-01T00:00:03Z', 'k4', '{"file_path": "/d"}', NULL, NULL);
CREATE TYPE job_status AS ENUM ('pending', 'processing', 'completed', 'failed', 'cancelled', 'paused');
CREATE TABLE crawl_jobs (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), payload jsonb, priority int DEFAULT 0,
  status job_status DEFAULT 'pending', worker_id uuid, progress_percentage int DEFAULT 0,
  created_at timestamptz DEFAULT now(), started_at timestamptz, completed_at timestamptz,
  last_heartbeat timestamptz, retry_count int DEFAULT 0, max_retries int DEFAULT 3, error_message text,
  source_id text, user_id uuid);
INSERT INTO crawl_jobs (id, payload, status, progress_percentage, source_id, user_id, error_message) VALUES
 ('44444444-4444-4444-8444-444444444444', '{"url": "https://a.example"}', 'processing', 40, 's1', '33333333-3333-4333-8333-333333333333', NULL),
 (DEFAULT, '{"url": "https://b.example"}', 'paused', 0, NULL, NULL, NULL),
 (DEFAULT, '{"url": "https://c.example"}', 'failed', 0, NULL, NULL, 'timed out');
CREATE TABLE processing_jobs (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), org_id uuid, call_id uuid, stage text, status text,
  payload jsonb, attempts int DEFAULT 0, max_attempts int DEFAULT 5, available_at timestamptz DEFAULT now(),
  locked_at timestamptz, locked_by text, last_error text, created_at timestamptz DEFAULT now(),
  updated_at timestamptz DEFAULT now());
INSERT INTO processing_jobs (org_id, call_id, stage, status, payload, attempts, locked_at, locked_by) VALUES
 ('33333333-3333-4333-8333-333333333333', '44444444-4444-4444-8444-444444444444', 'transcribe_poll', 'processing', '{"op": "x"}', 2, now(), 'w');
"""

NUQ = f"""
CREATE SCHEMA nuq;
CREATE TYPE nuq.job_status AS ENUM ('queued', 'active', 'completed', 'failed');
CREATE TYPE nuq.group_status AS ENUM ('active', 'completed', 'cancelled');
CREATE TABLE nuq.queue_scrape (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), status nuq.job_status NOT NULL DEFAULT 'queued', data jsonb,
  created_at timestamptz NOT NULL DEFAULT now(), priority int NOT NULL DEFAULT 0, lock uuid,
  locked_at timestamptz, stalls int, finished_at timestamptz, listen_channel_id text, returnvalue jsonb,
  failedreason text, owner_id uuid, group_id uuid);
CREATE TABLE nuq.queue_scrape_backlog (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), data jsonb, created_at timestamptz NOT NULL DEFAULT now(),
  priority int NOT NULL DEFAULT 0, listen_channel_id text, owner_id uuid, group_id uuid,
  times_out_at timestamptz);
CREATE TABLE nuq.queue_crawl_finished (LIKE nuq.queue_scrape INCLUDING ALL);
CREATE TABLE nuq.group_crawl (
  id uuid PRIMARY KEY, status nuq.group_status NOT NULL DEFAULT 'active',
  created_at timestamptz NOT NULL DEFAULT now(), owner_id uuid NOT NULL, ttl int8 NOT NULL DEFAULT 86400000,
  expires_at timestamptz);
INSERT INTO nuq.group_crawl (id, status, owner_id, expires_at) VALUES
 ('{GROUP}', 'active', '{OWNER}', NULL), ('{ENDED}', 'completed', '{OWNER}', now() + interval '1 day');
INSERT INTO nuq.queue_scrape (status, data, priority, owner_id, group_id, returnvalue, finished_at, lock) VALUES
 ('queued', '{{"url": "https://a.example/1"}}', 10, '{OWNER}', '{GROUP}', NULL, NULL, NULL),
 ('active', '{{"url": "https://a.example/2"}}', 10, '{OWNER}', '{GROUP}', NULL, NULL, gen_random_uuid()),
 ('completed', '{{"url": "https://a.example/3"}}', 10, '{OWNER}', '{GROUP}', '{{"markdown": "# Hi"}}', now(), NULL),
 ('completed', '{{"url": "https://b.example/1"}}', 10, '{OWNER}', '{ENDED}', '{{"markdown": "# Old"}}', now(), NULL),
 ('queued', '{{"url": "https://c.example/"}}', 0, '{OWNER}', NULL, NULL, NULL, NULL);
INSERT INTO nuq.queue_scrape_backlog (data, owner_id, group_id) VALUES
 ('{{"url": "https://a.example/4"}}', '{OWNER}', '{GROUP}');
"""


@pytest.fixture
async def old(make_database: MakeDatabase) -> AsyncIterator[tuple[str, Any]]:
    """A Postgres that is not Windrow's: its URL, and a connection."""
    url = make_database()
    connection = await asyncpg.connect(url)
    yield url, connection
    await connection.close()


async def test_tables_of_three_other_documents_come_from_postgres(
    store_url: str, old: tuple[str, Any]
) -> None:
    url, db = old
    await db.execute(TABLES)
    report = await migrate(store_url, url)
    assert {name: table.imported for name, table in report.tables.items()} == {
        "crawl_jobs": 3,
        "processing_jobs": 1,
        "unified_queue": 3,
    }
    jobs = await jobs_of(store_url)
    items = {job.unique: job for job in jobs if job.queue == "unified_queue"}
    assert {key: (job.kind, job.state.value) for key, job in items.items()} == {
        "k1": ("file.ingest", "ready"),
        "k2": ("file.delete", "ready"),
        "k3": ("content.ingest", "scheduled"),
    }
    crawls = {job.payload["url"]: job for job in jobs if job.queue == "crawl_jobs"}
    begun = crawls["https://a.example"]
    assert (begun.id, begun.tenant) == ("44444444-4444-4444-8444-444444444444", OWNER)
    assert (begun.state, begun.headers) == (JobState.READY, {"source_id": "s1"})
    assert begun.progress is not None
    assert begun.progress.percent == 40
    assert crawls["https://b.example"].state is JobState.PAUSED
    assert crawls["https://c.example"].errors[0].message == "timed out"
    [call] = [job for job in jobs if job.queue == "processing_jobs"]
    assert (call.kind, call.attempts, call.state) == ("transcribe_poll", 2, JobState.READY)
    assert (await verify(store_url, url)).is_good
    comment = "SELECT obj_description('unified_queue'::regclass)"
    assert "Deprecated" in await db.fetchval(comment)
    assert (await roll_back(store_url, url)).removed == 7
    assert await db.fetchval(comment) is None
    assert await jobs_of(store_url) == []


async def test_rows_of_dialects_that_nobody_can_do_fail_with_the_reason(
    store_url: str, old: tuple[str, Any]
) -> None:
    url, db = old
    await db.execute(
        TABLES
        + """
        DELETE FROM unified_queue;
        INSERT INTO unified_queue (queue_id, item_type, op, collection, status, payload_json) VALUES
          ('n1', NULL, NULL, 'c', 'pending', '{}'), ('n2', 'file', NULL, 'c', 'pending', '{}'),
          ('n3', 'file', 'ingest', 'c', 'pending', '{broken'),
          ('n4', 'file', 'ingest', 'c', 'done', '{broken'),
          ('n5', 'website', 'ingest', 'c', 'pending', '{}'),
          ('n6', 'rename', 'delete', 'c', 'pending', '{"old_path": "/a", "new_path": "/b"}'),
          ('n7', 'file', 'ingest', 'c', 'pending', '{"path": "/a"}'),
          ('n8', 'file', 'ingest', NULL, 'in_progress', '{"file_path": "/a"}');
        DELETE FROM processing_jobs;
        INSERT INTO processing_jobs (org_id, call_id, stage, status, payload) VALUES
          (gen_random_uuid(), gen_random_uuid(), ' ', 'queued', '{}');
        """
    )
    tables = (await migrate(store_url, url, with_finished=True)).tables
    assert (tables["unified_queue"].imported, tables["unified_queue"].spoilt) == (8, 7)
    assert (tables["processing_jobs"].imported, tables["processing_jobs"].spoilt) == (1, 1)
    jobs = await jobs_of(store_url)
    assert not [
        job
        for job in jobs
        if job.queue != "migrated" and job.state is JobState.READY and job.queue != "crawl_jobs"
    ]
    spoilt = {job.payload.get("queue_id"): job for job in jobs if job.queue == "migrated"}
    assert "it has no stage" in spoilt.pop(None).errors[0].message
    assert {id: (job.kind, job.state.value) for id, job in spoilt.items()} == {
        "n1": ("unknown", "failed"),
        "n2": ("file", "failed"),
        "n3": ("file.ingest", "failed"),
        "n5": ("website.ingest", "failed"),
        "n6": ("rename.delete", "failed"),
        "n7": ("file.ingest", "failed"),
        "n8": ("file.ingest", "failed"),
    }
    assert "file_path" in spoilt["n7"].errors[0].message
    assert "payload_json is no JSON" in spoilt["n3"].errors[0].message
    assert (await verify(store_url, url, with_finished=True)).is_good


async def test_comments_of_tables_are_kept_and_writers_wait_for_the_drop(
    store_url: str, old: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, db = old
    await db.execute(TABLES + "COMMENT ON TABLE crawl_jobs IS 'ours, isn''t it';")
    comment = "SELECT obj_description('crawl_jobs'::regclass)"
    for _ in range(2):
        await migrate(store_url, url)
        marked = await db.fetchval(comment)
        assert (marked.count("Deprecated"), marked.splitlines()[1]) == (1, "ours, isn't it")
    await roll_back(store_url, url)
    assert await db.fetchval(comment) == "ours, isn't it"
    await migrate(store_url, url)

    async def drop_late(origin: PostgresOrigin, tables: Sequence[str]) -> None:
        with pytest.raises(asyncpg.LockNotAvailableError):
            await db.execute("SET lock_timeout = '1ms'; DELETE FROM crawl_jobs")
        await dropping(origin, tables)

    dropping = PostgresOrigin.drop
    monkeypatch.setattr(PostgresOrigin, "drop", drop_late)
    assert (await drop(store_url, url, is_discarding=True)).is_dropped
    assert await db.fetchval("SELECT to_regclass('crawl_jobs')") is None


async def test_who_may_not_read_the_tables_is_told_in_a_sentence(
    store_url: str, old: tuple[str, Any]
) -> None:
    url, db = old
    name = f"reader_{secrets.token_hex(4)}"
    await db.execute(TABLES + f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    parts = urlsplit(url)
    theirs = parts._replace(netloc=f"{name}:x@{parts.netloc.rpartition('@')[2]}").geturl()
    try:
        with pytest.raises(MigrationFailed, match="permission denied"):
            await migrate(store_url, theirs)
        await db.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
        report = await migrate(store_url, theirs)
        assert "must be owner" in str(report.unmarked)
        assert (await verify(store_url, theirs)).is_good
    finally:
        await db.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


async def test_crawl_of_nuq_comes_whole_and_ends_here_n10(
    store_url: str, old: tuple[str, Any]
) -> None:
    url, db = old
    await db.execute(NUQ)
    report = await migrate(store_url, url)
    assert {name: table.imported for name, table in report.tables.items()} == {
        "nuq.group_crawl": 5,  # the group and its four pages
        "nuq.queue_crawl_finished": 0,
        "nuq.queue_scrape": 1,
        "nuq.queue_scrape_backlog": 0,
    }
    async with Queue.open(store_url) as queue:
        group = await queue.group(GROUP)
        assert (group.pending, group.counts[JobState.COMPLETED]) == (3, 1)
        lease = await queue.claim(["nuq.queue_scrape"], limit=10, seconds=30, worker="me")
        assert len(lease.jobs) == 4
        assert lease.jobs[0].payload["url"] == "https://c.example/"  # priority 0 is before 10
        for job in lease.jobs:
            await lease.complete(job, {"markdown": "# New"})
        finished = await queue.list(queue="nuq.queue_crawl_finished")
        assert [job.unique for job in finished] == [f"nuq.group_crawl/{GROUP}"]
    assert (await migrate(store_url, url)).tables["nuq.group_crawl"].imported == 0
    whole = await migrate(store_url, url, with_finished=True)
    assert whole.tables["nuq.group_crawl"].imported == 2
    async with Queue.open(store_url) as queue:
        assert (await queue.group(ENDED)).counts == {JobState.COMPLETED: 1}


async def test_rollback_takes_a_crawl_of_nuq_as_a_whole_or_leaves_it_n10(
    store_url: str, old: tuple[str, Any]
) -> None:
    url, db = old
    await db.execute(NUQ)
    await migrate(store_url, url)
    report = await roll_back(store_url, url)
    assert (report.removed, report.kept_count) == (5, 0)
    assert await jobs_of(store_url) == []
    async with Queue.open(store_url) as queue:
        with pytest.raises(GroupNotFound):
            await queue.group(GROUP)
        again = await migrate(store_url, url)
        assert again.tables["nuq.group_crawl"].imported == 5
        await queue.claim(["nuq.queue_scrape"], limit=2, seconds=30, worker="me")

        report = await roll_back(store_url, url)

        # One of the two was the page by itself; the group stays with its four.
        assert (report.removed, report.kept_count) == (0, 6)
        assert "1 of its jobs have begun" in report.kept[GROUP]
        assert (await queue.group(GROUP)).pending == 3
    assert await db.fetchval("SELECT obj_description('nuq.queue_scrape'::regclass)")


async def test_what_follows_a_crawl_of_nuq_that_has_ended_comes_in_any_case_n10(
    store_url: str, old: tuple[str, Any]
) -> None:
    url, db = old
    await db.execute(NUQ)
    # One crawl has ended and NuQ has noted that; of another NuQ has not looked since the last page.
    await db.execute(
        f"""
        INSERT INTO nuq.queue_crawl_finished (data, owner_id, group_id)
        VALUES ('{{}}', '{OWNER}', '{ENDED}');
        DELETE FROM nuq.queue_scrape_backlog;
        UPDATE nuq.queue_scrape SET status = 'completed' WHERE group_id = '{GROUP}';
        """
    )
    report = await migrate(store_url, url, with_finished=True)
    assert report.tables["nuq.queue_crawl_finished"].imported == 1
    async with Queue.open(store_url) as queue:
        group = await queue.group(GROUP)
        assert (group.state, group.pending) == ("completed", 0)
        finished = await queue.list(queue="nuq.queue_crawl_finished")
        assert {str(job.unique).split("/")[1] for job in finished} == {GROUP, ENDED}
    again = await migrate(store_url, url, with_finished=True)
    assert not any(table.imported for table in again.tables.values())
    assert (await verify(store_url, url, with_finished=True)).is_good
    assert (await drop(store_url, url, with_finished=True)).is_good
    assert await db.fetchval("SELECT to_regclass('nuq.group_crawl')") is None


async def test_messages_of_pgmq_keep_their_times_and_archives_come_when_asked_p1(
    store_url: str, old: tuple[str, Any]
) -> None:
    url, db = old
    await db.execute(pgmq.get_embedded_install_sql())
    await db.execute("SELECT pgmq.create('scrape_jobs')")
    await db.execute("""
        SELECT pgmq.send('scrape_jobs', '{"n": 1}', '{"x": "y"}'::jsonb);
        SELECT pgmq.send('scrape_jobs', '{"n": 2}', 3600);
        SELECT pgmq.send('scrape_jobs', '{"n": 3}');
        SELECT pgmq.archive('scrape_jobs', 3);
    """)
    report = await migrate(store_url, url)
    assert report.tables["pgmq.q_scrape_jobs"].imported == 2
    assert report.tables["pgmq.a_scrape_jobs"].left == {"done already": 1}
    jobs = {job.payload["n"]: job for job in await jobs_of(store_url)}
    assert (jobs[1].state, jobs[1].headers, jobs[1].queue) == (
        JobState.READY,
        {"x": "y"},
        "scrape_jobs",
    )
    assert jobs[2].state is JobState.SCHEDULED
    await migrate(store_url, url, with_finished=True)
    jobs = {job.payload["n"]: job for job in await jobs_of(store_url)}
    assert jobs[3].state is JobState.COMPLETED
    assert not (await drop(store_url, url)).is_dropped  # the archive would be lost
    assert await db.fetchval("SELECT count(*) FROM pgmq.a_scrape_jobs") == 1
    assert (await drop(store_url, url, with_finished=True)).is_dropped
    assert await db.fetchval("SELECT to_regclass('pgmq.q_scrape_jobs')") is None
    assert await db.fetchval("SELECT to_regclass('pgmq.a_scrape_jobs')") is None
    assert await db.fetchval("SELECT count(*) FROM pgmq.meta") == 0


async def test_crawls_of_an_export_begin_again_as_sources_a6(
    store_url: str, tmp_path: Path
) -> None:
    export = tmp_path / "archon.json"
    operations = {
        "p1": {
            "status": "crawling",
            "url": "https://docs.example/a",
            "tags": ["x"],
            "max_depth": 3,
        },
        "p2": {"status": "completed", "url": "https://docs.example/b"},
        "p3": {"status": "error", "url": "https://docs.example/c", "error": "stuck at storage"},
        "p4": {"status": "reading", "fileName": "a.pdf"},
        "p5": {"status": "crawling", "url": "nowhere"},
    }
    export.write_text(json.dumps({"operations": operations}))
    report = await migrate(store_url, str(export))
    table = report.tables["operations"]
    assert (table.rows, table.imported, table.spoilt) == (5, 3, 1)
    async with Queue.open(store_url) as queue:
        sources = await Catalog(queue.database).sources.page(None, None, after=("", ""), limit=10)
    assert {source.uri: source.tags for source in sources} == {
        "https://docs.example/a": ("x",),
        "https://docs.example/c": (),
    }
    jobs = await jobs_of(store_url)
    assert sorted((job.kind, job.state.value) for job in jobs) == [
        ("web.crawl", "failed"),
        ("web.crawl", "failed"),
        ("web.crawl", "ready"),
    ]
    again = await migrate(store_url, str(export))
    assert (again.tables["operations"].imported, again.tables["operations"].known) == (0, 3)
    over = await migrate(store_url, str(export), with_finished=True)
    assert over.tables["operations"].imported == 1
    states = [job.state.value for job in await jobs_of(store_url)]
    assert sorted(states) == ["completed", "failed", "failed", "ready"]
