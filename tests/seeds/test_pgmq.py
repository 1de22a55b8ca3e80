"""Seed 002, P1 to P4: PGMQ in plain SQL, as workers and people write it, beside Windrow's own
workers and without any. What the client for Python covers is in test_pgmq_client.py."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from tests.builders import add, claim, complete, completion, counts, fail, get, make_group
from tests.builders import row as new_row
from tests.seeds.conftest import Connect, until_waiting
from tests.seeds.documents import Reading
from tests.seeds.messages import create, let_it_run_out, read, rows_touched, send
from tests.seeds.workers import run_worker
from windrow.queue.job import JobState
from windrow.queue.store import Store

DIALECT = "pgmq"
SEED = "002"


async def test_p1_p2_the_pipeline_of_the_document_runs(db: Any) -> None:
    """Router, scraper, enricher: each reads its queue, sends on, archives."""
    await create(db, "scrape_jobs", "enrich_jobs")
    await send(db, "scrape_jobs", {"video_id": 7})
    [scrape] = await read(db, "scrape_jobs", 120)
    async with db.transaction():
        await send(db, "enrich_jobs", {"video_id": 7, "transcript": "…"})
        assert await db.fetchval("SELECT pgmq.archive('scrape_jobs', $1::bigint)", scrape["msg_id"])
    [enrich] = await read(db, "enrich_jobs", 300)
    assert json.loads(enrich["message"])["video_id"] == 7
    assert await db.fetchval("SELECT pgmq.archive('enrich_jobs', $1::bigint)", enrich["msg_id"])
    assert await db.fetch("SELECT * FROM pgmq.q_scrape_jobs") == []
    assert await db.fetchval("SELECT count(*) FROM pgmq.a_scrape_jobs") == 1
    [row] = await db.fetch("SELECT * FROM pgmq.a_enrich_jobs")
    assert json.loads(row["message"]) == {"video_id": 7, "transcript": "…"}
    assert row["archived_at"] >= row["last_read_at"]


async def test_p3_the_documents_own_statements_run(db: Any, reading: Reading) -> None:
    await create(db, "scrape_jobs", "enrich_jobs")
    await db.execute(
        "CREATE TABLE clipnest_videos (id int, video_url text, processing_status text, "
        "processing_error text, created_at timestamptz DEFAULT now())"
    )
    live = [await send(db, "scrape_jobs", 1), await send(db, "scrape_jobs", 2)]
    done = await send(db, "enrich_jobs", 3)
    await db.execute("SELECT pgmq.archive('enrich_jobs', $1::bigint)", done)

    def numbers(rows: list[Any]) -> list[int]:
        return sorted(row["msg_id"] for row in rows)

    assert numbers(await reading.run(db, reading.find("pgmq.q_scrape_jobs"))) == live
    assert numbers(await reading.run(db, reading.find("pgmq.q_enrich_jobs"))) == []
    assert numbers(await reading.run(db, reading.find("pgmq.a_scrape_jobs"))) == []
    assert numbers(await reading.run(db, reading.find("pgmq.a_enrich_jobs"))) == [done]
    assert await reading.run(db, reading.find("processing_status")) == []


async def test_p2_a_message_whose_reader_died_reappears(db: Any) -> None:
    await create(db, "jobs")
    msg_id = await send(db, "jobs")
    [first] = await read(db, "jobs")
    assert await read(db, "jobs") == []
    await let_it_run_out(db, msg_id)
    [second] = await read(db, "jobs")
    assert (first["read_ct"], second["read_ct"]) == (1, 2)
    assert second["vt"] - second["last_read_at"] == timedelta(seconds=120)


async def test_p2_a_short_vt_runs_out_by_itself(db: Any) -> None:
    await create(db, "jobs")
    msg_id = await send(db, "jobs")
    await read(db, "jobs", vt=1)
    found = await db.fetch("SELECT * FROM pgmq.read_with_poll('jobs', 60, 1, 20, 20)")
    assert [(row["msg_id"], row["read_ct"]) for row in found] == [(msg_id, 2)]


async def test_p2_of_a_batch_only_what_was_not_archived_reappears(db: Any) -> None:
    await create(db, "jobs")
    ids = [await send(db, "jobs", n) for n in range(3)]
    await read(db, "jobs", vt=0, qty=3)
    assert await db.fetchval("SELECT pgmq.archive('jobs', $1::bigint)", ids[1])
    assert [row["msg_id"] for row in await read(db, "jobs", qty=5)] == [ids[0], ids[2]]


async def test_p4_a_poisoned_message_is_archived_and_the_rest_keeps_flowing(db: Any) -> None:
    await create(db, "jobs")
    await db.execute("CREATE TABLE videos (id int, processing_status text, processing_error text)")
    await db.execute("INSERT INTO videos VALUES (1, 'pending'), (2, 'pending')")
    poison, good = await send(db, "jobs", {"id": 1}), await send(db, "jobs", {"id": 2})
    done = []
    for _ in range(6):
        for row in await read(db, "jobs", vt=0, qty=10):
            message = json.loads(row["message"])
            if row["msg_id"] == poison and row["read_ct"] <= 3:
                continue  # crashes
            if row["read_ct"] > 3:
                await db.execute(
                    "UPDATE videos SET processing_status = 'failed', processing_error = $2 "
                    "WHERE id = $1",
                    *(message["id"], f"gave up after {row['read_ct']} reads"),
                )
            await db.execute("SELECT pgmq.archive('jobs', $1::bigint)", row["msg_id"])
            done.append((row["msg_id"], row["read_ct"]))
    assert done == [(good, 1), (poison, 4)]
    failed = await db.fetchrow("SELECT * FROM videos WHERE processing_status = 'failed'")
    assert (failed["id"], failed["processing_error"]) == (1, "gave up after 4 reads")


async def test_p4_reads_can_be_limited_and_what_failed_is_listed(db: Any, store: Store) -> None:
    await create(db, "jobs")
    await db.execute("SELECT pgmq.set_max_reads('jobs', 3)")
    poison = await send(db, "jobs", {"n": 1})
    reads = [len(await read(db, "jobs", vt=0)) for _ in range(5)]
    assert reads == [1, 1, 1, 0, 0]
    [letter] = await db.fetch("SELECT * FROM pgmq.dead_letters('jobs')")
    assert (letter["msg_id"], letter["read_ct"]) == (poison, 3)
    assert letter["error"] == "crashed 3 times: the lease ran out"
    assert [row["msg_id"] for row in await db.fetch("SELECT * FROM pgmq.a_jobs")] == [poison]
    await store.retry_jobs([str(letter["job_id"])])
    assert await db.fetch("SELECT * FROM pgmq.a_jobs") == []
    assert [row["msg_id"] for row in await read(db, "jobs")] == [poison]


@pytest.mark.parametrize("verb", ["archive", "delete"])
async def test_a_reader_that_was_too_slow_is_refused(db: Any, verb: str) -> None:
    await create(db, "jobs")
    msg_id = await send(db, "jobs")
    [slow] = await read(db, "jobs", vt=0)
    [rightful] = await read(db, "jobs", vt=600)
    end = f"SELECT pgmq.{verb}('jobs', $1::bigint, $2::integer)"
    assert await db.fetchval(end, msg_id, slow["read_ct"]) is False
    assert await db.fetchval(end, msg_id, rightful["read_ct"]) is True
    assert await db.fetchval(end, msg_id, rightful["read_ct"]) is False


async def test_p3_the_live_relation_takes_what_a_table_takes(db: Any) -> None:
    await create(db, "jobs")
    row = await db.fetchrow(
        """INSERT INTO pgmq.q_jobs (vt, message, headers)
           VALUES (now(), '{"n": 1}', '{"h": 2}') RETURNING *"""
    )
    assert (row["read_ct"], row["message"], row["headers"]) == (0, '{"n": 1}', '{"h": 2}')
    claimed = await db.fetchrow(
        """WITH cte AS (SELECT msg_id FROM pgmq.q_jobs WHERE vt <= clock_timestamp()
                         ORDER BY msg_id LIMIT 1 FOR UPDATE SKIP LOCKED)
           UPDATE pgmq.q_jobs AS m
              SET vt = clock_timestamp() + interval '30 s', read_ct = read_ct + 1,
                  last_read_at = clock_timestamp()
             FROM cte WHERE m.msg_id = cte.msg_id RETURNING m.*"""
    )
    assert (claimed["msg_id"], claimed["read_ct"]) == (row["msg_id"], 1)
    assert await read(db, "jobs") == []
    await db.execute("UPDATE pgmq.q_jobs SET message = '{\"n\": 3}'")
    await db.execute("UPDATE pgmq.q_jobs SET vt = now()")
    [again] = await read(db, "jobs", vt=60)
    assert (again["message"], again["read_ct"]) == ('{"n": 3}', 2)
    assert (
        await db.execute("DELETE FROM pgmq.q_jobs WHERE msg_id = $1", row["msg_id"]) == "DELETE 1"
    )
    assert await db.fetchval("SELECT count(*) FROM pgmq.q_jobs") == 0


async def test_p3_an_update_that_saw_an_older_row_does_nothing(db: Any, connect: Connect) -> None:
    other = await connect()
    await create(db, "jobs")
    msg_id = await send(db, "jobs")
    held = other.transaction()
    await held.start()
    await read(other, "jobs", vt=600)
    stale = asyncio.create_task(
        db.execute("UPDATE pgmq.q_jobs SET vt = now(), read_ct = 0 WHERE msg_id = $1", msg_id)
    )
    await until_waiting(other)
    await held.commit()
    assert await stale == "UPDATE 0"
    assert await db.fetchval("SELECT read_ct FROM pgmq.q_jobs") == 1


async def test_p3_the_archive_is_cleaned_like_a_table(db: Any) -> None:
    await create(db, "jobs")
    for n in range(3):
        await send(db, "jobs", n)
    ids = [row["msg_id"] for row in await read(db, "jobs", qty=3)]
    await db.execute("SELECT pgmq.archive('jobs', $1::bigint[])", ids)
    assert await db.execute("DELETE FROM pgmq.a_jobs WHERE msg_id <> $1", ids[0]) == "DELETE 2"
    assert [row["msg_id"] for row in await db.fetch("SELECT * FROM pgmq.a_jobs")] == [ids[0]]
    assert (await db.fetchrow("SELECT * FROM pgmq.metrics('jobs')"))["total_messages"] == 3


async def test_names_of_queues_are_taken_as_they_are(db: Any) -> None:
    await create(db, "foo", "Foo", "with space")
    await send(db, "Foo", 1)
    await send(db, "with space", 2)
    assert await read(db, "foo") == []
    assert [row["message"] for row in await read(db, "Foo")] == ["1"]
    assert await db.fetchval('SELECT count(*) FROM pgmq."q_Foo"') == 1
    assert await db.fetchval('SELECT count(*) FROM pgmq."q_with space"') == 1


async def test_sending_belongs_to_the_senders_transaction(db: Any, connect: Connect) -> None:
    other = await connect()
    await create(db, "jobs")
    sending = db.transaction()
    await sending.start()
    await send(db, "jobs")
    assert await read(other, "jobs") == []
    await sending.rollback()
    assert await read(other, "jobs") == []


async def test_a_read_that_is_rolled_back_never_was(db: Any) -> None:
    await create(db, "jobs")
    await send(db, "jobs")
    reading = db.transaction()
    await reading.start()
    await read(db, "jobs")
    await reading.rollback()
    assert [row["read_ct"] for row in await read(db, "jobs")] == [1]


async def test_purge_and_drop_leave_nothing_live(db: Any, store: Store) -> None:
    await create(db, "jobs")
    for n in range(4):
        await send(db, "jobs", n)
    await read(db, "jobs", qty=2)
    await db.execute("SELECT pgmq.archive('jobs', 1::bigint)")
    assert await db.fetchval("SELECT pgmq.purge_queue('jobs')") == 3
    assert await counts(store, "jobs") == {JobState.COMPLETED: 1}
    assert await db.fetchval("SELECT pgmq.drop_queue('jobs')") is True
    assert await db.fetchval("SELECT count(*) FROM windrow.job") == 0
    with pytest.raises(asyncpg.UndefinedTableError):
        await send(db, "jobs")
    await create(db, "jobs")
    await send(db, "jobs")


async def test_messages_are_jobs_for_windrows_workers(db: Any, store: Store) -> None:
    await create(db, "jobs")
    msg_id = await send(db, "jobs", {"n": 1}, trace="t")
    [job] = await claim(store, 1, "jobs")
    assert (job.kind, dict(job.headers)) == ("pgmq", {"trace": "t"})
    assert await read(db, "jobs") == []
    shown = await db.fetchrow("SELECT * FROM pgmq.q_jobs")
    assert shown["vt"] > datetime.now(UTC)
    await complete(store, job, {"ok": True})
    assert await db.fetchval("SELECT msg_id FROM pgmq.a_jobs") == msg_id


async def test_jobs_are_messages_for_readers(db: Any, store: Store) -> None:
    await create(db, "jobs")
    job_id = await add(store, "resize", {"n": 1}, queue="jobs")
    [message] = await read(db, "jobs")
    assert json.loads(message["message"]) == {"n": 1}
    job = await get(store, job_id)
    assert (job.state, job.runs) == (JobState.ACTIVE, 1)
    assert await claim(store, 1, "jobs") == []
    assert await db.fetchval("SELECT pgmq.archive('jobs', $1::bigint)", message["msg_id"])
    assert (await get(store, job_id)).state is JobState.COMPLETED


@pytest.mark.parametrize(
    "write",
    [
        "DELETE FROM pgmq.q_jobs WHERE msg_id = $1",
        "UPDATE pgmq.q_jobs SET vt = now() + interval '1 h' WHERE msg_id = $1",
    ],
    ids=["delete", "put off"],
)
async def test_p3_write_to_a_lapsed_message_that_waits_for_a_rescue_holds(
    db: Any, connect: Connect, write: str
) -> None:
    """In a table nothing changes when a message becomes visible again."""
    await create(db, "jobs")
    number = await send(db, "jobs", 1)
    await read(db, "jobs", 30)
    await let_it_run_out(db, number)
    other = await connect()
    async with other.transaction():
        rescue = "SELECT windrow_dialect.rescue_job(id) FROM windrow.job_live"
        assert await other.fetchval(rescue) == "ready"
        writing = asyncio.create_task(db.execute(write, number))
        await until_waiting(other)

    assert (await writing).endswith(" 1")
    assert await read(db, "jobs", 30) == []


async def test_a_worker_whose_message_was_archived_has_lost_it(db: Any, store: Store) -> None:
    await create(db, "jobs")
    msg_id = await send(db, "jobs")
    [job] = await claim(store, 1, "jobs")
    await db.execute("SELECT pgmq.set_vt('jobs', $1::bigint, 3600)", msg_id)
    assert job.lease_token is not None
    assert (await store.extend_leases([job.lease_token])).held == {job.id}
    assert await db.fetchval("SELECT pgmq.archive('jobs', $1::bigint)", msg_id)
    assert (await store.finish_jobs([completion(job)])).lost == (job.id,)


async def test_what_happens_to_messages_is_told_as_of_all_jobs(db: Any, store: Store) -> None:
    await create(db, "jobs")
    async with db.transaction():
        await send(db, "jobs")
        await db.execute("SELECT pgmq.archive('jobs', msg_id) FROM pgmq.read('jobs', 30, 1)")
    told = await db.fetch("SELECT type, state, queue, kind FROM windrow.event ORDER BY seq")
    assert [tuple(row) for row in told] == [
        ("job.created", "ready", "jobs", "pgmq"),
        ("job.started", "active", "jobs", "pgmq"),
        ("job.finished", "completed", "jobs", "pgmq"),
    ]


async def test_a_name_too_long_for_a_channel_cannot_be_listened_to(db: Any) -> None:
    name = "ж" * 30
    await create(db, name)
    with pytest.raises(asyncpg.RaiseError, match="too long for a channel"):
        await db.execute("SELECT pgmq.enable_notify_insert($1)", name)
    with pytest.raises(asyncpg.RaiseError, match="too long"):
        await create(db, "ж" * 31)


async def test_message_that_a_windrow_worker_failed_is_in_the_archive(
    db: Any, store: Store
) -> None:
    await create(db, "jobs")
    msg_id = await send(db, "jobs", {"n": 1})
    [job] = await claim(store, 1, "jobs")
    await fail(store, job)

    assert await read(db, "jobs") == []
    [row] = await db.fetch("SELECT * FROM pgmq.a_jobs")
    assert (row["msg_id"], row["message"], row["read_ct"]) == (msg_id, '{"n": 1}', 1)
    assert row["archived_at"] is not None
    kept = "SELECT expires_at = 'infinity' FROM windrow.job_finished"
    assert await db.fetchval(kept) is True
    assert await db.execute("DELETE FROM pgmq.a_jobs WHERE msg_id = $1", msg_id) == "DELETE 1"


async def test_queue_of_an_earlier_version_keeps_what_fails_as_it_keeps_its_archive(
    db: Any, store: Store
) -> None:
    await create(db, "jobs")
    await db.execute("SELECT pgmq.create_partitioned('days', '1 day', '3 days')")
    await db.execute("UPDATE windrow.queue SET failed_seconds = NULL")
    await db.execute("UPDATE windrow.dialect SET version = 'earlier'")
    assert await store.migrate() == ["dialect pgmq"]
    kept = await db.fetch("SELECT name, failed_seconds FROM windrow.queue")
    assert dict(kept) == {"jobs": -1, "days": 259200}


async def test_p3_an_archived_message_is_found_by_its_number(db: Any, store: Store) -> None:
    await create(db, "jobs")
    await db.fetchval(
        "SELECT count(*) FROM pgmq.send_batch('jobs', array_fill('1'::jsonb, ARRAY[2000]))"
    )
    await db.fetch(
        "SELECT pgmq.archive('jobs', ARRAY(SELECT msg_id FROM pgmq.read('jobs', 30, 2000)))"
    )
    async with db.transaction():
        assert await db.fetchval("SELECT count(*) FROM pgmq.a_jobs WHERE msg_id = 77") == 1
        assert (await rows_touched(db))["job_finished_kept"] < 20


async def test_a_bounded_queue_takes_no_more_messages(db: Any, store: Store) -> None:
    await create(db, "jobs")
    await db.execute("UPDATE windrow.queue SET max_depth = 2 WHERE name = 'jobs'")
    for n in range(2):
        await send(db, "jobs", n)
    with pytest.raises(asyncpg.PostgresError, match="full"):
        await send(db, "jobs", 3)


async def test_windrows_rescuer_brings_messages_back_too(db: Any, store: Store) -> None:
    await create(db, "jobs")
    msg_id = await send(db, "jobs")
    await read(db, "jobs", vt=0)
    [change] = await store.rescue_jobs()
    assert change.after is JobState.READY
    assert [row["msg_id"] for row in await read(db, "jobs")] == [msg_id]


async def test_readers_stand_in_for_workers_that_are_gone(db: Any, store: Store) -> None:
    await create(db, "jobs")
    msg_id = await send(db, "jobs")
    [job] = await claim(store, 1, "jobs", seconds=1)
    await db.execute("UPDATE windrow.lease SET expires_at = now() - interval '1 s'")
    assert [row["msg_id"] for row in await read(db, "jobs")] == [msg_id]
    assert (await store.finish_jobs([completion(job)])).lost == (job.id,)


async def test_members_of_a_group_settle_it_from_here(db: Any, store: Store) -> None:
    await create(db, "jobs")
    group = await make_group(store)
    for n in range(2):
        await add(store, "part", n, queue="jobs", group=group.id)
    await store.close_group(group.id)
    first, second = [row["msg_id"] for row in await read(db, "jobs", qty=2)]
    assert await db.fetchval("SELECT pgmq.archive('jobs', $1::bigint)", first)
    assert await db.fetchval("SELECT pgmq.delete('jobs', $1::bigint)", second)
    ended = await store.get_group(group.id)
    assert ended is not None
    assert (ended.pending, ended.counts[JobState.COMPLETED]) == (0, 1)


async def test_a_paused_queue_is_not_read(db: Any, store: Store) -> None:
    await create(db, "jobs")
    await send(db, "jobs")
    await store.pause_queue("jobs")
    assert await read(db, "jobs") == []
    assert await db.fetch("SELECT * FROM pgmq.read_grouped('jobs', 1, 1)") == []
    await store.resume_queue("jobs")
    assert len(await read(db, "jobs")) == 1


async def test_a_listener_hears_when_a_delay_ends(db: Any, connect: Connect, store: Store) -> None:
    listener = await connect()
    heard: asyncio.Queue[str] = asyncio.Queue()
    await create(db, "Jobs")
    await listener.add_listener("pgmq.q_Jobs.INSERT", lambda *told: heard.put_nowait(told[2]))
    await db.execute("SELECT pgmq.enable_notify_insert('Jobs', 0)")
    await db.execute("SELECT pgmq.send('Jobs', '1', delay => 1)")
    await db.execute("SELECT pg_sleep(1.1)")
    assert heard.empty()
    assert await store.stage_jobs() == 1
    await asyncio.wait_for(heard.get(), 20)
    await send(db, "Jobs", 2)
    await asyncio.wait_for(heard.get(), 20)
    await db.execute("SELECT pgmq.update_notify_insert('Jobs', 3600000)")
    for n in range(3):
        await send(db, "Jobs", n)
    await asyncio.wait_for(heard.get(), 20)
    await db.execute("SELECT pgmq.disable_notify_insert('Jobs')")
    await db.execute("SELECT pg_notify('pgmq.q_Jobs.INSERT', 'last')")
    assert await asyncio.wait_for(heard.get(), 20) == "pgmq.q_Jobs.INSERT"
    assert heard.empty()


async def test_a_listener_hears_what_windrow_enqueues_however_it_is_counted(
    db: Any, connect: Connect, store: Store
) -> None:
    """P1: what a job's statement counts itself, and what the trigger on the tally watches."""
    await create(db, "jobs")
    await db.execute("SELECT pgmq.enable_notify_insert('jobs', 0)")
    listener = await connect()
    heard: asyncio.Queue[str] = asyncio.Queue()
    await listener.add_listener("pgmq.q_jobs.INSERT", lambda *told: heard.put_nowait(told[2]))
    await add(store, queue="jobs")
    await asyncio.wait_for(heard.get(), 20)
    assert await db.fetchval("SELECT count(*) FROM windrow.tally_told") == 1
    told = "INSERT INTO windrow.tally VALUES (1, 'jobs', 'ready'), (-1, 'jobs', 'ready')"
    await db.execute(told)
    await asyncio.wait_for(heard.get(), 20)
    await add(store, queue="jobs")
    await asyncio.wait_for(heard.get(), 20)
    assert heard.empty()


