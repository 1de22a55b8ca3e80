"""What a worker logs of its runs, its start and its stop, and of kinds and queues that nobody
serves."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from windrow import Cancel, Fail, Job, NewJob, Queue, Retry, Snooze, Worker, handler
from windrow.errors import RateLimited
from windrow.ids import new_id
from windrow.queue.records import WorkerRow
from windrow.queue.store import Store
from windrow.worker.startup import Startup


class Thumb(msgspec.Struct):
    url: str


@handler("portrait", queue="images", backoff=[0, 16], max_attempts=2)
async def portrait(job: Job, payload: Thumb) -> dict[str, str]:
    if payload.url == "gone":
        raise ValueError("no such file:\n  gone")
    return {"path": payload.url}


@handler("say")
async def say(job: Job) -> Any:
    return {"cancel": Cancel("not today"), "fail": Fail("broken"), "snooze": Snooze(600)}[
        job.payload
    ]


def of_event(caplog: pytest.LogCaptureFixture, name: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if getattr(record, "event", None) == name]


async def test_each_failed_run_is_one_line_and_the_last_an_error(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    job = await queue.enqueue(
        "portrait", {"url": "gone"}, queue="images", max_attempts=2, tenant="ann"
    )
    await Worker(queue, [portrait]).run(until_idle=True)

    [retried] = of_event(caplog, "job.retried")
    assert retried.levelno == logging.WARNING
    assert retried.getMessage() == (
        f"job {job.id} portrait failed, attempt 1 of 2: ValueError: no such file: gone; "
        "next try at once"
    )
    [failed] = of_event(caplog, "job.failed")
    assert failed.levelno == logging.ERROR
    assert failed.getMessage() == (
        f"job {job.id} portrait failed, attempt 2 of 2: ValueError: no such file: gone; "
        "no attempt is left"
    )
    fields = vars(failed)
    assert (fields["job_id"], fields["kind"], fields["queue"]) == (job.id, "portrait", "images")
    assert (fields["tenant"], fields["attempt"], fields["max_attempts"]) == ("ann", 2, 2)
    assert (fields["error_type"], fields["error"]) == ("ValueError", "no such file:\n  gone")
    assert fields["seconds"] >= 0
    assert "traceback" not in fields
    assert of_event(caplog, "job.completed") == []


async def test_a_wrong_payload_fails_in_one_line_that_names_the_field(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    await queue.enqueue("portrait", {"uri": "a"})
    await Worker(queue, [portrait]).run(until_idle=True)

    [failed] = of_event(caplog, "job.failed")
    said = failed.getMessage()
    assert "not a valid Thumb: Object missing required field `url`; not retried" in said
    assert "\n" not in said


async def test_completed_runs_and_tracebacks_are_logged_at_debug_only(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "windrow.worker.run_log")
    job = await queue.enqueue("portrait", {"url": "a"})
    await queue.enqueue("portrait", {"url": "gone"}, max_attempts=1)
    await Worker(queue, [portrait]).run(until_idle=True)

    [completed] = of_event(caplog, "job.completed")
    assert completed.levelno == logging.DEBUG
    assert completed.getMessage().startswith(f"job {job.id} portrait completed in ")
    [failed] = of_event(caplog, "job.retried") + of_event(caplog, "job.failed")
    assert "in portrait" in vars(failed)["traceback"]


async def test_other_ends_have_events_of_their_own(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for what in ("cancel", "fail", "snooze"):
        await queue.enqueue("say", what)
    await Worker(queue, [say]).run(until_idle=True, wait_for_retries=0)

    [cancelled] = of_event(caplog, "job.cancelled")
    assert cancelled.getMessage().endswith("say cancelled by its handler: not today")
    [failed] = of_event(caplog, "job.failed")
    assert failed.getMessage().endswith("say failed, attempt 1 of 5: broken; not retried")
    [snoozed] = of_event(caplog, "job.snoozed")
    assert snoozed.getMessage().endswith("say snoozed for 10 min")


async def test_the_first_lines_name_database_queues_and_handlers(
    queue: Queue, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with Queue.open(store_url) as opened:
        await Worker(opened, [portrait, say], queues=["images"], name="me").run(until_idle=True)

    [started] = of_event(caplog, "worker.started")
    assert started.getMessage() == (
        f"worker me started: database {opened.location}, queues: images, 10 at once"
    )
    [handlers] = of_event(caplog, "worker.handlers")
    here = "tests.worker.test_run_log"
    assert handlers.getMessage() == f"handlers: portrait ({here}.portrait), say ({here}.say)"
    assert [record.getMessage() for record in of_event(caplog, "worker.stopped")] == [
        "worker me stopped"
    ]


async def test_a_kind_that_no_worker_runs_is_named_once(
    queue: Queue, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    job = await queue.enqueue("portriat", {"url": "a"}, queue="images")
    await queue.enqueue("portrait", {"url": "a"}, queue="images")
    startup = started(store)
    for _ in range(3):
        await startup.run_once()

    [unserved] = of_event(caplog, "kind.unserved")
    assert unserved.getMessage() == (
        f"no registered worker runs kind 'portriat' from queue 'images', as job {job.id}; "
        "did you mean 'portrait'?"
    )


async def test_very_many_unserved_queues_are_counted_and_not_all_named(
    queue: Queue, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await queue.enqueue_many([NewJob("letter", queue=f"of-{n}") for n in range(50)])
    startup = started(store)
    for _ in range(3):
        await startup.run_once()

    assert len(of_event(caplog, "kind.unserved")) == 20
    assert [vars(record)["count"] for record in of_event(caplog, "kinds.unserved")] == [30]


async def test_a_named_queue_that_never_had_a_job_is_named_once(
    queue: Queue, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await queue.enqueue("other", queue="letters")
    startup = started(store, "imagse", "letters", "images")
    for _ in range(3):
        await startup.run_once()

    [unused] = of_event(caplog, "queue.unused")
    assert unused.getMessage() == "queue 'imagse' has never had a job; did you mean 'images'?"


async def test_a_worker_that_does_not_announce_itself_warns_of_nothing(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    await queue.enqueue("portriat", {"url": "a"})
    await Worker(queue, [portrait], queues="imagse", announce=False).run(until_idle=True)

    assert of_event(caplog, "queue.unused") == of_event(caplog, "kind.unserved") == []


async def test_a_job_that_its_handler_damaged_does_not_harm_the_log(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    @handler("damage")
    async def damage(job: Job) -> Retry:
        job.queue = None  # type: ignore[assignment]
        job.attempts = "many"  # type: ignore[assignment]
        return Retry("again", after=0)

    job = await queue.enqueue("damage")
    await Worker(queue, [damage]).run(until_idle=True)

    assert (await queue.get(job.id)).state == "failed"
    assert [vars(record)["job_id"] for record in of_event(caplog, "job.unreadable")] == [job.id]


def started(store: Store, *queues: str) -> Startup:
    worker = WorkerRow(
        id=new_id(),
        name="me",
        host="here",
        pid=1,
        queues=queues or None,
        kinds=("portrait",),
        concurrency=1,
    )
    return Startup(store, worker, {"portrait": portrait})


async def test_a_handler_that_forgets_to_await_is_told_so(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> int:
        return 1

    @handler("forgetful", run="async")
    async def forgetful(job: Job) -> Any:
        return work()

    await queue.enqueue("forgetful")
    await Worker(queue, [forgetful]).run(until_idle=True)
    [failed] = of_event(caplog, "job.retried") + of_event(caplog, "job.failed")
    assert "InvalidOutcome: the handler returned a coroutine: await it" in failed.getMessage()


async def test_a_rate_limit_that_parks_its_key_is_one_line(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    @handler("ask")
    async def ask(job: Job) -> None:
        raise RateLimited("api.example.org", 600)

    await queue.enqueue("ask")
    await Worker(queue, [ask]).run(until_idle=True, wait_for_retries=0)
    [parked] = of_event(caplog, "limit.parked")
    assert parked.getMessage() == (
        "limit key api.example.org is parked for 10 min: api.example.org is asked too often, "
        "asks for 600 s"
    )
