"""save_step, get_steps: fenced, kept once, and living and dying with the job."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.builders import (
    UNKNOWN_ID,
    accept,
    add,
    add_and_claim,
    attempt,
    claim_one,
    complete,
    fail,
    insert,
    snooze,
)
from tests.conformance.conftest import RunSql
from windrow.clock import FakeClock
from windrow.errors import LeaseLost
from windrow.queue.job import Job, JobState, Step
from windrow.queue.store import Store

DAY = 24 * 3600


async def save(store: Store, job: Job, name: str = "a", result: str = "1") -> str:
    assert job.lease_token is not None
    return await store.save_step(job.id, job.lease_token, name, result)


async def kept(store: Store, job_id: str) -> dict[str, str]:
    return {step.name: step.result_json for step in await store.get_steps(job_id)}


def rows(run_sql: RunSql) -> Sequence[object]:
    return run_sql("SELECT name FROM windrow.job_step")


async def test_a_step_is_read_back_as_it_was_spelled(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    result = '{"n": 1.50, "text": "ü\u2028 🚜", "a":[]}'
    assert await save(store, job, "first", result) == result
    clock.advance(3)
    await save(store, job, "second 'x' \"y\"", "null")

    started = job.started_at
    assert started is not None
    assert await store.get_steps(job.id) == [
        Step("first", result, started),
        Step("second 'x' \"y\"", "null", clock.now()),
    ]


async def test_the_first_result_of_a_step_stays(store: Store) -> None:
    """A call that was repeated because its reply was lost, or a step that was run twice."""
    job = await add_and_claim(store)
    await save(store, job, "a", '"first"')
    assert await save(store, job, "a", '"second"') == '"first"'
    assert await kept(store, job.id) == {"a": '"first"'}


async def test_two_that_save_a_step_at_once_get_the_same_result(store: Store) -> None:
    job = await add_and_claim(store)
    answers = await asyncio.gather(*(save(store, job, "a", str(n)) for n in range(20)))
    assert len(set(answers)) == 1
    assert await kept(store, job.id) == {"a": answers[0]}


async def test_steps_saved_at_once_are_all_kept(store: Store) -> None:
    job = await add_and_claim(store)
    await asyncio.gather(*(save(store, job, f"step {n}", str(n)) for n in range(20)))
    assert await kept(store, job.id) == {f"step {n}": str(n) for n in range(20)}


async def test_steps_are_there_for_the_next_run_however_the_last_one_ended(
    store: Store, clock: FakeClock
) -> None:
    job = await add_and_claim(store)
    await save(store, job, "a")
    await accept(store, attempt(job))
    job = await claim_one(store)
    await save(store, job, "b")
    await accept(store, snooze(job))
    job = await claim_one(store)
    await save(store, job, "c")
    clock.advance(61)
    await store.rescue_jobs()
    job = await claim_one(store)
    assert list(await kept(store, job.id)) == ["a", "b", "c"]
    await complete(store, job)
    assert list(await kept(store, job.id)) == ["a", "b", "c"]


async def test_a_stale_token_keeps_nothing(store: Store, clock: FakeClock) -> None:
    """N2: the worker whose lock was lost is told."""
    stale = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    with pytest.raises(LeaseLost) as lost:
        await save(store, stale)
    assert lost.value.job_ids == (stale.id,)
    fresh = await claim_one(store)
    with pytest.raises(LeaseLost):
        await save(store, stale)
    assert await kept(store, fresh.id) == {}
    await complete(store, fresh)
    with pytest.raises(LeaseLost):
        await save(store, fresh)
    assert await kept(store, fresh.id) == {}


@pytest.mark.parametrize("job_id", [UNKNOWN_ID, "nonsense"])
async def test_unknown_jobs_have_no_steps_and_get_none(store: Store, job_id: str) -> None:
    with pytest.raises(LeaseLost):
        await store.save_step(job_id, UNKNOWN_ID, "a", "1")
    job = await add_and_claim(store)
    with pytest.raises(LeaseLost):
        await store.save_step(job.id, "nonsense", "a", "1")
    assert await store.get_steps(job_id) == []


async def test_a_retry_keeps_steps_unless_it_begins_anew(store: Store) -> None:
    job = await add_and_claim(store)
    await save(store, job)
    await fail(store, job)
    await store.retry_jobs([job.id])
    again = await claim_one(store)
    assert await kept(store, job.id) == {"a": "1"}
    await fail(store, again)
    await store.retry_jobs([job.id], from_start=True)
    assert await kept(store, job.id) == {}


async def test_a_scheduled_job_that_is_hastened_may_begin_anew(store: Store) -> None:
    job = await add_and_claim(store)
    await save(store, job)
    await accept(store, attempt(job, delay=500))
    await store.retry_jobs([job.id], from_start=True)
    assert await kept(store, job.id) == {}


async def test_a_retry_that_is_refused_forgets_nothing(store: Store) -> None:
    job = await add_and_claim(store, unique="k")
    await save(store, job)
    await fail(store, job)
    await add(store, unique="k")
    running = await claim_one(store)
    await save(store, running)
    done = await store.retry_jobs([job.id, running.id], from_start=True)
    assert [change.is_refused for change in done.values()] == [True, True]
    assert await kept(store, job.id) == await kept(store, running.id) == {"a": "1"}


@pytest.mark.requires("replaces")
async def test_a_job_that_was_replaced_has_no_steps_of_the_former(store: Store) -> None:
    """They were made from another payload."""
    job = await add_and_claim(store, unique="k")
    await save(store, job)
    await accept(store, attempt(job, delay=500))
    replaced = await insert(store, payload={"new": 1}, unique="k", on_conflict="replace")
    assert (replaced.id, replaced.outcome) == (job.id, "replaced")
    assert await kept(store, job.id) == {}


@pytest.mark.requires("atomic_ends")  # jobs are rows of its own
async def test_steps_are_deleted_with_their_job(store: Store, run_sql: RunSql) -> None:
    job = await add_and_claim(store)
    await save(store, job)
    await accept(store, snooze(job))
    await store.delete_jobs([job.id])
    other = await add_and_claim(store)
    await save(store, other)
    await complete(store, other)
    assert len(rows(run_sql)) == 1
    await store.delete_jobs([other.id])
    assert rows(run_sql) == []


async def test_steps_are_pruned_with_their_job(
    store: Store, clock: FakeClock, run_sql: RunSql
) -> None:
    """N5: no row is left behind."""
    for retention in (10, -1):
        job = await add_and_claim(store, retention_seconds=retention)
        await save(store, job)
        await complete(store, job)
    clock.advance(DAY)
    while not (await store.prune_jobs()).is_done:
        pass
    assert len(rows(run_sql)) == 1


async def test_large_results_of_steps_are_kept(store: Store) -> None:
    job = await add_and_claim(store)
    big = '"' + "x" * 3_000_000 + '"'
    assert await save(store, job, "a", big) == big
    assert await save(store, job, "a", '"other"') == big
    assert await kept(store, job.id) == {"a": big}
    await complete(store, job)
    assert (await store.get_jobs([job.id]))[job.id].state is JobState.COMPLETED