async def test_p1_the_wrappers_for_web_clients(db: Any) -> None:
    await create(db, "jobs")
    first = await db.fetchval("SELECT pgmq_public.send('jobs', '{\"n\": 1}')")
    await db.fetch("SELECT pgmq_public.send_batch('jobs', ARRAY['2', '3']::jsonb[], 0)")
    found = await db.fetch("SELECT * FROM pgmq_public.read('jobs', 30, 5)")
    assert [row["message"] for row in found] == ['{"n": 1}', "2", "3"]
    assert await db.fetchval("SELECT pgmq_public.archive('jobs', $1)", first) is True
    assert await db.fetchval("SELECT pgmq_public.delete('jobs', $1)", found[1]["msg_id"]) is True
    assert await db.fetch("SELECT * FROM pgmq_public.pop('jobs')") == []
    sent = await db.fetchval("SELECT public.pgmq_send(queue_name => 'jobs', msg => '4')")
    [row] = await db.fetch(
        "SELECT * FROM public.pgmq_read(queue_name => 'jobs', vt => 30, qty => 1)"
    )
    assert row["msg_id"] == sent
    archive = "SELECT public.pgmq_archive(queue_name => 'jobs', msg_id => $1, read_ct => $2)"
    assert await db.fetchval(archive, sent, 7) is False
    assert await db.fetchval(archive, sent, 1) is True


