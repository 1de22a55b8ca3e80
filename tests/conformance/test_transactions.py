"""The job's own transaction (exactly-once effect) and inserting in the caller's."""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import (
    accept,
    add_and_claim,
    attempt,
    claim,
    claim_one,
    completion,
    exists,
    failure,
    get,
    get_group,
    ids,
    insert,
    make_group,
    row,
    snooze,
    state,
)
from tests.callers import Caller
from windrow.clock import FakeClock
from windrow.errors import GroupEnded, LeaseLost, WindrowError
from windrow.ids import new_id
from windrow.queue.job import Job, JobState
from windrow.queue.records import Finish
from windrow.queue.store import JobTransaction, Store

pytestmark = pytest.mark.usefixtures("effects")


@pytest.fixture
def effects(run_sql) -> None:
    """A table of the application's own."""
    run_sql("create table effect (note varchar(20) not null unique)")


async def noted(store: Store, parameter: str, note: str = "done") -> JobTransaction:
    tx = await store.begin()
    await tx.execute(f"insert into effect values ({parameter})", note)
    return tx


@pytest.mark.parametrize("end", [completion, failure, attempt, snooze])
async def test_effect_commits_with_the_finish(store: Store, run_sql, parameter: str, end) -> None:
    job = await add_and_claim(store)
    tx = await noted(store, parameter)
    assert run_sql("select note from effect") == []

    finished = await store.finish_jobs([end(job)], tx=tx)
    assert finished.lost == ()
    assert run_sql("select note from effect") == [("done",)]
    assert await state(store, job.id) != JobState.ACTIVE


async def test_parameters_are_written_alike_on_every_store(store: Store, run_sql) -> None:
    job = await add_and_claim(store)
    tx = await store.begin()
    quoted = "insert into effect values ('$1' || $2 || $1) /* $3 */ -- and $4"
    await tx.execute(quoted, "one", "two")
    await store.finish_jobs([completion(job)], tx=tx)
    assert run_sql("select note from effect") == [("$1twoone",)]


async def test_what_is_saved_is_there_while_the_job_runs_on(
    store: Store, run_sql, parameter: str
) -> None:
    job = await add_and_claim(store)
    await store.save_work(job.id, job.lease_token or "", await noted(store, parameter, "begun"))
    assert run_sql("select note from effect") == [("begun",)]
    assert await state(store, job.id) == JobState.ACTIVE

    await store.finish_jobs([completion(job)], tx=await noted(store, parameter))
    assert run_sql("select note from effect order by note") == [("begun",), ("done",)]


async def test_a_stale_worker_saves_nothing(
    store: Store, clock: FakeClock, run_sql, parameter: str
) -> None:
    """N1, for what is written on the way."""
    job = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    for token in (job.lease_token or "", new_id(), "nonsense"):
        with pytest.raises(LeaseLost):
            await store.save_work(job.id, token, await noted(store, parameter))
    assert run_sql("select note from effect") == []


async def test_what_cannot_be_saved_leaves_the_job_running(
    store: Store, run_sql, parameter: str
) -> None:
    job = await add_and_claim(store)
    await store.save_work(job.id, job.lease_token or "", await noted(store, parameter))
    tx = await store.begin()
    await tx.execute("update effect set note = $1", "other")
    with pytest.raises(WindrowError):
        await save_twice(store, job, tx)
    await tx.rollback()
    assert run_sql("select note from effect") == [("done",)]
    await accept(store, completion(job))


async def save_twice(store: Store, job: Job, tx: JobTransaction) -> None:
    """Write what the table refuses: there, or when it is saved."""
    for _ in range(2):
        await tx.execute("insert into effect values ($1)", "same")
    await store.save_work(job.id, job.lease_token or "", tx)


async def test_stale_token_rolls_the_effect_back(
    store: Store, clock: FakeClock, run_sql, parameter: str
) -> None:
    """N1: a stale worker changes nothing, not even its own tables."""
    job = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    finished = await store.finish_jobs([completion(job)], tx=await noted(store, parameter))

    assert finished.lost == (job.id,)
    assert run_sql("select note from effect") == []


async def test_repeated_finish_does_not_repeat_the_effect(
    store: Store, run_sql, parameter: str
) -> None:
    """The reply was lost, the commit was not: the second transaction adds nothing."""
    job = await add_and_claim(store)
    await store.finish_jobs([completion(job)], tx=await noted(store, parameter))
    tx = await store.begin()
    await tx.execute(f"insert into effect values ({parameter})", "again")
    finished = await store.finish_jobs([completion(job)], tx=tx)

    assert finished.lost == ()
    assert run_sql("select note from effect") == [("done",)]


async def test_rolled_back_transaction_leaves_the_job_running(
    store: Store, run_sql, parameter: str
) -> None:
    job = await add_and_claim(store)
    tx = await noted(store, parameter)
    await tx.rollback()

    assert run_sql("select note from effect") == []
    assert await state(store, job.id) == JobState.ACTIVE
    await accept(store, completion(job))


async def test_effect_that_fails_fails_the_finish_whole(store: Store, run_sql) -> None:
    job = await add_and_claim(store)
    run_sql("insert into effect values ('done')")
    then = row()
    with pytest.raises(WindrowError):
        await finish_with(
            store, completion(job, then=(then,)), "insert into effect values ('done')"
        )

    assert await state(store, job.id) == JobState.ACTIVE
    assert not await exists(store, then.id)


async def test_store_works_on_after_a_failed_effect(store: Store, run_sql, parameter: str) -> None:
    job = await add_and_claim(store)
    for _ in range(20):
        with pytest.raises(WindrowError):
            await finish_with(store, completion(job), "insert into no_such_table values (1)")

    tx = await noted(store, parameter)
    assert (await store.finish_jobs([completion(job)], tx=tx)).lost == ()
    assert run_sql("select note from effect") == [("done",)]


