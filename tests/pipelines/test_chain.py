"""Chains: what a stage returns is handed on, and a row of the user's own says where it is."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import msgspec
import pytest

from tests.conformance.conftest import connect_beside
from tests.faults import FaultyStore
from windrow import Done, Fail, Job, Queue, Retry, Snooze, Worker
from windrow.errors import ConfigError
from windrow.pipelines.chain import Chain, Next, StatusRow
from windrow.queue.job import JobState
from windrow.queue.store import Store


class Call(msgspec.Struct):
    call_id: int
    text: str = ""


@pytest.fixture
def rows(run_sql, store_name: str, store_url: str) -> Any:
    run_sql("create table call (id integer, processing_status text, processing_error text)")
    run_sql("insert into call values (7, 'pending', null)")

    def read() -> list[tuple[Any, ...]]:
        """From any thread."""
        with closing(connect_beside(store_name, store_url)) as connection:
            found = connection.execute("select processing_status, processing_error from call")
            return [tuple(row) for row in found.fetchall()]

    return read


def chain_of() -> Chain:
    return Chain("call", status=StatusRow("call", field="call_id"))


async def lose_worker(queue: Queue, name: str) -> None:
    """A worker dies with the first job of a queue."""
    await queue.claim([name], limit=1, seconds=1, worker="barn")
    while not await queue.store.rescue_jobs():
        await asyncio.sleep(0.05)


async def drain(queue: Queue, chain: Chain, payload: Any = None) -> None:
    await queue.enqueue_many([chain.begin(payload or {"call_id": 7})])
    await Worker(queue, chain.handlers).run(until_idle=True)


async def test_a_row_of_another_tenant_stays_as_it_is(queue: Queue, run_sql: Any) -> None:
    run_sql("create table shared (id integer, owner text, status text)")
    run_sql("insert into shared values (7, 'acme', 'as it was'), (8, '', 'as it was')")
    row = StatusRow("shared", column="status", error=None, tenant="owner")
    chain = Chain("shared", status=row)

    @chain.stage("only", queue="only", status="running")
    async def only(job: Job, payload: dict[str, int]) -> None: ...

    async def run(row: int, tenant: str | None) -> str:
        await queue.enqueue_many([chain.begin({"id": row}, tenant=tenant)])
        await Worker(queue, chain.handlers).run(until_idle=True)
        [(status,)] = run_sql(f"select status from shared where id = {row}")
        return str(status)

    assert await run(7, "other") == "as it was"
    assert await run(7, None) == "as it was"
    assert await run(7, "acme") == "done"
    assert await run(8, None) == "done"


async def test_stages_hand_on_and_the_row_follows(queue: Queue, rows: Any) -> None:
    seen: list[Any] = []
    chain = chain_of()

    @chain.stage("fetch", queue="fetching", status="fetching")
    async def fetch(job: Job, payload: Call) -> Call:
        seen.append((job.kind, job.queue, rows()))
        return Call(payload.call_id, "what was said")

    @chain.stage("analyze", queue="analyzing", status="analyzing")
    def analyze(job: Job, payload: Call) -> dict[str, int]:
        seen.append((job.kind, job.queue, rows()))
        return {"words": len(payload.text.split())}

    await drain(queue, chain)

    assert seen == [
        ("call.fetch", "fetching", [("fetching", None)]),
        ("call.analyze", "analyzing", [("analyzing", None)]),
    ]
    assert rows() == [("done", None)]
    [job] = await queue.list(kind="call.analyze")
    assert (await queue.get(job.id)).result == {"words": 3}


async def test_done_ends_a_chain_sooner(queue: Queue, rows: Any) -> None:
    chain = chain_of()

    @chain.stage("fetch", status="fetching")
    async def fetch(job: Job) -> Done:
        return Done("there is no transcript")

    @chain.stage("analyze", status="analyzing")
    async def analyze(job: Job) -> None:
        raise AssertionError("not reached")

    await drain(queue, chain)
    assert rows() == [("done", None)]
    assert await queue.list(kind="call.analyze") == []


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_row_says_why_a_stage_failed_for_good(
    queue: Queue, rows: Any, is_async: bool
) -> None:
    chain = chain_of()
    told: list[Any] = []

    def fail(job: Job) -> Any:
        told.append(rows())
        if job.attempts == 0:
            raise ValueError("the line is busy")
        return Retry("nobody answers")

    if is_async:

        @chain.stage("fetch", status="fetching", max_attempts=2, backoff="none")
        async def fetch(job: Job) -> Any:
            await job.tx.execute("update call set processing_error = $1", "half done")
            return fail(job)

    else:

        @chain.stage("fetch", status="fetching", max_attempts=2, backoff="none")
        def fetch_in_thread(job: Job) -> Any:
            job.tx.execute("update call set processing_error = $1", "half done")
            return fail(job)

    await drain(queue, chain)
    assert told == [[("fetching", None)]] * 2
    assert rows() == [("failed", "nobody answers")]
    [job] = await queue.list(kind="call.fetch")
    assert job.state is JobState.FAILED


async def test_a_stage_that_is_retried_by_hand_shows_that_it_runs_again(
    queue: Queue, rows: Any
) -> None:
    chain = chain_of()
    works = False

    @chain.stage("fetch", status="fetching")
    async def fetch(job: Job, payload: Call) -> Any:
        return payload

    @chain.stage("analyze", status="analyzing")
    async def analyze(job: Job) -> Any:
        return rows() if works else Fail("the model is away")

    await drain(queue, chain)
    assert rows() == [("failed", "the model is away")]
    works = True
    [job] = await queue.list(kind="call.analyze")
    await queue.retry(job.id)
    await Worker(queue, chain.handlers).run(until_idle=True)
    assert (await queue.get(job.id)).result == [["analyzing", None]]
    assert rows() == [("done", None)]


async def test_a_stage_that_snoozes_keeps_its_row(queue: Queue, rows: Any) -> None:
    chain = chain_of()
    polls: list[int] = []

    @chain.stage("poll", status="transcribing")
    async def poll(job: Job) -> Any:
        polls.append(job.attempts)
        return Snooze(0) if len(polls) < 3 else "said"

    await drain(queue, chain)
    assert polls == [0, 0, 0]
    assert rows() == [("done", None)]


async def test_what_belongs_to_the_chain_goes_with_it(queue: Queue) -> None:
    chain = Chain("import")

    @chain.stage("one")
    async def one(job: Job) -> dict[str, int]:
        return {"n": 1}

    @chain.stage("two", queue="second")
    async def two(job: Job) -> None: ...

    begun = chain.begin({}, priority=8, tags=["blue"], headers={"trace": "t1"})
    await queue.enqueue_many([begun])
    await Worker(queue, chain.handlers).run(until_idle=True)
    [job] = await queue.list(kind="import.two")
    job = await queue.get(job.id)
    assert (job.queue, job.priority, job.tags, job.headers) == (
        "second",
        8,
        ("blue",),
        {"trace": "t1"},
    )


async def test_a_stage_may_have_the_next_one_wait(queue: Queue) -> None:
    chain = Chain("import")

    @chain.stage("one")
    async def one(job: Job) -> Next:
        return Next({"n": 1}, delay=3600)

    @chain.stage("two")
    async def two(job: Job) -> Next:
        return Next("the end")

    await drain(queue, chain, {"n": 0})
    [job] = await queue.list(kind="import.two")
    assert (job.state, job.payload) == (JobState.SCHEDULED, {"n": 1})
    assert 3590 < (job.run_at - job.created_at).total_seconds() < 3610


def test_mistakes_in_a_chain_are_said_at_once() -> None:
    with pytest.raises(ConfigError, match="name of a table"):
        StatusRow("call; drop table call")
    chain = Chain("call")
    with pytest.raises(ConfigError, match="one job at a time"):
        chain.stage("one", batch=10)
    with pytest.raises(ConfigError, match="no stage 'two'"):
        chain.job("two", {})


async def test_a_payload_that_names_no_row_fails_its_job(queue: Queue, rows: Any) -> None:
    chain = chain_of()

    @chain.stage("fetch", status="fetching")
    async def fetch(job: Job) -> None: ...

    with pytest.raises(ConfigError, match="has no 'call_id'"):
        chain.begin({"id": 7})
    await queue.enqueue("call.fetch", {"id": 7})
    await Worker(queue, chain.handlers).run(until_idle=True)
    [job] = await queue.list(kind="call.fetch")
    assert job.state is JobState.FAILED
    assert "has no 'call_id'" in (job.error or "")
    assert rows() == [("pending", None)]


async def test_a_payload_that_does_not_fit_is_said_on_its_row(queue: Queue, rows: Any) -> None:
    chain = chain_of()

    @chain.stage("fetch", status="fetching")
    async def fetch(job: Job, payload: Call) -> None: ...

    await drain(queue, chain, {"call_id": 7, "text": 3})
    [(status, error)] = rows()
    assert status == "failed"
    assert "$.text" in error


async def test_a_row_whose_chain_is_under_way_is_not_begun_again(queue: Queue, rows: Any) -> None:
    chain = chain_of()
    seen: list[str] = []

    @chain.stage("fetch", status="fetching")
    async def fetch(job: Job, payload: Call) -> Call:
        seen.append(job.kind)
        return payload

    @chain.stage("analyze", status="analyzing")
    async def analyze(job: Job) -> None:
        seen.append(job.kind)
        if len(seen) == 2:
            await queue.enqueue_many([chain.begin({"call_id": 7})])

    await queue.enqueue_many([chain.begin({"call_id": 7}), chain.begin({"call_id": 7})])
    await Worker(queue, chain.handlers).run(until_idle=True)
    assert seen == ["call.fetch", "call.analyze"]
    await drain(queue, chain)
    assert seen == ["call.fetch", "call.analyze"] * 2


async def test_a_job_that_is_read_too_often_is_given_up_with_the_reason_on_its_row(
    queue: Queue, rows: Any
) -> None:
    """P4: `read_ct > 3`; a run that failed counts as one that died. The rest keeps flowing."""
    chain = chain_of()
    called: list[int] = []

    @chain.stage("fetch", status="fetching", max_reads=3, lease=10, backoff="none")
    async def fetch(job: Job) -> Any:
        called.append(job.payload["call_id"])
        return "other" if job.payload["call_id"] == 8 else Retry("the line is busy")

    await queue.enqueue_many([chain.begin({"call_id": 7}), chain.begin({"call_id": 8})])
    await lose_worker(queue, "default")
    await Worker(queue, chain.handlers).run(until_idle=True)
    assert sorted(called) == [7, 7, 8]
    assert rows() == [("failed", "given up: read more than 3 times: the line is busy")]
    assert (await queue.counts())[JobState.COMPLETED] == 1


async def test_a_status_that_was_saved_without_a_reply_is_saved_once(
    store: Store, rows: Any, run_sql
) -> None:
    """The row says `fetching`, the worker hears nothing of it: the job runs again, and the stage's
    own rows are there once."""
    faulty = FaultyStore(store)
    faulty.lose_reply("save_work")
    queue = Queue(faulty)
    run_sql("create table effect (note varchar(20) not null)")
    chain = chain_of()
    seen: list[Any] = []

    @chain.stage("fetch", status="fetching", backoff="none")
    async def fetch(job: Job) -> str:
        seen.append((job.runs, rows()))
        await job.tx.execute("insert into effect values ($1)", f"run {job.runs}")
        return "said"

    await drain(queue, chain)
    assert seen == [(2, [("fetching", None)])]
    assert rows() == [("done", None)]
    assert run_sql("select note from effect") == [("run 2",)]
