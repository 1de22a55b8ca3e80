"""What a client of NuQ sends: the statements of its queue, of its cron jobs and of who reads it."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

ADD = """
    INSERT INTO nuq.queue_scrape (id, data, priority, listen_channel_id, owner_id, group_id)
    VALUES (coalesce($1, gen_random_uuid()), $2, $3, $4, $5, $6)
    RETURNING id, status::text, created_at, priority
"""
ADD_TO_BACKLOG = """
    INSERT INTO nuq.queue_scrape_backlog (data, priority, owner_id, group_id, times_out_at)
    VALUES ($1, $2, $3, $4, $5)
    RETURNING id
"""
ADD_GROUP = "INSERT INTO nuq.group_crawl (owner_id, ttl) VALUES ($1, $2) RETURNING id"
TAKE = """
    WITH next AS (
      SELECT id FROM nuq.queue_scrape
      WHERE status = 'queued'::nuq.job_status
      ORDER BY priority ASC, created_at ASC
      FOR UPDATE SKIP LOCKED
      LIMIT 1
    )
    UPDATE nuq.queue_scrape AS job
    SET status = 'active'::nuq.job_status, lock = gen_random_uuid(), locked_at = now()
    FROM next
    WHERE job.id = next.id
    RETURNING job.id, job.status::text, job.data, job.priority, job.lock, job.locked_at, job.stalls
"""
RENEW = """
    UPDATE nuq.queue_scrape
    SET locked_at = now()
    WHERE id = $1 AND lock = $2 AND status = 'active'::nuq.job_status
"""
FINISH = """
    UPDATE nuq.queue_scrape
    SET status = 'completed'::nuq.job_status,
        lock = null,
        locked_at = null,
        finished_at = now(),
        returnvalue = $3
    WHERE id = $1 AND lock = $2
    RETURNING id, listen_channel_id
"""
FAIL = """
    UPDATE nuq.queue_scrape
    SET status = 'failed'::nuq.job_status,
        lock = null,
        locked_at = null,
        finished_at = now(),
        failedreason = $3
    WHERE id = $1 AND lock = $2
    RETURNING id, listen_channel_id
"""
PROMOTE = """
    WITH moved AS (
      DELETE FROM nuq.queue_scrape_backlog
      WHERE id = $1
      RETURNING id, data, created_at, priority, listen_channel_id, owner_id, group_id
    )
    INSERT INTO nuq.queue_scrape
      (id, data, created_at, priority, listen_channel_id, owner_id, group_id)
    SELECT * FROM moved
    RETURNING id, status::text, created_at
"""

CLEAN_COMPLETED = """
    DELETE FROM nuq.queue_scrape
    WHERE nuq.queue_scrape.status = 'completed'::nuq.job_status
      AND nuq.queue_scrape.created_at < now() - interval '1 hour'
      AND group_id IS NULL
"""
CLEAN_FAILED = """
    DELETE FROM nuq.queue_scrape
    WHERE nuq.queue_scrape.status = 'failed'::nuq.job_status
      AND nuq.queue_scrape.created_at < now() - interval '6 hours'
      AND group_id IS NULL
"""
REQUEUE_STALLED = """
    UPDATE nuq.queue_scrape
    SET status = 'queued'::nuq.job_status,
        lock = null,
        locked_at = null,
        stalls = COALESCE(stalls, 0) + 1
    WHERE nuq.queue_scrape.locked_at <= now() - interval '1 minute'
      AND nuq.queue_scrape.status = 'active'::nuq.job_status
      AND COALESCE(nuq.queue_scrape.stalls, 0) < 9
"""
FAIL_STALLED = """
    WITH stallfail AS (
      UPDATE nuq.queue_scrape
      SET status = 'failed'::nuq.job_status,
          lock = null,
          locked_at = null,
          stalls = COALESCE(stalls, 0) + 1
      WHERE nuq.queue_scrape.locked_at <= now() - interval '1 minute'
        AND nuq.queue_scrape.status = 'active'::nuq.job_status
        AND COALESCE(nuq.queue_scrape.stalls, 0) >= 9
      RETURNING id
    )
    SELECT pg_notify('nuq.queue_scrape', (id::text || '|' || 'failed'::text)) FROM stallfail
