"""The timings of the queues people come from, under their names."""

from __future__ import annotations

from typing import Any

import pytest

from windrow import Job, Queue, Worker, handler
from windrow.errors import ConfigError
from windrow.queue.job import JobState


def made(**options: Any) -> Any:
    @handler("work", **options)
    async def work(job: Job) -> None:
        raise ValueError("no")

    return work


async def test_nuq_has_60_s_leases_renewed_every_15_s_and_nine_stalls(queue: Queue) -> None:
    """N2."""
    one = made(preset="nuq")

    worker = Worker(queue, [one], preset="nuq")
    assert (one.lease, one.heartbeat) == (60, 15)
    assert (worker._lease, worker._rescue_every) == (60, 15)
    assert (await queue.enqueue("work")).max_crashes == 9


async def test_crawl_is_silent_for_two_minutes_and_fails_an_error_at_once(queue: Queue) -> None:
    """A3, A5: a heartbeat every 30 s, four runs when workers die, one when the handler fails."""
    one = made(preset="crawl")
    job = await queue.enqueue("work")
    await Worker(queue, [one]).run(until_idle=True)

    assert (one.lease, one.heartbeat, job.max_crashes) == (120, 30, 4)
    assert (await queue.get(job.id)).state is JobState.FAILED


async def test_unified_has_five_minutes_and_four_runs(queue: Queue) -> None:
    """U6, U7."""
    one = made(preset="unified")

    assert one.lease == 300
    assert (await queue.enqueue("work")).max_attempts == 4


async def test_processing_waits_twice_as_long_each_time_up_to_ten_minutes(queue: Queue) -> None:
    """J3."""
    one = made(preset="processing")

    assert [one.backoff(n) for n in range(6)] == [30, 60, 120, 240, 480, 600]
    assert (await queue.enqueue("work")).max_attempts == 5


async def test_what_is_given_comes_before_the_preset(queue: Queue) -> None:
    one = made(preset="nuq", lease=10, max_crashes=2, max_attempts=7)

    job = await queue.enqueue("work")
    assert (one.lease, job.max_crashes, job.max_attempts) == (10, 2, 7)


def test_unknown_preset_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="crawl, nuq, processing, unified"):
        made(preset="fast")
