"""kill -9 at every boundary between stages, on real workers: nothing is lost or paid twice.

J8: on BullMQ too, where the rows of a stage and its completion are two steps: killed between them,
and right after them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.calls.desk import lose_locks
from tests.calls.speechkit_server import KEY, Fault, SpeechKitServer
from windrow import Queue
from windrow.catalog import Catalog
from windrow.ingest.artifacts import open_artifacts
from windrow.pipelines.calls.payloads import STAGES
from windrow.queue.bullmq.store import BullmqStore
from windrow.queue.job import JobState
from windrow.services.calls import add_call, get_call
from windrow.settings import Settings

ORG = "acme"
PATIENCE = 240.0


@pytest.fixture(params=["sqlite", "beside"])
def url(
    request: pytest.FixtureRequest,
    sqlite_template: Path,
    tmp_path: Path,
    make_bullmq_url: Callable[[], str],
) -> str:
    shutil.copyfile(sqlite_template, tmp_path / "jobs.db")
    rows = f"sqlite:///{tmp_path / 'jobs.db'}"
    return rows if request.param == "sqlite" else f"{make_bullmq_url()}&rows={rows}"


async def work(
    settings: Settings, url: str, folder: Path, *command: str, **environment: str
) -> asyncio.subprocess.Process:
    environment = {
        **os.environ,
        **environment,
        "WINDROW_DATABASE_URL": url,
        "WINDROW_DATA_DIR": str(folder / "data"),
        "WINDROW_ARTIFACTS_URL": settings.artifacts_url,
        "WINDROW_S3_ENDPOINT": settings.s3_endpoint,
        "WINDROW_S3_REGION": settings.s3_region,
        "WINDROW_S3_KEY": settings.s3_key,
        "WINDROW_S3_SECRET": settings.s3_secret,
        "WINDROW_SPEECHKIT_KEY": KEY,
        "WINDROW_SPEECHKIT_URL": settings.speechkit_url,
        "WINDROW_SPEECHKIT_OPERATIONS_URL": settings.speechkit_operations_url,
        "SPEECHKIT_POLL_INTERVAL_MS": "200",
    }
    return await asyncio.create_subprocess_exec(
        *(sys.executable, *(command or ("-m", "windrow")), "worker", "calls"),
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def kill(worker: asyncio.subprocess.Process, queue: Queue, database: Path) -> None:
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    await free(queue, database)


async def free(queue: Queue, database: Path) -> None:
    """What a dead worker held is free when its lease has run out; nobody waits for that here."""
    if isinstance(queue.store, BullmqStore):
        await lose_locks(queue.store, await queue.list(state=JobState.ACTIVE))
        return
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        connection.execute("UPDATE windrow_lease SET expires_at = 0")


async def until(queue: Queue, call_id: str, *statuses: str) -> str:
    while (status := (await get_call(queue, call_id)).call.status) not in statuses:
        await asyncio.sleep(0.01)
    return status


def boundaries(place: int) -> tuple[str, ...]:
    """The stage that begins there, and all that come after it."""
    return (*STAGES[place:], "done", "failed")


@pytest.mark.chaos
async def test_a_worker_is_killed_at_every_boundary(
    url: str, tmp_path: Path, settings: Settings, speechkit: SpeechKitServer, recording: Path
) -> None:
    speechkit.polls_needed = 3
    database = tmp_path / "jobs.db"
    artifacts = open_artifacts(settings)
    async with asyncio.timeout(PATIENCE), Queue.open(url) as queue:
        call_id = await add_call(queue, artifacts, recording, org=ORG)
        for place in range(len(STAGES)):
            worker = await work(settings, url, tmp_path)
            await until(queue, call_id, *boundaries(place))
            await kill(worker, queue, database)
        worker = await work(settings, url, tmp_path)
        assert await until(queue, call_id, "done", "failed") == "done"
        await kill(worker, queue, database)
        info = await get_call(queue, call_id)
        jobs = [job for job in await queue.list() if job.kind.removeprefix("call.") in STAGES]
    await artifacts.close()
    assert {one.name for one in info.artifacts} == {"audio", "transcript"}
    assert len(jobs) == len(STAGES)
    assert sum(speechkit.billed.values()) <= 2, "one start may have been lost on its way"
    assert len(speechkit.polls) == 1, "there is one chain of polls"


@pytest.mark.chaos
@pytest.mark.parametrize("what", ["start", "poll"])
async def test_a_worker_is_killed_while_the_provider_is_asked(
    url: str,
    tmp_path: Path,
    settings: Settings,
    speechkit: SpeechKitServer,
    recording: Path,
    what: str,
) -> None:
    """Between a start and the keeping of its id: one start more, and one chain of polls."""
    speechkit.fail(what, Fault("hang"))
    database = tmp_path / "jobs.db"
    artifacts = open_artifacts(settings)
    async with asyncio.timeout(PATIENCE), Queue.open(url) as queue:
        call_id = await add_call(queue, artifacts, recording, org=ORG)
        worker = await work(settings, url, tmp_path)
        while not speechkit.hanging:
            await asyncio.sleep(0.01)
        await kill(worker, queue, database)
        speechkit.let_go()
        worker = await work(settings, url, tmp_path)
        assert await until(queue, call_id, "done", "failed") == "done"
        await kill(worker, queue, database)
    await artifacts.close()
    assert list(speechkit.billed.values()) == [2 if what == "start" else 1]
    assert len(speechkit.polls) == 1


DOOMED = """
import os, signal
from windrow.queue.bullmq import finishing
from windrow.queue.bullmq.claiming import queue_of
from windrow.queue.job import JobState

