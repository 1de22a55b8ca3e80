"""Seed N: what NuQ's clients send goes by index, however many jobs there are (N11).

Planned as their connections plan: by the server's usual settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.seeds import nuq

DIALECT = "nuq"
QUEUE = "nuq.queue_scrape"
ID, LOCK = uuid4(), uuid4()

# Of jobs that wait, run or are held 20,000, of ended ones 20,000, and as many of another queue.
FILL = """
    INSERT INTO windrow.job_live (
        id, queue, kind, state, priority, run_at, created_at, max_attempts, max_crashes, tenant,
        group_id, lease, max_hold_seconds)
    SELECT gen_random_uuid(), CASE WHEN n % 2 = 0 THEN 'nuq.queue_scrape' ELSE 'other' END, 'work',
           CASE WHEN n % 20 < 14 THEN 'ready' WHEN n % 20 < 18 THEN 'held' ELSE 'active' END,
           -(n % 7), now(), now() - n * interval '1 s', 1, 10, md5(n::text)::uuid::text,
           CASE WHEN n % 4 = 0 THEN md5((n % 400)::text)::uuid END,
           CASE WHEN n % 20 >= 18 THEN md5(n::text)::uuid END,
           CASE WHEN n % 20 BETWEEN 14 AND 17 THEN 3600 END
      FROM generate_series(1, 40000) AS n;
    INSERT INTO windrow.lease (token, claimed_at, expires_at, seconds, worker, job_ids)
    SELECT lease, now(), now() + interval '60 s', 60, 'nuq', ARRAY[id]
      FROM windrow.job_live WHERE state = 'active';
    INSERT INTO windrow.job_finished (
        id, queue, kind, state, priority, run_at, created_at, finished_at, expires_at, leaf,
        max_attempts, max_crashes, group_id)
    SELECT gen_random_uuid(), CASE WHEN n % 2 = 0 THEN 'nuq.queue_scrape' ELSE 'other' END, 'work',
           CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'completed' END, 0, now(),
           now() - n * interval '0.05 s', now(), now() + interval '1 h', 1 + n / 3 % 28, 1, 10,
           CASE WHEN n % 4 = 0 THEN md5((n % 400)::text)::uuid END
      FROM generate_series(1, 40000) AS n;
    INSERT INTO windrow.job_payload (id, payload)
    SELECT id, '{"mode": "single_urls"}' FROM windrow.job;
    INSERT INTO windrow.job_group (id, created_at, is_open, state, expires_at)
    SELECT md5(n::text)::uuid, now(), false, CASE WHEN n < 400 THEN 'active' ELSE 'completed' END,
           CASE WHEN n >= 400 THEN now() + n * interval '1 s' END
      FROM generate_series(1, 5000) AS n;
    INSERT INTO windrow.tally (n, queue, state)
    SELECT count(*), queue, state FROM windrow.job GROUP BY queue, state;
"""
LARGE = ("job_live", "job_finished", "job_payload", "job_group", "lease")
# Statement, its parameters, and the index by which it finds its jobs.
PINNED: dict[str, tuple[str, list[Any], str]] = {
    "take": (nuq.TAKE, [], "nuq_status_live"),
    "renew": (nuq.RENEW, [ID, LOCK], "job_live_pkey"),
    "finish": (nuq.FINISH, [ID, LOCK, "{}"], "job_live_pkey"),
    "fail": (nuq.FAIL, [ID, LOCK, "no"], "job_live_pkey"),
    "requeue stalled": (nuq.REQUEUE_STALLED, [], "nuq_status_live"),
    "fail stalled": (nuq.FAIL_STALLED, [], "nuq_status_live"),
    "reap backlog": (nuq.REAP_BACKLOG, [], "nuq_backlog_timeout"),
    "clean completed": (nuq.CLEAN_COMPLETED, [], "queue_case_created_at_idx"),
    "clean failed": (nuq.CLEAN_FAILED, [], "queue_case_created_at_idx"),
    "promote": (nuq.PROMOTE, [ID], "job_live_pkey"),
    "job": (nuq.JOB, [ID], "job_live_pkey"),
    "pages": (nuq.PAGES, [ID], "coalesce_queue_case_finished_at_idx"),
    "stats": (nuq.STATS, [ID], "nuq_group_live"),
    "progress": (nuq.PROGRESS, [ID], "nuq_group_live"),
}
# These can only be about a live job: no leaf of the finished ones is even opened.
LIVE_ONLY = ("renew", "finish", "fail", "requeue stalled", "fail stalled", "reap backlog")


@pytest.fixture
async def filled(db: Any) -> Any:
    await db.execute(FILL)
    await db.execute("VACUUM ANALYZE")
    return db


async def test_the_printed_statements_go_by_index_and_a_claim_reads_one_row_n1_n11(
    filled: Any,
) -> None:
    """In one test: to fill the tables takes much longer than to ask."""
    await require_indexes(filled)
    await require_one_row(filled)


async def require_indexes(db: Any) -> None:
    for name, (statement, values, index) in PINNED.items():
        nodes = await _plan(db, statement, values)
        scanned = {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"}
        large = {table for table in scanned if _kin(table) in LARGE}
        # A leaf that holds next to nothing may as well be read.
        assert large <= {"job_finished_kept"}, name
        used = {node.get("Index Name", "") for node in nodes}
        assert any(index in one for one in used), (name, used)
        if name in LIVE_ONLY:
            assert not any(_kin(node.get("Relation Name", "")) == "job_finished" for node in nodes)


async def require_one_row(db: Any) -> None:
    """A claim reads it and sorts none, behind 8,000 held and 4,000 active ones of its own queue,
    and as many of others."""
    nodes = await _plan(db, nuq.TAKE, [], "ANALYZE, BUFFERS")
    assert not any(node["Node Type"] == "Sort" for node in nodes)
    [scan] = [node for node in nodes if node.get("Index Name") == "nuq_status_live"]
    assert (scan["Actual Rows"], scan.get("Rows Removed by Filter", 0)) == (1, 0)
    # What functions of the view look up for the first time is counted, too.
    assert scan["Shared Hit Blocks"] + scan["Shared Read Blocks"] < 100
    [top] = [node for node in nodes if node["Node Type"] == "ModifyTable"]
    assert top["Actual Rows"] == 1


async def _plan(db: Any, statement: str, values: list[Any], options: str = "COSTS") -> list[Any]:
    text = await db.fetchval(f"EXPLAIN ({options}, FORMAT JSON) {statement}", *values)
    return list(_nodes(json.loads(text)[0]["Plan"]))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)


def _kin(table: str) -> str:
    return "job_finished" if table.startswith("job_finished") else table