async def test_grouped_heads_are_the_first_of_each_group(db: Any) -> None:
    await create(db, "jobs")
    for name in ("a1", "a2", "b1", "c1"):
        await send(db, "jobs", name, **{"x-pgmq-group": name[0]})
    heads = await db.fetch("SELECT * FROM pgmq.read_grouped_head('jobs', 600, 2)")
    assert [json.loads(row["message"]) for row in heads] == ["a1", "b1"]
    rest = await db.fetch("SELECT * FROM pgmq.read_grouped_head_with_poll('jobs', 600, 5, 1, 10)")
    assert [json.loads(row["message"]) for row in rest] == ["c1"]


async def test_groups_are_never_read_by_two_at_once(db: Any, connect: Connect) -> None:
    await create(db, "jobs")
    for n in range(60):
        await send(db, "jobs", n, **{"x-pgmq-group": f"g{n % 3}"})
    seen: list[int] = []
    holding: Counter[int] = Counter()

    async def work() -> None:
        mine = await connect()
        while len(seen) < 60:
            for row in await mine.fetch("SELECT * FROM pgmq.read_grouped_rr('jobs', 600, 2)"):
                number = json.loads(row["message"])
                holding[number % 3] += 1
                seen.append(number)
                await mine.execute("SELECT pgmq.archive('jobs', $1::bigint)", row["msg_id"])

    await asyncio.wait_for(asyncio.gather(*(work() for _ in range(4))), 120)
    assert sorted(seen) == list(range(60))
    for group in range(3):
        assert [n for n in seen if n % 3 == group] == list(range(group, 60, 3))


