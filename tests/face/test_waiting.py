"""N8: waiting for jobs to end, also when another process ends or removes them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from tests.conftest import OpenAnother
from windrow import NewJob, Queue
from windrow.errors import JobNotFound, JobRacedOut, WaitTimeout
from windrow.queue import waiting
from windrow.queue.job import JobState
from windrow.queue.store import Store


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_WAIT", 0.005)


@pytest.fixture(params=["own", "polling", "rabbitmq"])
def notifier(request: pytest.FixtureRequest) -> str | None:
    if request.param == "rabbitmq":
        return request.getfixturevalue("rabbitmq_notifier")
    return None if request.param == "own" else "polling"


async def test_waiting_returns_the_ended_job_with_its_result(
    queue: Queue, open_another: OpenAnother
) -> None:
    made = await queue.enqueue("work", {"n": 1})
    waiter = asyncio.create_task(queue.wait(made.id, timeout=30))
    elsewhere = Queue(await open_another())
    [job] = (lease := await elsewhere.claim()).jobs
    await lease.complete(job, {"n": 2})
    ended = await waiter
    assert (ended.state, ended.result) == (JobState.COMPLETED, {"n": 2})
    assert (await queue.wait(made.id)).id == made.id


async def test_many_are_waited_for_at_once_whatever_their_end(queue: Queue) -> None:
    made = [one.id for one in await queue.enqueue_many([NewJob("work", n) for n in range(3)])]
    waiter = asyncio.create_task(queue.wait_many(made, timeout=30))
    lease = await queue.claim(limit=2)
    await lease.complete(lease.jobs[0])
    await lease.fail(lease.jobs[1], "boom", retry=False)
    await queue.cancel(made[2])
    ended = await waiter
    assert [ended[job_id].state for job_id in made] == ["completed", "failed", "cancelled"]


async def test_a_job_removed_while_it_is_waited_for_is_told_as_raced_out(
    queue: Queue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_looked = asyncio.Event()
    get_states = store.get_states

    async def look(ids: Sequence[str]) -> dict[str, JobState]:
        found = await get_states(ids)
        has_looked.set()
        return found

    monkeypatch.setattr(store, "get_states", look)
    made = await queue.enqueue("work")
    waiter = asyncio.create_task(queue.wait(made.id, timeout=30))
    await has_looked.wait()
    await queue.delete(made.id)
    with pytest.raises(JobRacedOut, match="Job raced out while waiting for it"):
        await waiter


async def test_a_job_that_was_never_there_is_not_found_at_once(queue: Queue) -> None:
    with pytest.raises(JobNotFound):
        await queue.wait("0190a0b0-0000-7000-8000-000000000000", timeout=30)


async def test_a_wait_ends_when_its_time_is_up(queue: Queue, store: Store) -> None:
    made = await queue.enqueue("work")
    with pytest.raises(WaitTimeout, match=made.id):
        await queue.wait(made.id, timeout=0.02)
    assert await store.get_states([made.id, "no uuid"]) == {made.id: JobState.READY}


def test_looks_come_every_half_second_and_then_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_WAIT", 0.5)
    now = [0.0]
    monkeypatch.setattr("windrow.queue.waiting.time.monotonic", lambda: now[0])
    looks = []
    for pause in itertools.islice(waiting.pauses(None), 30):
        looks.append(pause)
        now[0] += pause
    assert looks[:11] == [0.5] * 11
    assert looks[11] > 0.5
    assert looks == sorted(looks)
    assert looks[-1] == 5.0


async def test_a_claim_waits_for_a_job_that_comes(queue: Queue, open_another: OpenAnother) -> None:
    elsewhere = Queue(await open_another())
    claiming = asyncio.create_task(queue.claim(wait=30))
    made = await elsewhere.enqueue("work")
    assert [job.id for job in (await claiming).jobs] == [made.id]


async def test_a_claim_gives_up_when_its_time_is_up(queue: Queue) -> None:
    assert (await queue.claim(wait=0.02)).jobs == []


async def test_waiting_in_vain_names_the_worker_that_is_missing(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    job = await queue.enqueue("thumbnail", queue="images")
    with pytest.raises(WaitTimeout):
        await queue.wait(job.id, timeout=0)
    assert caplog.messages == [
        f"job {job.id} waits: no registered worker runs kind 'thumbnail' from queue 'images'"
    ]


async def test_using_a_queue_that_was_not_opened_says_how_to_open_it() -> None:
    with pytest.raises(AttributeError, match=r"`queue = await Queue.open"):
        Queue.open("sqlite:///x.db").enqueue  # type: ignore[attr-defined]  # noqa: B018
