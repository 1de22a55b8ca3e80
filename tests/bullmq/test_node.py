"""Node's own BullMQ on the other side: it runs our jobs, and we run its."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from windrow import Done, NewJob, Queue, Worker, handler
from windrow.queue.job import Job, JobState

SCRIPT = Path(__file__).with_name("node_side.mjs")
PACKAGE = "bullmq@5"
NodeSide = Callable[..., Coroutine[Any, Any, Any]]


@pytest.fixture(scope="session")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Node's `bullmq` in it."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node or npm is not installed, so nothing was tested with Node's BullMQ")
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if is_worker else base) / "node"  # one for all processes of the run
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "node_modules" / "bullmq").is_dir():
            _install(folder)
    return folder


def _install(folder: Path) -> None:
    (folder / "package.json").write_text('{"private": true}')
    # An index that is out of reach is found out soon; a machine that is busy may take its time.
    index = ["--fetch-retries=1", "--fetch-timeout=20000"]
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *index, PACKAGE]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{PACKAGE} is not installed, and npm does not end: is its index out of reach?")
    if done.returncode:
        pytest.skip(f"{PACKAGE} is not installed, and npm cannot do it: {done.stderr[-200:]}")


@pytest.fixture
def node(node_folder: Path, url: str) -> NodeSide:
    """Call it with a task of the script and what it takes, for what it says."""
    parts = urlsplit(url)
    prefix = parse_qs(parts.query)["prefix"][0]

    async def run(*task: str) -> Any:
        command = ["node", str(SCRIPT), str(node_folder), str(parts.port), prefix, *task]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        async with asyncio.timeout(90):
            told, _ = await process.communicate()
        assert process.returncode == 0
        return json.loads(told)

    return run


async def test_j8_jobs_of_node_are_run_by_our_worker(queue: Queue, node: NodeSide) -> None:
    made = (await node("produce", "mixed", "6"))["ids"]
    seen: list[int] = []

    @handler("from-node")
    async def run(job: Job, payload: dict[str, int]) -> Any:
        if payload["n"] == 4 and job.attempts == 0:
            raise RuntimeError("first try")
        seen.append(payload["n"])
        return Done({"twice": 2 * payload["n"]})

    worker = Worker(queue, [run], queues=["mixed"])
    working = asyncio.create_task(worker.run())
    await queue.wait_many([f"mixed:{one}" for one in made], timeout=60)
    worker.stop()
    await working

    assert sorted(seen) == list(range(6))
    found = await node("look", "mixed", *made)
    assert [found[one]["state"] for one in made] == ["completed"] * 6
    assert [found[one]["returnvalue"] for one in made] == [{"twice": 2 * n} for n in range(6)]
    assert found[made[4]]["attemptsMade"] == 2
    job = await queue.get(f"mixed:{made[4]}")
    assert (job.attempts, job.max_attempts, job.state) == (1, 3, JobState.COMPLETED)


async def test_j8_our_jobs_are_run_by_a_worker_in_node(queue: Queue, node: NodeSide) -> None:
    plain = await queue.enqueue("ours", {"n": 7}, queue="theirs", priority=9, tags=["kept"])
    flaky = await queue.enqueue("flaky", {"n": 1, "fails": 1}, queue="theirs", max_attempts=2)
    bad = await queue.enqueue("bad", {"n": 2, "fails": 9}, queue="theirs", max_attempts=1)
    waiting = asyncio.create_task(queue.wait_many([plain.id, flaky.id, bad.id], timeout=60))

    ran = (await node("consume", "theirs", "3", "8000"))["ran"]
    ended = await waiting

    assert ran[0] == {"id": plain.id, "name": "ours", "data": {"n": 7}, "made": 0}
    assert ended[plain.id].result == {"by": "node", "n": 7}
    assert (ended[plain.id].tags, ended[plain.id].priority) == (("kept",), 9)
    assert ended[flaky.id].state is JobState.COMPLETED
    assert ended[flaky.id].attempts == 1
    assert (ended[bad.id].state, ended[bad.id].error) == (JobState.FAILED, "not yet")
    progress = ended[plain.id].progress
    assert progress is not None
    assert progress.percent == 50


async def test_scheduler_of_node_goes_on_through_workers_of_both_sides(
    queue: Queue, node: NodeSide
) -> None:
    ours: list[str] = []

    @handler("tick")
    async def run(job: Job) -> None:
        ours.append(job.id)
        if len(ours) == 2:
            worker.stop()

    await node("schedule", "ticks", "each", "300")
    worker = Worker(queue, [run], queues=["ticks"])
    async with asyncio.timeout(60):
        await worker.run()
    ran = (await node("consume", "ticks", "2", "8000"))["ran"]

    theirs = [f"ticks:{one['id']}" for one in ran]
    assert len(theirs) >= 2
    assert len({*ours, *theirs}) == len(ours) + len(theirs)
    assert {json.dumps(one["data"]) for one in ran} == {'{"n": 1}'}


@pytest.mark.chaos
async def test_workers_on_both_sides_share_a_queue_without_doing_anything_twice(
    queue: Queue, node: NodeSide
) -> None:
    inserted = await queue.enqueue_many(
        [NewJob("shared", {"n": n}, queue="shared") for n in range(60)]
    )
    ours: list[int] = []

    @handler("shared")
    async def run(job: Job, payload: dict[str, int]) -> None:
        await asyncio.sleep(0.05)
        ours.append(payload["n"])

    worker = Worker(queue, [run], queues=["shared"], concurrency=1)
    theirs = asyncio.create_task(node("consume", "shared", "60", "1500"))
    working = asyncio.create_task(worker.run())
    await queue.wait_many([one.id for one in inserted], timeout=90)
    worker.stop()
    await working
    node_ran = [one["data"]["n"] for one in (await theirs)["ran"]]

    assert sorted(ours + node_ran) == list(range(60))