told = finishing.finish_jobs
queue, point = os.environ["DOOM_QUEUE"], os.environ["DOOM_POINT"]

async def die_there(links, finishes):
    ends = [one for one in finishes if queue_of(one.token) == queue]
    is_there = any(one.state is JobState.COMPLETED for one in ends)
    if is_there and point == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    done = await told(links, finishes)
    if is_there:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

finishing.finish_jobs = die_there
from windrow.cli.main import main
main()
"""


@pytest.mark.chaos
@pytest.mark.parametrize("url", ["beside"], indirect=True)
@pytest.mark.parametrize("point", ["before", "after"])
async def test_j8_a_worker_is_killed_before_and_after_bullmq_is_told(
    url: str,
    tmp_path: Path,
    settings: Settings,
    speechkit: SpeechKitServer,
    recording: Path,
    point: str,
) -> None:
    """`before`: the rows of a stage are committed, and BullMQ knows nothing of it. `after`: it
    does, and nobody has begun the next stage."""
    database = tmp_path / "jobs.db"
    artifacts = open_artifacts(settings)
    async with asyncio.timeout(PATIENCE), Queue.open(url) as queue:
        call_id = await add_call(queue, artifacts, recording, org=ORG)
        for number, stage in enumerate(STAGES, 1):
            doom = {"DOOM_QUEUE": f"call.{stage}", "DOOM_POINT": point}
            worker = await work(settings, url, tmp_path, "-c", DOOMED, **doom)
            assert await worker.wait() == -signal.SIGKILL
            info = await get_call(queue, call_id)
            assert info.call.status == (*STAGES, "done")[number], "the rows are there"
            ended = [job for job in info.jobs if job.state is JobState.COMPLETED]
            assert len(ended) == (number if point == "after" else number - 1)
            await free(queue, database)
        worker = await work(settings, url, tmp_path)
        while len(ended) < len(STAGES):
            await asyncio.sleep(0.05)
            jobs = (await get_call(queue, call_id)).jobs
            ended = [job for job in jobs if job.state is JobState.COMPLETED]
        await kill(worker, queue, database)
        info = await get_call(queue, call_id)
        [document] = await Catalog(queue.database).documents.page(ORG, "default")
        written = await queue.list(kind="index.write")
    await artifacts.close()
    assert info.call.status == "done"
    assert {one.name for one in info.artifacts} == {"audio", "transcript"}
    # Each stage ran once: its end was brought home by another, which did not run it again.
    assert [job.runs for job in info.jobs] == [2 if point == "before" else 1] * len(STAGES)
    assert list(speechkit.billed.values()) == [1]
    assert list(speechkit.polls.values()) == [1]
    assert [one.payload for one in written] == [{"content": document.pending}]