"""
REAP_BACKLOG = """
    DELETE FROM nuq.queue_scrape_backlog
    WHERE nuq.queue_scrape_backlog.times_out_at < now()
"""
FINISH_GROUPS = """
    WITH finished_groups AS (
      UPDATE nuq.group_crawl
      SET status = 'completed'::nuq.group_status,
          expires_at = now() + MAKE_INTERVAL(secs => nuq.group_crawl.ttl / 1000)
      WHERE status = 'active'::nuq.group_status
        AND NOT EXISTS (
          SELECT 1 FROM nuq.queue_scrape
          WHERE nuq.queue_scrape.status IN ('active', 'queued')
            AND nuq.queue_scrape.group_id = nuq.group_crawl.id
        )
        AND NOT EXISTS (
          SELECT 1 FROM nuq.queue_scrape_backlog
          WHERE nuq.queue_scrape_backlog.group_id = nuq.group_crawl.id
        )
      RETURNING id, owner_id
    )
    INSERT INTO nuq.queue_crawl_finished (data, owner_id, group_id)
    SELECT '{}'::jsonb, finished_groups.owner_id, finished_groups.id
    FROM finished_groups
"""
CLEAN_GROUPS = """
    WITH cleaned_groups AS (
      DELETE FROM nuq.group_crawl
      WHERE nuq.group_crawl.status = 'completed'::nuq.group_status
        AND nuq.group_crawl.expires_at < now()
      RETURNING *
    ),
    cleaned_jobs_queue_scrape AS (
      DELETE FROM nuq.queue_scrape
      WHERE nuq.queue_scrape.group_id IN (SELECT id FROM cleaned_groups)
    ),
    cleaned_jobs_queue_scrape_backlog AS (
      DELETE FROM nuq.queue_scrape_backlog
      WHERE nuq.queue_scrape_backlog.group_id IN (SELECT id FROM cleaned_groups)
    ),
    cleaned_jobs_crawl_finished AS (
      DELETE FROM nuq.queue_crawl_finished
      WHERE nuq.queue_crawl_finished.group_id IN (SELECT id FROM cleaned_groups)
    )
    SELECT 1
"""
CRON = {
    "clean completed": CLEAN_COMPLETED,
    "clean failed": CLEAN_FAILED,
    "requeue stalled": REQUEUE_STALLED,
    "fail stalled": FAIL_STALLED,
    "reap backlog": REAP_BACKLOG,
    "finish groups": FINISH_GROUPS,
    "clean groups": CLEAN_GROUPS,
}

JOB = """
    SELECT id, status, created_at, finished_at, data, returnvalue, failedreason
    FROM nuq.queue_scrape
    WHERE id = $1::uuid
"""
RECENT = """
    SELECT id, returnvalue, finished_at
    FROM nuq.queue_scrape
    WHERE status = 'completed'
      AND created_at > NOW() - INTERVAL '55 minutes'
      AND group_id IS NULL
    ORDER BY finished_at DESC
"""
RECENT_OF_TEAM = """
    SELECT id, data->>'url' as url, returnvalue, finished_at
    FROM nuq.queue_scrape
    WHERE status = 'completed'
      AND created_at > NOW() - INTERVAL '55 minutes'
      AND group_id IS NULL
      AND data->>'team_id' = $1
    ORDER BY finished_at DESC
    LIMIT 100
"""
PAGES = """
    SELECT
      id,
      data->>'url' as url,
      returnvalue->'metadata'->>'title' as title,
      returnvalue->>'markdown' as content,
      finished_at,
      COALESCE(LENGTH(returnvalue->>'markdown'), 0) as content_length
    FROM nuq.queue_scrape
    WHERE group_id = $1::uuid
      AND status = 'completed'
      AND (data->>'mode') = 'single_urls'
    ORDER BY finished_at ASC, created_at ASC
