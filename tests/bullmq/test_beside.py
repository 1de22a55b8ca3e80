"""J8: rows in a database beside BullMQ. Whoever dies between the rows and the completion, or is
taken for dead, changes nothing: what jobs write is there once, and their first end stands."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from tests.calls.desk import lose_locks
from tests.conftest import CopyDatabase
from windrow import Done, Fail, NewJob, Queue, handler
from windrow.errors import (
    ConfigError,
    IllegalTransition,
    LeaseLost,
    StoreError,
    StoreUnavailable,
    Unsupported,
)
from windrow.pipelines.chain import Chain, StatusRow
from windrow.pipelines.sweeping import Sweeper
from windrow.queue.bullmq import beside, finishing
from windrow.queue.bullmq.location import parse_url, tables_url
from windrow.queue.bullmq.store import BullmqStore
from windrow.queue.job import Job, JobState
from windrow.queue.lease import to_finish
from windrow.redaction import redact_url
from windrow.settings import Settings
from windrow.testing import drain
from windrow.web.site import ROUTES, create_site

TABLE = "create table item (id integer primary key, status text not null, error text)"
ADD = "insert into item (id, status) values ($1, $2)"


@pytest.fixture
def rows_url(sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "rows.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def url(make_bullmq_url: Callable[[], str], rows_url: str) -> str:
    return f"{make_bullmq_url()}&rows={rows_url}"


@pytest.fixture
async def queue(url: str) -> AsyncIterator[Queue]:
    async with Queue.open(url) as opened:
        await opened.store.change_rows(TABLE)
        yield opened


def store_of(queue: Queue) -> BullmqStore:
    return cast(BullmqStore, queue.store)


async def items(queue: Queue) -> dict[int, str]:
    found = await queue.store.fetch_rows("select id, status from item order by id")
    return {row["id"]: row["status"] for row in found}


async def take(queue: Queue) -> tuple[Any, Job]:
    lease = await queue.claim()
    [job] = lease.jobs
    return lease, job


def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on nothing gets to BullMQ of what runs say at their ends."""

    async def cut_off(*_: Any) -> Any:
        raise StoreUnavailable("the connection was cut")

    monkeypatch.setattr(finishing, "finish_jobs", cut_off)


async def die_after_rows(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, n: int = 1, **options: Any
) -> Job:
    """A job whose end is in the rows, and that waits in BullMQ."""
    await queue.enqueue("work", **options)
    lease, job = await take(queue)
    await job.tx.execute(ADD, n, "written")
    with monkeypatch.context() as patch:
        cut(patch)
        with pytest.raises(StoreUnavailable):
            await lease.complete(job, {"by": "the first"}, then=[NewJob("next", {"n": 1})])
    assert (await items(queue))[n] == "written"
    assert (await queue.get(job.id)).state is JobState.ACTIVE
    await lose_locks(store_of(queue), [job])
    return job