async def finish_with(store: Store, finish: Finish, sql: str) -> None:
    """Whether a statement fails when it is executed or with the finish is the store's business."""
    tx = await store.begin()
    try:
        await tx.execute(sql)
        await store.finish_jobs([finish], tx=tx)
    except BaseException:
        await tx.rollback()
        raise


async def test_closing_the_store_rolls_back_what_was_left_open(
    store: Store, open_another, run_sql, parameter: str
) -> None:
    other = await open_another()
    await noted(other, parameter)
    async with asyncio.timeout(20):
        await other.close()

    assert run_sql("select note from effect") == []


async def test_transaction_is_what_the_contract_says(store: Store) -> None:
    tx = await store.begin()
    assert isinstance(tx, JobTransaction)

    await tx.rollback()


async def test_several_statements_take_effect_in_order(
    store: Store, run_sql, parameter: str
) -> None:
    job = await add_and_claim(store)
    tx = await noted(store, parameter, "first")
    await tx.execute("update effect set note = 'second' where note = 'first'")
    await store.finish_jobs([completion(job)], tx=tx)

    assert run_sql("select note from effect") == [("second",)]


@pytest.mark.requires("groups")
async def test_follow_ups_and_groups_are_in_the_transaction_too(
    store: Store, run_sql, parameter: str
) -> None:
    group = await make_group(store)
    job = await add_and_claim(store, group=group.id)
    tx = await noted(store, parameter)
    finished = await store.finish_jobs([completion(job, then=(row(),))], tx=tx)

    found = await store.get_group(group.id)
    assert found is not None
    assert (found.state, len(finished.then)) == ("completed", 1)
    assert ids(await claim(store, 9)) == [finished.then[0].id]


@pytest.mark.requires("reads_in_transaction")
async def test_transaction_reads_its_own_writes(store: Store, parameter: str) -> None:
    job = await add_and_claim(store)
    tx = await noted(store, parameter)

    assert await tx.fetch("select note from effect") == [{"note": "done"}]
    await store.finish_jobs([completion(job)], tx=tx)


async def test_other_work_goes_on_beside_an_open_transaction(
    store: Store, run_sql, parameter: str
) -> None:
    job = await add_and_claim(store)
    tx = await noted(store, parameter)
    await insert(store)
    other = await claim_one(store)
    await accept(store, completion(other))

    assert (await store.finish_jobs([completion(job)], tx=tx)).lost == ()
    assert run_sql("select note from effect") == [("done",)]


@pytest.mark.requires("transactional_insert")
async def test_insert_commits_with_the_callers_transaction(store: Store, caller: Caller) -> None:
    [inserted] = await store.insert_jobs([row("mail", {"n": 1})], tx=caller.connection)
    assert inserted.outcome == "inserted"
    assert not await exists(store, inserted.id)

    await caller.commit()
    job = await get(store, inserted.id)
    assert (job.kind, job.payload, job.state) == ("mail", {"n": 1}, JobState.READY)
    assert ids(await claim(store, 9)) == [inserted.id]


@pytest.mark.requires("transactional_insert")
async def test_insert_rolls_back_with_the_callers_transaction(
    store: Store, run_sql, caller: Caller
) -> None:
    await caller.execute("insert into effect values ('mine')")
    rows = [row(unique="key"), row(), row("new", unique="key", on_conflict="replace")]
    inserted = await store.insert_jobs(rows, tx=caller.connection)
    assert [one.outcome for one in inserted] == ["inserted", "inserted", "replaced"]

    await caller.rollback()
    assert await store.get_jobs([new.id for new in rows]) == {}
    assert await store.list_queues() == []
    assert run_sql("select note from effect") == []


@pytest.mark.requires("transactional_insert")
async def test_members_inserted_by_the_caller_are_counted_at_the_commit(
    store: Store, caller: Caller
) -> None:
    group = await make_group(store)
    await store.insert_jobs([row(group=group.id), row(group=group.id)], tx=caller.connection)
    assert (await get_group(store, group.id)).pending == 0

    await caller.commit()
    assert (await get_group(store, group.id)).pending == 2


@pytest.mark.requires("transactional_insert")
async def test_follower_inserted_by_the_caller(store: Store, caller: Caller) -> None:
    job = await add_and_claim(store, unique="key")
    new = row(unique="key", on_conflict="follow")
    [inserted] = await store.insert_jobs([new], tx=caller.connection)
    await caller.commit()
    assert inserted.state == JobState.HELD

    await accept(store, completion(job))
    assert await state(store, new.id) == JobState.READY


@pytest.mark.requires("transactional_insert")
async def test_refused_insert_leaves_the_callers_transaction_usable(
    store: Store, run_sql, caller: Caller
) -> None:
    group = await make_group(store)
    await store.close_group(group.id)
    await caller.execute("insert into effect values ('mine')")
    with pytest.raises(GroupEnded):
        await store.insert_jobs([row(), row(group=group.id)], tx=caller.connection)

    await caller.commit()
    assert run_sql("select note from effect") == [("mine",)]
    assert await store.list_queues() == []


@pytest.mark.requires("transactional_insert")
async def test_many_rows_in_the_callers_transaction(store: Store, caller: Caller) -> None:
    rows = [row(payload={"n": n}, tags=("a", "b"), headers={"é": "🚜"}) for n in range(500)]
    inserted = await store.insert_jobs(rows, tx=caller.connection)
    await caller.commit()

    assert [one.id for one in inserted] == [new.id for new in rows]
    assert ids(await claim(store, 999)) == [new.id for new in rows]
