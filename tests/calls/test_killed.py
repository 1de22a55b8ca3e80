"""kill -9 at every boundary between stages, on real workers: nothing is lost or paid twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.calls.speechkit_server import KEY, Fault, SpeechKitServer
from windrow import Queue
from windrow.ingest.artifacts import open_artifacts
from windrow.pipelines.calls.payloads import STAGES
from windrow.services.calls import add_call, get_call
from windrow.settings import Settings

ORG = "acme"
PATIENCE = 240.0


async def work(settings: Settings, folder: Path, *words: str) -> asyncio.subprocess.Process:
    environment = {
        **os.environ,
        "WINDROW_DATABASE_URL": f"sqlite:///{folder}/jobs.db",
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
        *(sys.executable, "-m", "windrow", "worker", "calls", *words),
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def kill(worker: asyncio.subprocess.Process, database: Path) -> None:
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    # What it held is free when its lease has run out; nobody waits for that here.
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
    tmp_path: Path, settings: Settings, speechkit: SpeechKitServer, recording: Path
) -> None:
    speechkit.polls_needed = 3
    database = tmp_path / "jobs.db"
    artifacts = open_artifacts(settings)
    async with asyncio.timeout(PATIENCE), Queue.open(f"sqlite:///{database}") as queue:
        call_id = await add_call(queue, artifacts, recording, org=ORG)
        for place in range(len(STAGES)):
            worker = await work(settings, tmp_path)
            await until(queue, call_id, *boundaries(place))
            await kill(worker, database)
        worker = await work(settings, tmp_path)
        assert await until(queue, call_id, "done", "failed") == "done"
        await kill(worker, database)
        info = await get_call(queue, call_id)
        jobs = [job for job in await queue.list(queue="processing_jobs") if "sweep" not in job.kind]
    await artifacts.close()
    assert {one.name for one in info.artifacts} == {"audio", "transcript"}
    assert len(jobs) == len(STAGES)
    assert sum(speechkit.billed.values()) <= 2, "one start may have been lost on its way"
    assert len(speechkit.polls) == 1, "there is one chain of polls"


@pytest.mark.chaos
@pytest.mark.parametrize("what", ["start", "poll"])
async def test_a_worker_is_killed_while_the_provider_is_asked(
    tmp_path: Path, settings: Settings, speechkit: SpeechKitServer, recording: Path, what: str
) -> None:
    """Between a start and the keeping of its id: one start more, and one chain of polls."""
    speechkit.fail(what, Fault("hang"))
    database = tmp_path / "jobs.db"
    artifacts = open_artifacts(settings)
    async with asyncio.timeout(PATIENCE), Queue.open(f"sqlite:///{database}") as queue:
        call_id = await add_call(queue, artifacts, recording, org=ORG)
        worker = await work(settings, tmp_path)
        while not speechkit.hanging:
            await asyncio.sleep(0.01)
        await kill(worker, database)
        speechkit.let_go()
        worker = await work(settings, tmp_path)
        assert await until(queue, call_id, "done", "failed") == "done"
        await kill(worker, database)
    await artifacts.close()
    assert list(speechkit.billed.values()) == [2 if what == "start" else 1]
    assert len(speechkit.polls) == 1
