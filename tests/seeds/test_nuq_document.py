"""Seed N: the document's own statements, in the order of a crawl's life (N11)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.seeds import nuq
from tests.seeds.documents import Reading

DIALECT = "nuq"
SEED = "000"


async def test_the_documents_own_statements_run_n11(db: Any, reading: Reading) -> None:
    group = await nuq.add_group(db, nuq.OWNER, ttl=1000)
    for _ in range(3):
        await nuq.add(db, group=group)
    await db.fetchval(nuq.ADD_TO_BACKLOG, "{}", 0, nuq.OWNER, None, datetime.now(UTC))
    single = await nuq.add(db, priority=-1)

    # jobFinish, and what it tells those who listen.
    job = await nuq.take(db)
    assert job["id"] == single
    document = {"markdown": "# A", "metadata": {"title": "A", "statusCode": 200}}
    finish = reading.find("SET status = 'completed'::nuq.job_status", "returnvalue = $3")
    values = (job["id"], job["lock"], json.dumps(document))
    text = {"this.queueName": "nuq.queue_scrape"}
    assert [one["id"] for one in await reading.run(db, finish, *values, **text)] == [single]
    tell = reading.find("pg_notify", "$1")
    await reading.run(db, tell, f"{single}|completed", **text)

    # The questions of who reads.
    one = await nuq.take(db)
    assert await nuq.finish(db, one, document)
    [recent] = await reading.run(db, reading.find("SELECT id, returnvalue, finished_at"))
    assert json.loads(recent["returnvalue"]) == document
    [page] = await reading.run(db, reading.find("as markdown"), crawl_uuid=str(group))
    assert (page["id"], page["title"], page["markdown"]) == (one["id"], "A", "# A")
    stats = await reading.run(db, reading.find("'backlog'::text"), group)
    assert {s["status"]: s["count"] for s in stats} == {"completed": 1, "queued": 2, "backlog": 0}
    [found] = await reading.run(db, reading.find("failedreason", "WHERE id = $1::uuid"), single)
    assert found["status"] == "completed"
    [found] = await reading.run(db, reading.find("team_id"), "bypass")
    assert found["url"] == nuq.PAGE["url"]
    [found] = await reading.run(db, reading.find("content_length"), group)
    assert (found["content"], found["content_length"]) == ("# A", 3)
    [crawl] = await reading.run(db, reading.find("LEFT JOIN nuq.queue_scrape"), group)
    assert (crawl["crawl_status"], crawl["total_count"]) == ("active", 3)
    assert (crawl["completed_count"], crawl["queued_count"]) == (1, 2)
    [near] = await reading.run(db, reading.find("time_until_deletion"))
    assert near["id"] == single

    # The cron jobs.
    stalled = await nuq.take(db)
    await nuq.age(db, stalled["id"], "locked_at", "2 minutes")
    await _run_cron(db, reading, "nuq_queue_scrape_lock_reaper", 2)
    assert (await nuq.see(db, stalled["id"]))["stalls"] == 1
    await _run_cron(db, reading, "nuq_queue_scrape_backlog_reaper", 1)
    assert await db.fetchval("SELECT count(*) FROM nuq.queue_scrape_backlog") == 0
    while (job := await nuq.take(db)) is not None:
        assert await nuq.finish(db, job)
    empty = await nuq.add_group(db, nuq.OWNER)
    await _run_cron(db, reading, "nuq_group_crawl_finished", 1)
    done = await db.fetch("SELECT group_id FROM nuq.queue_crawl_finished")
    assert {one["group_id"] for one in done} == {group, empty}
    await db.execute("UPDATE nuq.group_crawl SET expires_at = now() - interval '1 s'")
    await _run_cron(db, reading, "nuq_group_crawl_clean", 1)
    left = "SELECT count(*) FROM nuq.queue_scrape WHERE group_id = $1"
    assert await db.fetchval(left, group) == 0
    await nuq.age(db, single, "created_at", "2 hours")
    await _run_cron(db, reading, "nuq_queue_scrape_clean_completed", 1)
    assert await nuq.see(db, single) is None
    await db.execute(
        "UPDATE nuq.queue_scrape SET created_at = $1", datetime.now(UTC) - timedelta(hours=7)
    )
    await _run_cron(db, reading, "nuq_queue_scrape_clean_failed", 1)
    assert await db.fetchval("SELECT count(*) FROM nuq.queue_scrape") == 0


async def _run_cron(db: Any, reading: Reading, name: str, statements: int) -> None:
    bodies = [one for one in reading.statements if one.cron == name]
    assert len(bodies) == statements
    for body in bodies:
        await reading.run(db, body)
