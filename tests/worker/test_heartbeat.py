"""Leases are renewed in time, also of jobs that are claimed right after an outage."""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import add_and_claim
from tests.faults import FaultyStore
from windrow.queue.job import Job
from windrow.queue.store import Store
from windrow.worker import service
from windrow.worker.heartbeat import Heartbeat
from windrow.worker.registry import handler
from windrow.worker.runs import Run, Runs


@handler("short", lease=2)
async def short(job: Job) -> None: ...


async def test_a_claim_after_an_outage_is_renewed_before_the_wait_of_the_outage_is_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "FIRST_WAIT", 60.0)
    monkeypatch.setattr(service, "LONGEST_WAIT", 60.0)
    faulty, runs = FaultyStore(store), Runs()
    heartbeat = Heartbeat(faulty, runs, 30, lambda run, why: None)
    runs.noticed_by = heartbeat.notice
    runs.add(Run(await add_and_claim(store, "short"), short))
    faulty.fail_before("extend_leases", call=2)
    beating = asyncio.create_task(heartbeat.run())
    async with asyncio.timeout(30):
        while faulty.calls("extend_leases") < 2:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0)

        runs.add(Run(await add_and_claim(store, "short"), short))

        while faulty.calls("extend_leases") < 3:
            await asyncio.sleep(0.05)
    heartbeat.stop()
    await beating
