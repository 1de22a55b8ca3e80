"""`Watch`: how fast a queue goes, from what it counted before."""

from __future__ import annotations

from windrow import Queue
from windrow.queue.job import JobState
from windrow.services.overview import Rate, Watch


async def complete(queue: Queue, count: int) -> None:
    for _ in range(count):
        await queue.enqueue("work")
    lease = await queue.claim(limit=count)
    for job in lease.jobs:
        await lease.complete(job)


async def test_rates_count_what_ended_since_the_last_look(queue: Queue) -> None:
    watch = Watch(queue)
    await complete(queue, 5)
    assert (await watch.look()).rates == {"default": Rate()}
    await complete(queue, 3)
    seen = await watch.look()
    assert seen.rate.now > 0
    assert seen.rate.now == seen.rate.mean
    assert seen.count(JobState.COMPLETED) == 8
    seen = await watch.look()
    assert seen.rate.now == 0
    assert seen.rate.mean > 0


async def test_jobs_that_were_removed_do_not_make_it_go_backwards(queue: Queue) -> None:
    watch = Watch(queue)
    await complete(queue, 5)
    await watch.look()
    await queue.clean()
    await complete(queue, 1)
    assert (await watch.look()).rate == Rate()
    await complete(queue, 2)
    assert (await watch.look()).rate.now > 0


async def test_toggling_pauses_and_resumes(queue: Queue) -> None:
    watch = Watch(queue)
    for is_paused in (True, False):
        await watch.toggle("web")
        await queue.enqueue("work", queue="web")
        [info] = (await watch.look()).queues
        assert info.is_paused is is_paused