"""
STATS = """
    SELECT status::text, COUNT(*) as count
    FROM nuq.queue_scrape
    WHERE group_id = $1 AND data->>'mode' = 'single_urls'
    GROUP BY status
    UNION ALL
    SELECT 'backlog'::text, COUNT(*) as count
    FROM nuq.queue_scrape_backlog
    WHERE group_id = $1 AND data->>'mode' = 'single_urls'
"""
PROGRESS = """
    SELECT
      gc.id as crawl_id,
      gc.status as crawl_status,
      gc.created_at as started_at,
      gc.expires_at,
      COUNT(*) FILTER (WHERE qs.status = 'completed') as completed_count,
      COUNT(*) FILTER (WHERE qs.status = 'failed') as failed_count,
      COUNT(*) FILTER (WHERE qs.status = 'active') as active_count,
      COUNT(*) FILTER (WHERE qs.status = 'queued') as queued_count,
      COUNT(*) as total_count
    FROM nuq.group_crawl gc
    LEFT JOIN nuq.queue_scrape qs
      ON qs.group_id = gc.id AND (qs.data->>'mode') = 'single_urls'
    WHERE gc.id = $1::uuid
    GROUP BY gc.id, gc.status, gc.created_at, gc.expires_at
"""
NEAR_DELETION = """
    SELECT
      id,
      status,
      created_at,
      NOW() - created_at as age,
      CASE
        WHEN status = 'completed' THEN INTERVAL '1 hour' - (NOW() - created_at)
        WHEN status = 'failed' THEN INTERVAL '6 hours' - (NOW() - created_at)
      END as time_until_deletion
    FROM nuq.queue_scrape
    WHERE group_id IS NULL
      AND (
        (status = 'completed' AND created_at > NOW() - INTERVAL '55 minutes')
        OR (status = 'failed' AND created_at > NOW() - INTERVAL '5 hours 55 minutes')
      )
    ORDER BY created_at DESC
"""

OWNER = UUID(int=7)
PAGE = {"url": "https://example.org/", "mode": "single_urls", "team_id": "bypass"}


async def add(
    db: Any,
    *,
    data: Any = PAGE,
    priority: int = 0,
    group: UUID | None = None,
    owner: UUID | None = None,
    channel: str | None = None,
    job_id: UUID | None = None,
) -> UUID:
    row = await db.fetchrow(ADD, job_id, json.dumps(data), priority, channel, owner, group)
    found: UUID = row["id"]
    return found


async def add_group(db: Any, owner: UUID, ttl: int = 86_400_000) -> UUID:
    found: UUID = await db.fetchval(ADD_GROUP, owner, ttl)
    return found


async def take(db: Any) -> Any:
    return await db.fetchrow(TAKE)


async def finish(db: Any, job: Any, result: Any = None) -> bool:
    """What jobFinish answers: false if the lock was lost."""
    text = None if result is None else json.dumps(result)
    return bool(await db.fetch(FINISH, job["id"], job["lock"], text))


async def fail(db: Any, job: Any, reason: str) -> bool:
    return bool(await db.fetch(FAIL, job["id"], job["lock"], reason))


async def renew(db: Any, job: Any) -> bool:
    answer: str = await db.execute(RENEW, job["id"], job["lock"])
    return answer == "UPDATE 1"


async def see(db: Any, job_id: UUID) -> Any:
    return await db.fetchrow("SELECT * FROM nuq.queue_scrape WHERE id = $1", job_id)


async def age(db: Any, job_id: UUID, column: str, by: str) -> None:
    """Move a time of a job into the past, as on a table."""
    answer = await db.execute(
        f"UPDATE nuq.queue_scrape SET {column} = {column} - interval '{by}' WHERE id = $1",
        job_id,
    )
    assert answer == "UPDATE 1"
