"""What a kind's handler declares is what new jobs of the kind get."""

from __future__ import annotations

import pytest

from windrow import NewJob, Queue
from windrow.queue import kinds
from windrow.queue.kinds import Kind, declare


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "_declared", {})
    declare("thumbnail", Kind(queue="images", max_attempts=2, max_crashes=3, limits=("gpu",)))


async def test_new_job_takes_what_its_kind_declares(queue: Queue) -> None:
    job = await queue.enqueue("thumbnail")

    assert (job.queue, job.max_attempts, job.max_crashes) == ("images", 2, 3)
    assert job.limits == ("gpu",)


async def test_what_is_named_comes_before_what_the_kind_declares(queue: Queue) -> None:
    [made] = await queue.enqueue_many(
        [NewJob("thumbnail", queue="urgent", max_attempts=9, max_crashes=8, limits=[])]
    )

    job = await queue.get(made.id)
    assert (job.queue, job.max_attempts, job.max_crashes) == ("urgent", 9, 8)
    assert job.limits == ()


async def test_kind_that_nobody_declared_is_as_usual(queue: Queue) -> None:
    job = await queue.enqueue("unheard of")

    assert (job.queue, job.max_attempts, job.max_crashes) == ("default", 5, 5)


async def test_follow_up_takes_what_its_kind_declares(queue: Queue) -> None:
    await queue.enqueue("start")
    lease = await queue.claim()
    await lease.complete(lease.jobs[0], then=[NewJob("thumbnail")])

    [job] = await queue.list(kind="thumbnail")
    assert job.queue == "images"
