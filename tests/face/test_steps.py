"""`job.step` and `job.report_progress`, as a loop of one's own uses them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.faults import FaultyStore
from windrow import Fail, Job, Lease, NewJob, Queue, Retry, Snooze
from windrow.clock import FakeClock
from windrow.errors import InvalidJob, LeaseLost, ResultTooLarge, StoreUnavailable
from windrow.queue import insisting
from windrow.queue.checks import SizeLimits
from windrow.queue.outcome import Outcome
from windrow.queue.store import Store


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insisting, "RETRY_WAITS", (0.0, 0.0, 0.0))


class Counting:
    """A function that counts its calls."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        self.answer = answer
        self.calls = 0

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.answer(*args, **kwargs)


async def together(*runs: Awaitable[Any]) -> list[Any]:
    return list(await asyncio.gather(*runs))


async def claim_one(queue: Queue) -> tuple[Lease, Job]:
    lease = await queue.claim()
    [job] = lease.jobs
    return lease, job


async def begin(queue: Queue) -> tuple[Lease, Job]:
    await queue.enqueue("work")
    return await claim_one(queue)


@pytest.mark.parametrize("outcome", [Retry(after=0), Snooze(0), Fail("no")], ids=repr)
async def test_a_step_that_was_taken_is_not_run_again(queue: Queue, outcome: Outcome) -> None:
    fetch = Counting(lambda page, *, size: {"page": page, "size": size})
    lease, job = await begin(queue)
    first = await job.step("fetch", fetch, 3, size=10)
    await lease.finish(job, outcome)
    if isinstance(outcome, Fail):
        await queue.retry(job.id)

    lease, job = await claim_one(queue)
    assert await job.step("fetch", fetch, 3, size=10) == first == {"page": 3, "size": 10}
    assert fetch.calls == 1


async def test_a_step_survives_a_crash(queue: Queue, clock: FakeClock) -> None:
    fetch = Counting(lambda: 1)
    _, job = await begin(queue)
    await job.step("fetch", fetch)
    clock.advance(31)
    _, again = await claim_one(queue)
    assert (again.id, await again.step("fetch", fetch), fetch.calls) == (job.id, 1, 1)


async def test_a_step_that_raised_is_run_again(queue: Queue) -> None:
    _, job = await begin(queue)

    def broken() -> None:
        raise ValueError("not yet")

    with pytest.raises(ValueError, match="not yet"):
        await job.step("a", broken)
    assert await job.step("a", lambda: "now") == "now"
    assert [step.name for step in await queue.steps(job.id)] == ["a"]


async def test_the_first_run_sees_what_later_ones_will_see(queue: Queue) -> None:
    """Tuples become lists and keys become texts the first time already."""
    lease, job = await begin(queue)
    made = {"pair": (1, 2), 3: "NUL \x00", "none": None, "set": {7}}
    first = await job.step("a", lambda: made)
    await lease.snooze(job, 0)
    _, job = await claim_one(queue)
    assert first == {"pair": [1, 2], "3": "NUL \ufffd", "none": None, "set": [7]}
    assert await job.step("a", lambda: "other") == first


async def test_a_step_may_give_back_nothing(queue: Queue) -> None:
    nothing = Counting(lambda: None)
    lease, job = await begin(queue)
    assert await job.step("a", nothing) is None
    await lease.snooze(job, 0)
    _, job = await claim_one(queue)
    assert (await job.step("a", nothing), nothing.calls) == (None, 1)


async def test_what_a_step_gave_back_is_ones_own_to_change(queue: Queue) -> None:
    _, job = await begin(queue)
    (await job.step("a", lambda: [1])).append(2)
    assert await job.step("a", lambda: "other") == [1]


async def test_steps_run_side_by_side(queue: Queue) -> None:
    lease, job = await begin(queue)
    both = asyncio.Barrier(2)

    async def meet(name: str) -> str:
        await both.wait()
        return name

    assert await together(job.step("a", meet, "x"), job.step("b", meet, "y")) == ["x", "y"]
    await lease.snooze(job, 0)
    _, job = await claim_one(queue)
    assert await together(job.step("a", meet, "-"), job.step("b", meet, "-")) == ["x", "y"]


async def test_the_same_step_twice_at_once_runs_once(queue: Queue) -> None:
    _, job = await begin(queue)
    calls = []

    async def fetch() -> int:
        calls.append(1)
        await asyncio.sleep(0)
        return len(calls)

    assert await together(job.step("a", fetch), job.step("a", fetch)) == [1, 1]
    assert calls == [1]


async def test_a_lost_lease_is_told_by_the_step_and_nothing_is_kept(
    queue: Queue, clock: FakeClock
) -> None:
    """N2: what a stale worker says changes nothing."""
    _, stale = await begin(queue)

    async def too_slow() -> str:
        clock.advance(31)
        await queue.tend()
        return "late"

    with pytest.raises(LeaseLost):
        await stale.step("a", too_slow)
    _, job = await claim_one(queue)
    assert await job.step("a", lambda: "mine") == "mine"


async def test_only_a_claimed_job_takes_steps(queue: Queue) -> None:
    made = await queue.enqueue("work")
    for job in (made, await queue.get(made.id)):
        with pytest.raises(InvalidJob, match="has no lease here"):
            await job.step("a", lambda: 1)
        with pytest.raises(InvalidJob, match="has no lease here"):
            await job.report_progress(5)


