"""Each crash is one record, whoever rescues the job."""

from __future__ import annotations

import logging

import pytest

from windrow import NewJob, Queue
from windrow.clock import FakeClock
from windrow.queue.crash_log import MAX_DESCRIBED


async def test_a_crash_is_one_line_and_the_last_an_error(
    queue: Queue, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    job = await queue.enqueue("thumbnail", {"url": "a"}, max_crashes=2)
    for _ in range(2):
        await queue.claim(worker="gone", seconds=30)
        clock.advance(31)
        await queue.tend()

    crashed, failed = caplog.records
    assert (crashed.levelno, vars(crashed)["event"]) == (logging.WARNING, "job.crashed")
    assert crashed.getMessage() == (
        f"job {job.id} thumbnail crashed, crash 1 of 2: the lease ran out (worker gone); "
        "it is ready"
    )
    assert (failed.levelno, vars(failed)["event"]) == (logging.ERROR, "job.failed")
    assert "thumbnail failed, crash 2 of 2: " in failed.getMessage()
    assert (vars(failed)["job_id"], vars(failed)["crashes"]) == (job.id, 2)


async def test_of_very_many_crashes_the_first_are_described_and_the_others_counted(
    queue: Queue, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    await queue.enqueue_many([NewJob("thumbnail") for _ in range(MAX_DESCRIBED + 3)])
    await queue.claim(limit=100, seconds=30)
    clock.advance(31)
    await queue.tend()

    *described, counted = caplog.records
    assert [vars(one)["event"] for one in described] == ["job.crashed"] * MAX_DESCRIBED
    assert counted.getMessage() == "3 more jobs crashed and were taken back: their leases expired"
