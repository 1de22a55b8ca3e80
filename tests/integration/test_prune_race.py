"""Pruning with real processes, while others enqueue and run jobs."""

from __future__ import annotations

import asyncio

from tests.builders import EVERYTHING, counted, tallied
from tests.conftest import OpenAnother
from tests.integration.racing import LaterClock
from tests.integration.test_race import RACERS, Start, real, start  # noqa: F401
from windrow.queue.job import JobState
from windrow.queue.store import Store

ROUNDS = 10


async def test_4_processes_prune_while_4_enqueue_and_only_what_has_expired_goes(
    real: Store,  # noqa: F811
    start: Start,  # noqa: F811
    open_another: OpenAnother,
) -> None:
    """Nothing that lives or is kept is removed, nobody meets an error, all that expired goes."""
    half = RACERS // 2
    workers = start(half, "come_and_go", seed=lambda n: n, rounds=ROUNDS)
    pruners = start(half, "prune", batch=lambda n: 50 * (n + 1))
    for racer in [*pruners, *workers]:
        racer.go()
    told = [await asyncio.to_thread(worker.hear) for worker in workers]
    for pruner in pruners:
        pruner.go()  # its second line: stop
    removed = sum([await asyncio.to_thread(pruner.hear) for pruner in pruners])
    assert [racer.end() for racer in [*workers, *pruners]] == [0] * RACERS

    stay = {job_id for one in told for job_id in one["stay"]}
    expired = {job_id for one in told for job_id in one["expire"]}
    assert 0 < removed <= len(expired) == 20 * ROUNDS * half
    later = await open_another(LaterClock())
    while not (last := await later.prune_jobs()).is_done:
        removed += last.jobs
    removed += last.jobs

    assert removed == len(expired)
    jobs = await real.list_jobs(EVERYTHING, limit=100_000)
    assert {job.id for job in jobs} == stay
    assert {job.state for job in jobs} == {JobState.READY, JobState.COMPLETED}
    whole = await real.get_jobs([job.id for job in jobs if job.state is JobState.COMPLETED])
    assert all(job.result == {"by": job.id} for job in whole.values())
    assert await tallied(real) == await counted(real)
