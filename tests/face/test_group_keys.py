"""Group keys and caps as applications see them."""

from __future__ import annotations

import pytest

from windrow import Done, Job, NewJob, Queue, Worker, handler
from windrow.errors import GroupNotFound, InvalidJob
from windrow.ids import new_id
from windrow.queue.job import JobState


async def test_enqueue_returns_the_job_that_has_the_key(queue: Queue) -> None:
    group = await queue.create_group()
    url = "https://example.org/" + "x" * 5000
    first = await queue.enqueue("page", {"n": 1}, group=group.id, group_key=url)
    again = await queue.enqueue("page", {"n": 2}, group=group.id, group_key=url)
    assert (again.id, again.payload, again.is_left_out) == (first.id, {"n": 1}, False)
    assert (await queue.group(group.id)).members == 1


async def test_a_job_that_was_not_stored_says_so(queue: Queue) -> None:
    group = await queue.create_group(max_jobs=1, hold=True)
    first = await queue.enqueue("page", group=group.id, group_key="a")
    await queue.delete(first.id)
    known = await queue.enqueue("page", group=group.id, group_key="a")
    assert (known.is_left_out, known.state) == (True, JobState.CANCELLED)
    assert known.error == f"its group has had its key, with job {first.id}"

    full = await queue.enqueue("page", group=group.id)
    assert full.is_left_out
    assert full.error == f"group {group.id} has all the jobs it takes"
    assert await queue.list() == []


async def test_follow_ups_of_handlers_come_in_once_and_up_to_the_cap(queue: Queue) -> None:
    """N5: a crawl of a site whose pages all lead to each other."""
    pages = {0: [1, 2, 3], 1: [0, 2, 4], 2: [0, 1, 5], 3: [4, 5, 6], 4: [], 5: [], 6: []}
    seen = []

    @handler("page")
    async def page(job: Job, payload: dict[str, int]) -> Done:
        seen.append(payload["n"])
        return Done(None, then=[link(n) for n in pages[payload["n"]]])

    def link(n: int) -> NewJob:
        return NewJob("page", {"n": n}, group=group.id, group_key=f"/{n}")

    group = await queue.create_group(max_jobs=6)
    await queue.enqueue_many([link(0)])
    await Worker(queue, [page]).run(until_idle=True)
    assert len(seen) == len(set(seen)) == 6
    found = await queue.group(group.id)
    assert (found.state, found.members, found.max_jobs) == ("completed", 6, 6)


async def test_keys_are_kept_for_a_job_that_has_none(queue: Queue) -> None:
    group = await queue.create_group()
    job = await queue.enqueue("page", group=group.id, group_key="/old")
    other = await queue.enqueue("page", group=group.id, group_key="/taken")
    assert await queue.keep_group_keys(group.id, ["/new", "/taken"], job=job) == {"/new"}
    assert await queue.keep_group_keys(group.id, ["/new", "/old"], job=job.id) == {"/new", "/old"}
    assert await queue.keep_group_keys(group.id, ["/new"], job=other) == set()
    [left] = await queue.enqueue_many([NewJob("page", group=group.id, group_key="/new")])
    assert (left.outcome, left.id) == ("left_out", job.id)
    with pytest.raises(GroupNotFound):
        await queue.keep_group_keys(new_id(), ["/new"], job=job)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"group_key": "a"}, "needs a group"),
        ({"group": new_id(), "group_key": "a", "unique": "b"}, "not both"),
        ({"group": new_id(), "group_key": ""}, "not empty"),
        ({"group": new_id(), "group_key": 7}, "must be a text"),
        ({"group": new_id(), "group_key": "\ud800"}, "must be a text"),
    ],
)
async def test_bad_group_keys_are_refused(queue: Queue, options: dict, told: str) -> None:
    with pytest.raises(InvalidJob, match=told):
        await queue.enqueue("page", **options)


@pytest.mark.parametrize("max_jobs", [0, -1, 1.5, True, "7"])
async def test_a_cap_is_a_positive_integer(queue: Queue, max_jobs: object) -> None:
    with pytest.raises(InvalidJob, match="max_jobs"):
        await queue.create_group(max_jobs=max_jobs)  # type: ignore[arg-type]