@pytest.mark.parametrize("headers", ["[1]", '"x"', "5"])
async def test_headers_that_are_no_object_are_refused(db: Any, headers: str) -> None:
    await create(db, "jobs")
    with pytest.raises(asyncpg.PostgresError, match="must be an object"):
        await db.execute("SELECT pgmq.send('jobs', '1', $1::jsonb)", headers)


@pytest.mark.parametrize(
    "pattern", ["", ".a", "a.", "a..b", "a.**", "a.##", "a.*#", "a b", "a" * 256]
)
async def test_patterns_that_mean_nothing_are_refused(db: Any, pattern: str) -> None:
    with pytest.raises(asyncpg.RaiseError, match="pattern"):
        await db.fetchval("SELECT pgmq.validate_topic_pattern($1)", pattern)
    assert await db.fetchval("SELECT pgmq.validate_topic_pattern('a.*.#')") is True
    with pytest.raises(asyncpg.RaiseError, match="routing_key"):
        await db.fetchval("SELECT pgmq.validate_routing_key('a.*')")


STATISTICS = {
    "none": "SELECT 1",
    "of a queue that is empty": "ANALYZE windrow.job_live; ANALYZE windrow.lease",
    "of messages that are ready": "SELECT pgmq.send('jobs', '1') FROM generate_series(1, 500); "
    "ANALYZE windrow.job_live; SELECT pgmq.purge_queue('jobs')",
    "of messages that are read": "SELECT pgmq.send('jobs', '1') FROM generate_series(1, 500); "
    "SELECT pgmq.read('jobs', 60, 500); ANALYZE windrow.job_live; ANALYZE windrow.lease; "
    "SELECT pgmq.purge_queue('jobs')",
    "of another queue's jobs": "SELECT pgmq.create('other'); "
    "SELECT pgmq.send('other', '1', delay => 60) FROM generate_series(1, 500); "
    "ANALYZE windrow.job_live; SELECT pgmq.drop_queue('other')",
}


