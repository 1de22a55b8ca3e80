"""Many jobs of one call: more than a store takes at once, and one among them that is odd."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.faults import FaultyStore
from windrow import NewJob, Queue
from windrow.clock import FakeClock
from windrow.errors import InvalidJob, QueueFull
from windrow.queue import queue as queue_module
from windrow.queue.job import JobState
from windrow.queue.store import Store

MANY = 60


def jobs(count: int, **options: Any) -> list[NewJob]:
    return [
        NewJob("work", {"n": number, "text": "日本 ' \\ ü"}, **options) for number in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 2, 50, 2 * MANY + 7])
async def test_all_are_stored_in_the_order_given(queue: Queue, count: int) -> None:
    made = await queue.enqueue_many(jobs(count, queue="q", priority=3, tags=("a", "b")))
    assert [one.outcome for one in made] == ["inserted"] * count
    assert {one.state for one in made} <= {JobState.READY}
    found = [job for _ in range(0, count, 20) for job in (await queue.claim("q", limit=20)).jobs]
    assert [job.payload["n"] for job in found] == list(range(count))
    assert [job.id for job in found] == [one.id for one in made]
    assert all(job.tags == ("a", "b") for job in found)
    assert (await queue.counts("q"))[JobState.ACTIVE] == count


@pytest.mark.requires("events")
async def test_what_was_created_is_told_once_for_each(queue: Queue) -> None:
    made = await queue.enqueue_many(jobs(MANY))
    told = [event.job_id async for event in queue.events(after="0", follow=False)]
    assert sorted(filter(None, told)) == sorted(one.id for one in made)


async def test_those_for_later_are_due_at_one_moment(queue: Queue, clock: FakeClock) -> None:
    made = await queue.enqueue_many(jobs(MANY, delay=60))
    assert {one.state for one in made} == {JobState.SCHEDULED}
    assert len({job.run_at for job in await queue.list(limit=100)}) == 1


@pytest.mark.parametrize("place", [0, MANY - 1])
async def test_one_that_is_refused_refuses_all(queue: Queue, place: int) -> None:
    given = jobs(MANY)
    given[place] = NewJob("work", {"n": math.nan})
    with pytest.raises(InvalidJob, match="finite"):
        await queue.enqueue_many(given)
    assert await queue.list() == []
    assert (await queue.counts())[JobState.READY] == 0
    assert len(await queue.enqueue_many(jobs(MANY))) == MANY


@pytest.mark.parametrize("place", [1, MANY - 1])
@pytest.mark.parametrize("odd", [{"unique": "k"}, {"priority": 9}, {"kind": "other"}])
async def test_one_that_differs_is_stored_with_the_others(
    queue: Queue, place: int, odd: dict[str, Any]
) -> None:
    given = jobs(MANY)
    given[place] = NewJob(**{"kind": "work", "payload": {"n": place}, **odd})
    made = await queue.enqueue_many(given)
    assert [one.outcome for one in made] == ["inserted"] * (MANY)
    assert (await queue.counts())[JobState.READY] == MANY
    assert [(await queue.get(one.id)).payload["n"] for one in made] == list(range(MANY))


@pytest.mark.requires("bounds")
async def test_a_full_queue_takes_none_of_them(queue: Queue) -> None:
    await queue.set_queue("q", max_depth=MANY - 1, on_full="reject")
    with pytest.raises(QueueFull):
        await queue.enqueue_many(jobs(MANY, queue="q"))
    assert await queue.list() == []
    assert len(await queue.enqueue_many(jobs(MANY - 1, queue="q"))) == MANY - 1


@pytest.mark.parametrize("loses_reply", [True, False])
async def test_many_whose_reply_was_lost_are_not_doubled(
    store: Store, loses_reply: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "RETRY_WAITS", (0.0, 0.0, 0.0))
    faulty = FaultyStore(store)
    (faulty.lose_reply if loses_reply else faulty.fail_before)("insert_jobs", call=1)
    made = await Queue(faulty).enqueue_many(jobs(MANY))
    assert len({one.id for one in made}) == MANY
    assert len(await Queue(store).list(limit=1000)) == MANY


async def test_any_iterable_of_jobs_is_taken(queue: Queue) -> None:
    made = await queue.enqueue_many(job for job in jobs(MANY - 1))  # type: ignore[arg-type]
    assert len(made) == MANY - 1
