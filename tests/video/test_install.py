"""`windrow db install video`: the table, its trigger, its queues. P5, P8, P9."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.conftest import MakeDatabase
from tests.video.conftest import Studio
from tests.video.standins import TIKTOK
from windrow import Queue
from windrow.errors import ConfigError, FileGone, InvalidOptions, StoreError, VideoNotFound
from windrow.services.video import add_video, get_video, install_video, list_videos, told_of_row
from windrow.settings import Settings
from windrow.testing import drain

BEFORE = (
    "create table clipnest_videos (id integer primary key, video_url varchar(200), "
    "created_at varchar(30))"
)


async def test_existing_table_gets_what_is_missing_and_its_rows_are_left_alone(
    queue: Queue, run_sql, tmp_path: Path
) -> None:
    """P9: on an existing table (id, video_url, created_at)."""
    run_sql(BEFORE)
    run_sql("insert into clipnest_videos values (1, 'https://a.example/1.mp4', '2026')")
    settings = Settings(data_dir=str(tmp_path))
    assert (await install_video(queue, settings)).is_new
    assert not (await install_video(queue, settings)).is_new
    run_sql("insert into clipnest_videos (id, video_url) values (2, 'https://a.example/2.mp4')")
    found = run_sql("select id, processing_status from clipnest_videos order by id")
    assert [tuple(row) for row in found] == [(1, None), (2, "pending")]
    [job] = await queue.list(kind="video.scrape")
    assert (await queue.get(job.id)).payload == {"id": 2, "video_url": "https://a.example/2.mp4"}
    assert (job.max_attempts, job.max_crashes, job.unique) == (3, 4, "video:2")
    [schedule] = await queue.schedules()
    assert schedule.name == "video.sweep"
    assert (await queue.counts("scrape_jobs"))[job.state] == 1
    events = [one async for one in queue.events(after="0", types=["job.created"], follow=False)]
    assert job.id in [one.job_id for one in events]


async def test_what_is_taken_away_leaves_the_table(queue: Queue, run_sql, tmp_path: Path) -> None:
    await install_video(queue, Settings(data_dir=str(tmp_path)))
    await queue.store.remove_dialect("video")
    run_sql("insert into clipnest_videos (video_url) values ('https://a.example/2.mp4')")
    assert await queue.list(kind="video.scrape") == []


async def test_row_that_is_rolled_back_leaves_no_job(studio: Studio) -> None:
    with pytest.raises(StoreError):
        await studio.queue.store.change_rows(
            "insert into clipnest_videos (video_url) values (null)"
        )
    assert await studio.queue.list(kind="video.scrape") == []
    assert await list_videos(studio.queue) == []


async def test_what_cannot_be_added_is_refused_at_once(queue: Queue, tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path))
    with pytest.raises(ConfigError, match="windrow db install video"):
        await add_video(queue, settings, TIKTOK)
    await install_video(queue, settings)
    with pytest.raises(FileGone):
        await add_video(queue, settings, str(tmp_path / "nothing.mp4"))
    with pytest.raises(InvalidOptions):
        await add_video(queue, settings, "https://")
    with pytest.raises(VideoNotFound):
        await get_video(queue, "77")
    assert await list_videos(queue) == []


async def test_webhook_is_a_wake_up_that_can_be_repeated(studio: Studio) -> None:
    """P5: the trigger has enqueued it; only a row that came without one is enqueued by this."""
    video = await studio.add(TIKTOK)
    assert await told_of_row(studio.queue, "INSERT", video.id) == "under way"
    assert await told_of_row(studio.queue, "DELETE", video.id) == "ignored"
    [job] = await studio.queue.list(kind="video.scrape")
    await studio.queue.delete(job.id)
    told = await asyncio.gather(*(told_of_row(studio.queue, "INSERT", video.id) for _ in range(4)))
    assert sorted(told) == ["enqueued", "under way", "under way", "under way"]
    await studio.work()
    assert (await get_video(studio.queue, video.id)).status == "done"
    assert await told_of_row(studio.queue, "INSERT", video.id) == "ignored"
    with pytest.raises(VideoNotFound):
        await told_of_row(studio.queue, "INSERT", 77)


async def test_sweeper_begins_a_row_whose_job_is_lost(studio: Studio) -> None:
    video = await studio.add(TIKTOK)
    [job] = await studio.queue.list(kind="video.scrape")
    await studio.queue.delete(job.id)
    await studio.queue.enqueue(studio.sweeper.kind, queue="sweeping")

    await drain(studio.queue, [*studio.chain.handlers, studio.sweeper.handler])
    assert (await get_video(studio.queue, video.id)).status == "done"


@pytest.fixture
async def db(store_url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(store_url)
    yield connection
    await connection.close()


@pytest.fixture
def on_postgres(store_name: str) -> None:
    if store_name != "postgres":
        pytest.skip("PGMQ is for Postgres")


@pytest.mark.usefixtures("on_postgres")
async def test_queues_are_seen_as_those_of_pgmq(studio: Studio, db: Any) -> None:
    """P2, P8: live messages and the archive, in `pgmq`; a read takes a message for its VT."""
    video = await studio.add(TIKTOK)
    [message] = await db.fetch("SELECT * FROM pgmq.q_scrape_jobs")
    assert (message["msg_id"], message["read_ct"]) == (1, 0)
    [read] = await db.fetch("SELECT * FROM pgmq.read('scrape_jobs', 120, 1)")
    assert f'"{video.id}"' in read["message"]
    await db.execute("SELECT pgmq.set_vt('scrape_jobs', 1, 0)")
    await studio.work()
    assert await db.fetch("SELECT * FROM pgmq.q_scrape_jobs") == []
    assert await db.fetch("SELECT * FROM pgmq.q_enrich_jobs") == []
    archived = await db.fetch("SELECT read_ct FROM pgmq.a_scrape_jobs")
    assert [row["read_ct"] for row in archived] == [2]
    assert len(await db.fetch("SELECT * FROM pgmq.a_enrich_jobs")) == 1
    assert await db.fetchval("SELECT to_regprocedure('public.pgmq_send(text, jsonb, integer)')")


@pytest.mark.usefixtures("on_postgres")
async def test_message_that_others_read_three_times_is_poison(studio: Studio, db: Any) -> None:
    """P4: `read_ct > 3`: the fourth read says so on the row, and the message is gone."""
    video = await studio.add(TIKTOK)
    for _ in range(3):
        assert len(await db.fetch("SELECT * FROM pgmq.read('scrape_jobs', 120, 1)")) == 1
        await db.execute("UPDATE windrow.lease SET expires_at = now()")
    assert len(await db.fetch("SELECT * FROM pgmq.read('scrape_jobs', 120, 1)")) == 1
    await db.execute("SELECT pgmq.set_vt('scrape_jobs', 1, 0)")
    await studio.work()
    ended = await get_video(studio.queue, video.id)
    assert ended.status == "failed"
    assert "read more than 3 times" in (ended.error or "")
    assert await db.fetch("SELECT * FROM pgmq.q_scrape_jobs") == []


@pytest.mark.usefixtures("on_postgres")
async def test_insert_of_somebody_who_may_not_enqueue_is_enqueued(
    studio: Studio, db: Any, store_url: str
) -> None:
    await db.execute("CREATE ROLE windrow_test_visitor")
    try:
        await db.execute("GRANT INSERT ON clipnest_videos TO windrow_test_visitor")
        await db.execute("SET ROLE windrow_test_visitor")
        async with db.transaction():
            await db.execute("INSERT INTO clipnest_videos (video_url) VALUES ($1)", TIKTOK)
        await db.execute("RESET ROLE")
        assert len(await studio.queue.list(kind="video.scrape")) == 1
    finally:
        await db.execute("RESET ROLE; DROP OWNED BY windrow_test_visitor")
        await db.execute("DROP ROLE windrow_test_visitor")


async def test_column_of_another_type_is_named(
    make_database: MakeDatabase, postgres_template: str, tmp_path: Path
) -> None:
    url = make_database(postgres_template)
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute(f"{BEFORE}; alter table clipnest_videos add topics text[]")
    finally:
        await connection.close()
    async with Queue.open(url) as queue:
        with pytest.raises(StoreError, match="a column topics of the type ARRAY"):
            await install_video(queue, Settings(data_dir=str(tmp_path)))


async def test_other_pgmq_is_left_alone(
    make_database: MakeDatabase, postgres_template: str, tmp_path: Path
) -> None:
    url = make_database(postgres_template)
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE SCHEMA pgmq")
    finally:
        await connection.close()
    async with Queue.open(url) as queue:
        done = await install_video(queue, Settings(data_dir=str(tmp_path)))
    assert (done.is_new, done.is_visible) == (True, False)
    assert "a schema pgmq already" in (done.why_not or "")