@pytest.mark.parametrize(
    ("known", "size"),
    [(known, 5_000 if known == "of messages that are read" else 2000) for known in STATISTICS],
)
async def test_reads_stay_fast_behind_5_000_messages_nobody_sees(
    connect: Connect, store: Store, known: str, size: int
) -> None:
    """Read ones under one lease and under 200, and delayed ones, all before the visible one. What
    is planned on a connection was planned when there was almost nothing, by whatever statistics."""
    filler = await connect()
    await create(filler, "jobs")
    await filler.execute("ALTER TABLE windrow.job_live SET (autovacuum_enabled = off)")
    await filler.execute(STATISTICS[known])
    db = await connect()
    for verb in ("archive", "delete"):
        await send(db, "jobs")
        [row] = await read(db, "jobs")
        await db.execute("SELECT pgmq.set_vt('jobs', $1::bigint, 60)", row["msg_id"])
        await db.execute(f"SELECT pgmq.{verb}('jobs', $1::bigint)", row["msg_id"])
    await db.fetch("SELECT * FROM pgmq.metrics('jobs')")
    await fill_with_invisible(filler, size)
    visible = await send(db, "jobs", "visible")
    async with db.transaction():
        [row] = await read(db, "jobs")
        assert row["msg_id"] == visible
        touched = await rows_touched(db)
        assert touched["job_live"] < 100
        assert touched["lease"] < 100
    async with db.transaction():
        told = await db.fetchrow("SELECT * FROM pgmq.metrics('jobs')")
        assert (told["queue_length"], told["queue_visible_length"]) == (size + 1, 0)
        assert (await rows_touched(db))["job_live"] < 100
    async with db.transaction():
        await db.execute("SELECT pgmq.set_vt('jobs', $1::bigint, 60)", visible)
        assert (await rows_touched(db))["job_live"] < 100
    async with db.transaction():
        assert await db.fetchval("SELECT pgmq.archive('jobs', $1::bigint)", visible)
        assert (await rows_touched(db))["job_live"] < 100
    assert await db.fetchval("SELECT pgmq.purge_queue('jobs')") == size