async def check_death_after_rows(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await die_after_rows(queue, monkeypatch)

    assert not await queue.claim(kinds=["work"]), "it has ended, and is not run again"
    ended = await queue.get(job.id)
    assert (ended.state, ended.result) == (JobState.COMPLETED, {"by": "the first"})
    assert [one.payload for one in await queue.list(kind="next")] == [{"n": 1}]
    assert await items(queue) == {1: "written"}


async def test_who_dies_between_the_rows_and_the_completion_has_completed(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await check_death_after_rows(queue, monkeypatch)


async def test_the_same_with_postgres_beside(
    make_bullmq_url: Callable[[], str],
    copy_database: CopyDatabase,
    postgres_template: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = copy_database(postgres_template)
    async with Queue.open(f"{make_bullmq_url()}&rows={rows}") as queue:
        await queue.store.change_rows(TABLE)
        await check_death_after_rows(queue, monkeypatch)
        await queue.delete_all(kind="next")
        await check_cancel_after_rows(queue, monkeypatch)
        await queue.delete_all(kind="next")
        await queue.enqueue("work")
        stale, fresh = await taken_over(queue)
        await fresh[1].tx.execute(ADD, 7, "fresh")
        await fresh[0].complete(fresh[1])
        await check_stale_writes_nothing(queue, *stale)
        assert await items(queue) == {1: "written", 7: "fresh", 20: "written"}


async def check_cancel_after_rows(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await die_after_rows(queue, monkeypatch, 20)
    with pytest.raises(IllegalTransition, match="completed"):
        await queue.cancel(job.id)
    ended = await queue.get(job.id)
    assert (ended.state, ended.result) == (JobState.COMPLETED, {"by": "the first"})
    assert [one.payload for one in await queue.list(kind="next")] == [{"n": 1}]
    assert await queue.delete(job.id)
    assert [one.kind for one in await queue.list(state=JobState.READY)] == ["next"]


async def test_a_job_that_has_ended_in_the_rows_cannot_be_cancelled(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await check_cancel_after_rows(queue, monkeypatch)


@pytest.mark.parametrize("where", ["wait", "prioritized", "delayed", "paused"])
async def test_a_job_that_has_ended_in_the_rows_leaves_its_follow_ups_when_it_is_deleted(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    links = store_of(queue)._links
    job = await die_after_rows(queue, monkeypatch, unique="key")
    keys = links.scripts("default").keys
    await links.client.lrem(keys["wait"], 0, job.id)
    if where in ("wait", "paused"):
        await links.client.lpush(keys[where], job.id)
    else:
        await links.client.zadd(keys[where], {job.id: 1})

    assert await queue.delete(job.id)
    assert [one.kind for one in await queue.list()] == ["next"]
    assert (await queue.enqueue("work", unique="key")).id != job.id
    waiting = {one.kind for one in (await queue.claim(limit=5)).jobs}
    assert waiting == {"next", "work"}


@pytest.mark.parametrize("how", ["cancelled", "deleted"])
async def test_a_run_that_sleeps_before_its_commit_finds_its_job_taken_away(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """It had its lock when it was looked at; whoever took the job away said so to the rows."""
    await queue.enqueue("work")
    lease, job = await take(queue)
    side = store_of(queue)._beside
    assert side is not None
    seen = await side._find_held(job.id, job.lease_token or "")
    await lose_locks(store_of(queue), [job])
    if how == "cancelled":
        await queue.cancel(job.id)
    else:
        await queue.delete(job.id)

    async def as_it_was(*_: Any) -> Any:
        return seen

    await job.tx.execute(ADD, 1, "stale")
    monkeypatch.setattr(side, "_find_held", as_it_was)
    with pytest.raises(LeaseLost):
        await lease.complete(job, then=[NewJob("stale")])
    assert await items(queue) == {}
    assert await queue.list(kind="stale") == []


async def test_two_who_bring_an_end_home_at_once_tell_it_once(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await die_after_rows(queue, monkeypatch)
    results = await asyncio.gather(
        queue.cancel(job.id), queue.delete(job.id), queue.claim(), return_exceptions=True
    )
    assert not [one for one in results if isinstance(one, StoreError)]
    assert len([one for one in await queue.list() if one.kind == "next"]) == 1
    assert not await queue.list(state=JobState.CANCELLED)


async def taken_over(queue: Queue) -> tuple[tuple[Any, Job], tuple[Any, Job]]:
    """A run that was taken for dead, and the one that came after it."""
    stale = await take(queue)
    await lose_locks(store_of(queue), [stale[1]])
    return stale, await take(queue)


async def check_stale_writes_nothing(queue: Queue, lease: Any, job: Job) -> None:
    await job.tx.execute("update item set status = 'stale'")
    with pytest.raises(LeaseLost):
        await job.tx.save()
    await job.tx.execute("update item set status = 'stale'")
    with pytest.raises(LeaseLost):
        await lease.complete(job, then=[NewJob("stale")])
    assert await queue.list(kind="stale") == []


async def test_a_run_that_was_taken_over_writes_nothing(queue: Queue) -> None:
    await queue.enqueue("work")
    stale, (lease, job) = await taken_over(queue)
    await job.tx.execute(ADD, 1, "begun")
    await job.tx.save()
    await check_stale_writes_nothing(queue, *stale)
    await job.tx.execute("update item set status = 'done'")
    await lease.complete(job)
    assert await items(queue) == {1: "done"}


async def test_a_run_that_had_its_lock_when_it_was_looked_at_is_refused_by_the_rows(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It slept between the look at its lock and its commit; the database knows of the later run."""
    await queue.enqueue("work")
    stale, lock = await take(queue), store_of(queue)._beside
    assert lock is not None
    seen = await lock._find_held(stale[1].id, stale[1].lease_token or "")
    await lose_locks(store_of(queue), [stale[1]])
    lease, job = await take(queue)
    await job.tx.execute(ADD, 1, "fresh")
    await job.tx.save()

    async def as_it_was(*_: Any) -> Any:
        return seen

    with monkeypatch.context() as patch:
        patch.setattr(lock, "_find_held", as_it_was)
        await check_stale_writes_nothing(queue, *stale)
    await lease.complete(job)
    assert await items(queue) == {1: "fresh"}


@pytest.mark.parametrize("how", ["completes", "writes", "fails"])
async def test_the_end_that_was_written_first_stands(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A stale run may be the first to commit; the one that has the job then brings its end home."""
    await queue.enqueue("work", max_attempts=1)
    stale, store = await take(queue), store_of(queue)
    assert store._beside is not None
    seen = await store._beside._find_held(stale[1].id, stale[1].lease_token or "")
    await lose_locks(store, [stale[1]])
    lease, job = await take(queue)

    async def as_it_was(*_: Any) -> Any:
        return seen

    await stale[1].tx.execute(ADD, 1, "the first")
    with monkeypatch.context() as patch:
        patch.setattr(store._beside, "_find_held", as_it_was)
        with pytest.raises(LeaseLost):
            await stale[0].complete(stale[1], "the first", then=[NewJob("next")])
    if how == "fails":
        await lease.fail(job, "no luck")
    else:
        if how == "writes":
            await job.tx.execute("update item set status = 'the second'")
            await job.tx.save()  # dropped: it is over
            await job.tx.execute("update item set status = 'the second'")
        await lease.complete(job, "the second", then=[NewJob("other")])

    ended = await queue.get(job.id)
    assert (ended.state, ended.result) == (JobState.COMPLETED, "the first")
    assert sorted(one.kind for one in await queue.list()) == ["next", "work"]
    assert await items(queue) == {1: "the first"}


async def test_a_failed_job_that_is_retried_writes_again(queue: Queue) -> None:
    runs: list[int] = []

    async def tell(job: Job, why: str) -> list[NewJob]:
        await job.tx.execute(ADD, len(runs), why)
        return []

    @handler("work", max_attempts=1, on_failure=tell)
    async def work(job: Job) -> None:
        runs.append(1)
        if len(runs) < 3:
            raise ValueError(f"run {len(runs)}")
        await job.tx.execute(ADD, 3, "done")

    job = await queue.enqueue("work")
    for _ in range(3):
        await drain(queue, [work])
        ended = await queue.get(job.id)
        if ended.state is JobState.FAILED:
            await queue.retry(job.id)
    assert ended.state is JobState.COMPLETED
    assert await items(queue) == {1: "run 1", 2: "run 2", 3: "done"}


async def test_a_job_that_is_cancelled_and_retried_begins_another_life(queue: Queue) -> None:
    """The end of an earlier life is not taken for that of the next one."""
    await queue.enqueue("work", max_attempts=1)
    for n in (1, 2):
        lease, job = await take(queue)
        await job.tx.execute(ADD, n, "failed")
        await store_of(queue).finish_jobs(
            [to_finish(job, Fail("no luck"), queue.size_limits)], tx=job.tx.take()
        )
        await queue.retry(job.id)
    await queue.cancel(job.id)
    await queue.retry(job.id)
    lease, job = await take(queue)
    await lease.complete(job, "at last")
    assert (await queue.get(job.id)).result == "at last"
    assert await items(queue) == {1: "failed", 2: "failed"}


async def test_a_follow_up_that_bullmq_cannot_take_leaves_no_rows(queue: Queue) -> None:
    await queue.enqueue("work")
    lease, job = await take(queue)
    await job.tx.execute(ADD, 1, "written")
    with pytest.raises(Unsupported):
        await lease.complete(job, then=[NewJob("next", limits=["key"])])
    assert await items(queue) == {}


async def test_a_statement_that_is_wrong_fails_the_job_and_leaves_no_rows(queue: Queue) -> None:
    @handler("work", max_attempts=1)
    async def work(job: Job) -> Done:
        await job.tx.execute(ADD, 1, "written")
        await job.tx.execute("insert into nowhere values (1)")
        return Done(then=[NewJob("next")])

    job = await queue.enqueue("work")
    await drain(queue, [work])
    ended = await queue.get(job.id)
    assert ended.state is JobState.FAILED
    assert "nowhere" in (ended.error or "")
    assert await items(queue) == {}
    assert await queue.list(kind="next") == []


async def test_jobs_are_handed_back_while_the_rows_cannot_be_looked_at(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.enqueue("work")
    lease, job = await take(queue)
    await lease.release(job)
    side = store_of(queue)._beside
    assert side is not None

    async def away(*_: Any) -> Any:
        raise StoreUnavailable("the database does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(side.store, "find_far_ends", away)
        with pytest.raises(StoreUnavailable):
            await queue.claim()
    waiting = await queue.get(job.id)
    assert waiting.state in (JobState.SCHEDULED, JobState.READY)  # for a second the first of them
    assert (waiting.crashes, waiting.attempts) == (0, 0)


async def test_a_status_row_follows_its_chain_and_a_sweep_brings_the_next(queue: Queue) -> None:
    """All stages in one queue: each hands its unique key on to the next one."""
    chain = Chain("item", status=StatusRow("item", field="n", column="status", error="error"))

    @chain.stage("fetch", queue="items", status="fetching", max_attempts=1)
    async def fetch(job: Job, payload: dict[str, int]) -> dict[str, int]:
        if payload["n"] == 2:
            raise ValueError("it is gone")
        return payload

    @chain.stage("index", queue="items", status="indexing")
    async def index(job: Job, payload: dict[str, int]) -> dict[str, int]:
        assert (await items(queue))[payload["n"]] == "indexing"
        return payload

    for n in (1, 2, 3):
        await queue.store.change_rows(ADD, n, "pending")
    await queue.enqueue_many([chain.begin({"n": n}) for n in (1, 2)])
    await drain(queue, chain.handlers)
    assert await items(queue) == {1: "done", 2: "failed", 3: "pending"}

    sweeper = Sweeper(chain, queue, begin=lambda row: chain.begin({"n": row["n"]}))
    await sweeper.schedule(every=60)
    await sweeper.schedule(every=60)  # one is enough
    [first] = await queue.list(queue="sweeping")
    await queue.retry(first.id)
    await drain(queue, [*chain.handlers, sweeper.handler])
    assert await items(queue) == {1: "done", 2: "failed", 3: "done"}
    [following] = await queue.list(queue="sweeping", state=JobState.SCHEDULED)
    assert (following.payload, following.unique) == (first.payload, first.unique)


async def _nothing(job: Job, payload: Any) -> Any:
    return payload


async def test_what_follows_a_running_job_is_done_after_it(queue: Queue) -> None:
    await queue.enqueue("write", {"n": 1}, unique="key")
    lease, job = await take(queue)
    for n in (2, 3):
        await queue.enqueue("write", {"n": n}, unique="key", on_conflict="follow")
    assert len(await queue.list()) == 1
    await lease.complete(job)
    lease, job = await take(queue)
    assert job.payload == {"n": 3}, "the last one is kept"
    await lease.complete(job)
    assert not await queue.claim()


async def test_runs_are_forgotten_when_their_jobs_have_ended(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "KEPT_SECONDS", 0)
    monkeypatch.setattr(beside, "PAGE", 1)
    monkeypatch.setattr(beside, "PRUNE_SECONDS", 0)
    for kind in ("ended", "live"):
        await queue.enqueue(kind, queue=kind)
        lease = await queue.claim([kind])
        await lease.jobs[0].tx.execute(ADD, len(kind), kind)
        if kind == "ended":
            await lease.complete(lease.jobs[0])
        else:
            await lease.jobs[0].tx.save()
    await queue.store.prune_jobs()
    left = await queue.store.fetch_rows("select key from windrow_far_run")
    assert [lease.jobs[0].id in row["key"] for row in left] == [True]


async def test_what_a_run_that_failed_had_written_is_not_kept(queue: Queue) -> None:
    seen: list[int] = []

    @handler("work")
    async def work(job: Job) -> Any:
        seen.append(job.runs)
        await job.tx.execute(ADD, job.runs, "run")
        if job.runs == 1:
            raise ConnectionError("not yet")

    job = await queue.enqueue("work")
    await drain(queue, [work], scheduled=True)
    assert (await queue.get(job.id)).state is JobState.COMPLETED
    assert seen == [1, 2]
    assert await items(queue) == {2: "run"}


def test_the_address_of_the_rows_is_part_of_the_url() -> None:
    url = "bullmq+redis://:secret@host/0?prefix=p&rows=postgresql://me:hidden@db/x"
    assert parse_url(url).redis_url == "redis://:secret@host/0"
    assert tables_url(url) == parse_url(url).rows_url == "postgresql://me:hidden@db/x"
    assert tables_url("sqlite:///jobs.db") == "sqlite:///jobs.db"
    assert "secret" not in redact_url(url)
    assert "hidden" not in redact_url(url)
    with pytest.raises(ConfigError, match="database of SQL"):
        parse_url("bullmq+redis://host/0?rows=redis://other")


async def test_every_page_of_the_dashboard_opens(queue: Queue, tmp_path: Path) -> None:
    """What it has no events for is left out."""
    job = await queue.enqueue("work", {"n": 1})
    app = create_site(queue, Settings(data_dir=str(tmp_path)))
    paths = [route.path for route in ROUTES if "GET" in (route.methods or ())]
    opened = [path for path in paths if "{" not in path and path != "/ui/events"]
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for path in [*opened, f"/ui/jobs/{job.id}", "/ui/jobs?kind=other"]:
            answer = await client.get(path)
            assert answer.status_code == 200, (path, answer.text)
        assert "Jobs ended" not in (await client.get("/")).text
