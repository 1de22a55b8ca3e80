"""The face over a store that fails at the worst moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.conformance.conftest import run_sql
from tests.faults import FaultyStore
from windrow import Done, Fail, NewJob, Queue
from windrow.clock import FakeClock
from windrow.errors import InvalidOutcome, LeaseLost, RunEnded, StoreConflict, StoreUnavailable
from windrow.queue import queue as queue_module
from windrow.queue.job import Job, JobState
from windrow.queue.records import Claim
from windrow.queue.store import Store

__all__ = ["run_sql"]  # a fixture


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "RETRY_WAITS", (0.0, 0.0, 0.0))


async def test_an_insert_whose_reply_was_lost_is_not_doubled(store: Store) -> None:
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    faulty.lose_reply("insert_jobs", call=1)
    made = await queue.enqueue("work", {"n": 1})
    faulty.lose_reply("insert_jobs", call=3)
    await queue.enqueue_many([NewJob("work") for _ in range(100)])
    assert len(await queue.list(limit=1000)) == 101
    assert (await queue.get(made.id)).payload == {"n": 1}


async def test_an_insert_that_never_arrived_is_sent_again(store: Store) -> None:
    faulty = FaultyStore(store)
    faulty.fail_before("insert_jobs", call=1)
    made = await Queue(faulty).enqueue("work")
    assert made.state == JobState.READY


async def test_a_store_that_stays_away_is_reported(store: Store) -> None:
    faulty = FaultyStore(store)
    for call in range(1, 5):
        faulty.fail_before("insert_jobs", call=call)
    with pytest.raises(StoreUnavailable):
        await Queue(faulty).enqueue("work")
    assert await Queue(store).list() == []


@pytest.mark.parametrize("is_committed", [True, False])
async def test_completing_again_never_completes_without_the_jobs_transaction(
    store: Store, run_sql, is_committed: bool
) -> None:
    """The commit's reply was lost, or the commit never arrived: the row and the completion are
    there together or not at all."""
    run_sql("create table effect (note varchar(20) not null)")
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    await queue.enqueue("work")
    lease = await queue.claim()
    [job] = lease.jobs
    await job.tx.execute("insert into effect values ('done')")
    fault = faulty.lose_reply if is_committed else faulty.fail_before
    fault("finish_jobs")
    with pytest.raises(StoreUnavailable):
        await lease.complete(job)
    if is_committed:
        await lease.complete(job)
    else:
        with pytest.raises(StoreConflict, match="handed back"):
            await lease.complete(job)

    left = await queue.get(job.id)
    assert left.state is (JobState.COMPLETED if is_committed else JobState.READY)
    assert len(run_sql("select note from effect")) == int(is_committed)


@pytest.mark.requires("job_transactions")
async def test_completing_again_what_is_handed_back_and_completed_by_another_run_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between handing back and looking there is time for a whole run."""
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    await queue.enqueue("work")
    late = await queue.claim()
    [job] = late.jobs
    await job.tx.execute("select 1")
    faulty.fail_before("finish_jobs")
    with pytest.raises(StoreUnavailable):
        await late.complete(job)

    async def look_late(ids: Sequence[str]) -> Mapping[str, Job]:
        other = await Queue(store).claim()
        await other.complete(*other.jobs)
        return await store.get_jobs(ids)

    monkeypatch.setattr(faulty, "get_jobs", look_late, raising=False)
    with pytest.raises(StoreConflict, match="handed back"):
        await late.complete(job)


@pytest.mark.requires("job_transactions")
async def test_completing_again_what_another_run_has_completed_is_refused(
    store: Store, clock: FakeClock
) -> None:
    """The completion of the other run, without what this one wrote, must not be taken for it."""
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    made = await queue.enqueue("work")
    late = await queue.claim(seconds=10)
    [job] = late.jobs
    await job.tx.execute("select 1")
    faulty.fail_before("finish_jobs")
    with pytest.raises(StoreUnavailable):
        await late.complete(job)
    clock.advance(11)
    other = await queue.claim()
    await other.complete(*other.jobs)

    with pytest.raises(LeaseLost):
        await late.complete(job)

    assert (await queue.get(made.id)).state is JobState.COMPLETED


async def test_a_claim_that_took_longer_than_its_lease_gives_no_job_twice(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its two looks for jobs it was stopped, and the second found what the first had."""
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    await queue.enqueue("work")

    async def stand_still(claim: Claim) -> int:
        clock.advance(11)
        return len(await store.rescue_jobs())

    monkeypatch.setattr(faulty, "promote_jobs", stand_still, raising=False)
    queue._tended_at = clock.now().timestamp()
    lease = await queue.claim(limit=2, seconds=10)

    [job] = lease.jobs
    assert job.runs == 2
    await lease.complete(job)


async def test_second_end_of_a_run_with_another_result_is_refused(store: Store) -> None:
    queue = Queue(store)
    await queue.enqueue("work")
    lease = await queue.claim(limit=1)
    [job] = lease.jobs
    await lease.complete(job, {"a": 1})
    await lease.complete(job, {"a": 1})
    with pytest.raises(RunEnded, match=job.id):
        await lease.complete(job, {"a": 2})
    with pytest.raises(RunEnded):
        await lease.fail(job, "no")
    with pytest.raises(RunEnded):
        await lease.finish_many([(job, Done())])
    assert (await queue.get(job.id)).result == {"a": 1}


async def test_of_several_ends_of_a_run_in_one_call_the_first_stands(store: Store) -> None:
    queue = Queue(store)
    await queue.enqueue("work")
    lease = await queue.claim(limit=1)
    [job] = lease.jobs
    first = Done("first", [NewJob("next")])
    with pytest.raises(RunEnded) as caught:
        await lease.finish_many(
            [(job, first), (job, Done("first")), (job, Done("second")), (job, Fail("no"))]
        )
    assert caught.value.job_ids == (job.id, job.id)
    assert (await queue.get(job.id)).result == "first"
    assert [one.kind for one in await queue.list(state="ready")] == ["next"]


async def test_wrong_outcome_is_an_error_of_the_call_and_the_lease_goes_on(store: Store) -> None:
    queue = Queue(store)
    await queue.enqueue("work")
    lease = await queue.claim(limit=1)
    [job] = lease.jobs
    wrong: list[Any] = [None, 5, "done", Done, {"state": "completed"}]
    for outcome in wrong:
        with pytest.raises(InvalidOutcome, match="a run ends with Done"):
            await lease.finish(job, outcome)
    with pytest.raises(InvalidOutcome, match="an exception or a text"):
        await lease.fail(job, 404)  # type: ignore[arg-type]
    with pytest.raises(InvalidOutcome, match="seconds"):
        await lease.fail(job, "no", retry_in=lambda attempts: "soon")  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidOutcome, match="list of NewJob"):
        await lease.complete(job, then=["next"])  # type: ignore[list-item]
    with pytest.raises(InvalidOutcome, match="how many seconds"):
        await lease.snooze(job, None)  # type: ignore[arg-type]
    await lease.complete(job)
    assert (await queue.get(job.id)).state == "completed"