async def fill_with_invisible(db: Any, size: int) -> None:
    """Half of them read, under few leases and many, and half delayed."""
    fill = (
        "SELECT count(*) "
        "FROM pgmq.send_batch('jobs', array_fill('1'::jsonb, ARRAY[$1::int]), $2::int)"
    )
    await db.fetchval(fill, size // 2, 0)
    await db.fetchval("SELECT count(*) FROM pgmq.read('jobs', 3600, $1)", size // 2 - 200)
    await db.fetchval(
        "SELECT count(*) FROM generate_series(1, 200) AS n, "
        "LATERAL (SELECT * FROM pgmq.read('jobs', 3600 + n * 0, 1)) AS one"
    )
    await db.fetchval(fill, size // 2, 3600)


async def test_reads_are_planned_by_the_claim_index(db: Any) -> None:
    try:
        await db.execute("LOAD 'auto_explain'")
    except asyncpg.PostgresError:
        pytest.skip("this Postgres has no auto_explain")
    await create(db, "jobs")
    await db.fetchval(
        "SELECT count(*) FROM pgmq.send_batch('jobs', array_fill('1'::jsonb, ARRAY[5000]))"
    )
    plans: list[str] = []
    db.add_log_listener(lambda _, told: plans.append(told.message))
    await db.execute(
        "SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on; "
        "SET client_min_messages = log"
    )
    [row] = await read(db, "jobs")
    await db.execute("SELECT pgmq.archive('jobs', $1::bigint)", row["msg_id"])
    await db.fetch("SELECT * FROM pgmq.q_jobs WHERE msg_id = 77")
    await db.execute("SET client_min_messages = notice")
    seen = "\n".join(plans)
    assert "Seq Scan on job_live" not in seen
    assert "Seq Scan on lease" not in seen
    for index in ("job_live_claim", "pgmq_scheduled", "lease_pkey", "pgmq_live"):
        assert f"using {index}" in seen, seen


async def test_500_messages_each_once_by_readers_and_a_worker(
    db: Any, connect: Connect, store: Store, dialect_url: str
) -> None:
    """8 connections; Windrow enqueues half of the messages, and a worker of its own takes some."""
    await create(db, "jobs")
    await db.fetchval(
        "SELECT count(*) FROM pgmq.send_batch('jobs', "
        "ARRAY(SELECT to_jsonb(n) FROM generate_series(0, 249) AS n))"
    )
    await store.insert_jobs([new_row("work", n, queue="jobs") for n in range(250, 500)])
    done: list[int] = []

    async def reader() -> None:
        mine = await connect()
        while rows := await read(mine, "jobs", 600, 1):
            done.extend(json.loads(row["message"]) for row in rows)
            ids = [row["msg_id"] for row in rows]
            assert len(await mine.fetch("SELECT pgmq.archive('jobs', $1::bigint[])", ids)) == len(
                ids
            )

    worker = asyncio.create_task(
        run_worker(dialect_url, "jobs", ["pgmq", "work"], lambda job: done.append(job.payload))
    )
    await asyncio.gather(*(reader() for _ in range(8)), worker)
    assert 0 < worker.result() < 500
    assert sorted(done) == list(range(500))
    assert await db.fetchval("SELECT count(*) FROM pgmq.a_jobs") == 500
