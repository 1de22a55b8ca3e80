"""J8: what can happen to a call on BullMQ, with its rows in a database beside it. The stages
themselves, and the deaths of workers, are tested there by the tests of all stores."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.calls.desk import ORG, Desk, lose_locks
from tests.calls.speechkit_server import Fault, SpeechKitServer
from windrow.errors import LeaseLost
from windrow.pipelines.calls.context import keep_quotas
from windrow.pipelines.calls.payloads import STAGES
from windrow.pipelines.calls.stages import calls_sweeper
from windrow.queue.bullmq.store import BullmqStore
from windrow.queue.job import JobState
from windrow.queue.store import Store
from windrow.services.calls import get_call
from windrow.testing import drain

pytestmark = pytest.mark.only_on("beside")


async def test_each_stage_has_a_queue_and_a_failed_one_is_seen_and_retried(
    desk: Desk, speechkit: SpeechKitServer, recording: Path
) -> None:
    assert [one.queue for one in desk.handlers] == [f"call.{stage}" for stage in STAGES]
    speechkit.fail("start", Fault(status=403))
    call_id = await desk.add(recording)
    await desk.run()
    info = await get_call(desk.queue, call_id)
    assert [one.state for one in info.stages] == ["done", "failed", "waiting", "waiting"]
    assert "SpeechKit answers with 403" in (info.call.error or "")

    [failed] = [job for job in info.jobs if job.state is JobState.FAILED]
    await desk.queue.retry(failed.id)
    assert await desk.add(recording) == call_id, "it is on its way again"
    assert len(await desk.jobs()) == 2
    await desk.run()
    assert (await desk.call(call_id)).status == "done"
    assert (await desk.call(call_id)).error is None
    assert list(speechkit.billed.values()) == [1]
    assert await desk.kept(call_id) == {"audio", "transcript"}
    assert [job.kind for job in await desk.queue.list(queue="index")] == ["index.write"]


async def test_quotas_are_kept_by_what_the_provider_says(
    desk: Desk, speechkit: SpeechKitServer, caplog: pytest.LogCaptureFixture
) -> None:
    """There are no limits: nobody is asked for any, and a job waits as long as it is told to."""
    await keep_quotas(desk.queue, desk.calls.quotas)
    speechkit.fail("start", Fault(status=429, headers={"Retry-After": "40"}))
    call_id = await desk.add_uploaded()
    with caplog.at_level(logging.WARNING, "windrow.worker"):
        await drain(desk.queue, desk.handlers)
    assert caplog.messages == []
    [job] = await desk.jobs()
    assert (job.state, job.attempts) == (JobState.SCHEDULED, 0)
    assert job.started_at is not None
    assert (job.run_at - job.started_at).total_seconds() == pytest.approx(40, abs=10)
    await desk.run()
    assert (await desk.call(call_id)).status == "done"
    assert list(speechkit.billed.values()) == [1]


async def test_a_worker_that_was_taken_for_dead_changes_nothing_of_the_call(
    desk: Desk, speechkit: SpeechKitServer, store: Store
) -> None:
    call_id = await desk.add_uploaded()
    lease = await desk.queue.claim(["call.transcribe_start"], worker="sleeper")
    [job] = lease.jobs
    stage = desk.handler("transcribe_start")
    outcome = await stage(job, stage.payload_of(job))
    assert isinstance(store, BullmqStore)
    await lose_locks(store, [job])
    await desk.run()
    before = await desk.call(call_id)
    assert before.status == "done"

    with pytest.raises(LeaseLost):
        await lease.finish(job, outcome)

    assert await desk.call(call_id) == before
    assert await desk.kept(call_id) == {"audio", "transcript"}
    assert len(await desk.jobs()) == len(STAGES) - 1
    assert list(speechkit.billed.values()) == [1], "its id was kept as a step"


async def test_a_cancelled_call_says_so_at_the_next_sweep(
    desk: Desk, speechkit: SpeechKitServer
) -> None:
    call_id = await desk.add_uploaded()
    await drain(desk.queue, desk.handlers)  # not what is scheduled: the poll waits
    [poll] = await desk.queue.list(kind="call.transcribe_poll")
    await desk.queue.cancel(poll.id, reason="the customer asked for it")
    sweeper = calls_sweeper(desk.calls, desk.chain)
    await desk.queue.enqueue(sweeper.kind, queue="sweeping")
    await drain(desk.queue, [*desk.handlers, sweeper.handler])

    call = await desk.call(call_id)
    assert call.status == "failed"
    assert "the customer asked for it" in (call.error or "")
    assert speechkit.polls == {}
    assert call.tenant == ORG