@pytest.mark.parametrize("name", ["", " ", "x" * 256, "a\x00", None, 7])
async def test_bad_names_are_refused_before_anything_runs(queue: Queue, name: Any) -> None:
    _, job = await begin(queue)
    fetch = Counting(lambda: 1)
    with pytest.raises(InvalidJob, match="the step"):
        await job.step(name, fetch)
    assert fetch.calls == 0


NOT_JSON = {"NaN": float("nan"), "infinity": {"a": [float("inf")]}, "object": object()}


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON.keys())
async def test_what_is_not_json_is_refused(queue: Queue, value: Any) -> None:
    _, job = await begin(queue)
    with pytest.raises(InvalidJob, match="result of step 'a'"):
        await job.step("a", lambda: value)
    assert await queue.steps(job.id) == []


async def test_results_of_steps_have_the_limit_of_results(store: Store) -> None:
    queue = Queue(store, limits=SizeLimits(result=100))
    _, job = await begin(queue)
    with pytest.raises(ResultTooLarge, match="result of step 'a'"):
        await job.step("a", lambda: "x" * 99)
    assert await job.step("b", lambda: "x" * 98) == "x" * 98


async def test_a_step_whose_reply_was_lost_is_kept_once(store: Store) -> None:
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    _, job = await begin(queue)
    fetch = Counting(lambda: 1)
    faulty.lose_reply("save_step")
    assert await job.step("a", fetch) == 1
    assert (fetch.calls, faulty.calls("save_step")) == (1, 2)
    assert [step.result for step in await queue.steps(job.id)] == [1]


async def test_a_store_that_stays_away_is_reported_and_the_step_may_be_kept(store: Store) -> None:
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    lease, job = await begin(queue)
    fetch = Counting(lambda: 1)
    for call in range(1, 5):
        faulty.lose_reply("save_step", call=call)
    with pytest.raises(StoreUnavailable):
        await job.step("a", fetch)
    await lease.snooze(job, 0)
    _, job = await claim_one(queue)
    faulty.fail_before("get_steps")
    assert (await job.step("a", fetch), fetch.calls) == (1, 1)


async def test_kept_steps_are_asked_for_once_and_only_by_later_runs(store: Store) -> None:
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    lease, job = await begin(queue)
    await asyncio.gather(*(job.step(name, lambda: 1) for name in "abc"))
    assert faulty.calls("get_steps") == 0
    await lease.snooze(job, 0)
    lease, job = await claim_one(queue)
    await asyncio.gather(*(job.step(name, lambda: 1) for name in "abcd"))
    assert faulty.calls("get_steps") == 1
    await lease.complete(job)
    assert (await queue.get(job.id)).runs == 2


async def test_a_retry_from_the_start_forgets_steps(queue: Queue) -> None:
    fetch = Counting(lambda: 1)
    for from_start, calls in ((False, 1), (True, 2)):
        lease, job = await begin(queue)
        fetch.calls = 0
        await job.step("fetch", fetch)
        await lease.fail(job, "no", retry=False)
        await queue.edit(job.id, payload={"other": 1})
        await queue.retry(job.id, from_start=from_start)
        lease, job = await claim_one(queue)
        await job.step("fetch", fetch)
        assert fetch.calls == calls
        await lease.complete(job)


async def test_many_are_retried_from_the_start(queue: Queue) -> None:
    await queue.enqueue_many([NewJob("work") for _ in range(3)])
    lease = await queue.claim(limit=3)
    for job in lease.jobs:
        await job.step("a", lambda: 1)
        await lease.fail(job, "no", retry=False)
    assert await queue.retry_all(from_start=True, error="no") == 3
    assert [await queue.steps(job.id) for job in lease.jobs] == [[], [], []]


async def test_a_job_reports_its_own_progress(queue: Queue, clock: FakeClock) -> None:
    _, job = await begin(queue)
    await job.report_progress(40, "page 4 of 10", pages=4)
    progress = (await queue.get(job.id)).progress
    assert progress is not None
    assert (progress.percent, progress.message, progress.counters) == (
        40,
        "page 4 of 10",
        {"pages": 4},
    )
    clock.advance(31)
    await queue.tend()
    with pytest.raises(LeaseLost):
        await job.report_progress(50)


def test_steps_and_progress_block_in_the_blocking_face(store_url: str) -> None:
    here = threading.get_ident()
    ran_in: list[int] = []

    def fetch(n: int) -> int:
        ran_in.append(threading.get_ident())
        return n + 1

    async def later(n: int) -> int:
        return n + 2

    with Queue.sync(store_url) as queue:
        queue.enqueue("work")
        for run in range(2):
            lease = queue.claim()
            [job] = lease.jobs
            assert (job.step("fetch", fetch, 1), job.step("later", later, 1)) == (2, 3)
            job.report_progress(50 * run)
            lease.snooze(job, 0)
        assert ran_in == [here]
        progress = queue.get(job.id).progress
        assert progress is not None
        assert progress.percent == 50
        assert [step.result for step in queue.steps(job.id)] == [2, 3]
