"""Jobs that others made, under their ids, on every surface: Python, commands, HTTP, dashboard."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from typer.testing import CliRunner

from tests.bullmq.conftest import add_theirs
from windrow import Queue, Worker, handler
from windrow.api.app import create_app
from windrow.cli.main import app
from windrow.errors import InvalidJob, JobNotFound
from windrow.queue.bullmq import connection
from windrow.queue.bullmq.store import BullmqStore
from windrow.queue.job import Job, JobState
from windrow.settings import Settings
from windrow.web.site import create_site

HEX = "f" * 32  # as flows of the package in Python name their jobs


@pytest.fixture
def url(make_bullmq_url: Callable[[], str], sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "rows.db"
    shutil.copyfile(sqlite_template, path)
    return f"{make_bullmq_url()}&rows=sqlite:///{path}"


@pytest.fixture
async def client(queue: Queue) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(queue, Settings()))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as opened:
        yield opened


@handler("from-node")
async def run(job: Job, payload: Any) -> str:
    return "done"


@pytest.mark.parametrize("theirs", ["1", "mine", HEX, "order-7", "repeat:x:1"])
async def test_a_job_of_others_is_cancelled_retried_and_waited_for(
    queue: Queue, url: str, theirs: str
) -> None:
    options: dict[str, Any] = {} if theirs == "1" else {"jobId": theirs}
    await add_theirs(url, "images", **options)
    [job] = await queue.list()
    assert job.id == f"images:{theirs}"
    await queue.cancel(job.id)
    assert (await queue.get(job.id)).state is JobState.CANCELLED
    await queue.retry(job.id)
    assert (await queue.get(job.id)).state is JobState.READY
    [again] = await queue.list()
    assert again.id == job.id
    worker = Worker(queue, [run], queues=["images"])
    working = asyncio.create_task(worker.run())
    assert (await queue.wait(job.id, timeout=60)).result == "done"
    worker.stop()
    await working
    await queue.delete(job.id)
    with pytest.raises(JobNotFound):
        await queue.get(job.id)


async def test_pages_of_jobs_go_on_behind_an_id_of_others(queue: Queue, url: str) -> None:
    await add_theirs(url, "images", 5)
    seen: list[str] = []
    while page := await queue.list(after=seen[-1] if seen else None, limit=2):
        seen += [job.id for job in page]
    assert sorted(seen) == [f"images:{n}" for n in range(1, 6)]
    with pytest.raises(InvalidJob):
        await queue.list(after="nonsense")


async def test_commands_know_jobs_of_others(queue: Queue, url: str) -> None:
    await add_theirs(url, "images")
    await add_theirs(url, "images", jobId=HEX)

    def windrow(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, words, env={"WINDROW_DATABASE_URL": url, "COLUMNS": "200"})
        return done.exit_code, done.output

    for job_id in ("images:1", f"images:{HEX}"):
        assert job_id in (await asyncio.to_thread(windrow, "jobs", "list"))[1]
        for words, said in (
            (("show",), "from-node"),
            (("cancel",), "is cancelled"),
            (("retry",), "is ready"),
        ):
            code, told = await asyncio.to_thread(windrow, "jobs", *words, job_id)
            assert (code, said in told) == (0, True), told
    code, told = await asyncio.to_thread(windrow, "jobs", "show", "images:77")
    assert (code, "images:77" in told) == (1, True)


async def test_jobs_of_others_are_asked_for_over_http(
    queue: Queue, url: str, client: httpx.AsyncClient
) -> None:
    await add_theirs(url, "images", 3)
    assert (await client.get("/queue/jobs/images:1")).json()["job"]["id"] == "images:1"
    assert (await client.post("/queue/jobs/images:1/cancel")).json()["state"] == "cancelled"
    assert (await client.post("/queue/jobs/images:1/retry")).json()["state"] == "ready"
    page = (await client.get("/queue/jobs", params={"limit": 2})).json()
    rest = await client.get("/queue/jobs", params={"limit": 2, "after": page["next"]})
    assert len(rest.json()["jobs"]) == 1
    assert (await client.get("/queue/jobs/images:9")).status_code == 404
    assert (await client.get("/queue/jobs/nonsense")).status_code == 400
    assert (await client.delete("/queue/jobs/images:3")).status_code == 200


async def test_jobs_of_others_are_run_over_http(
    queue: Queue, url: str, client: httpx.AsyncClient
) -> None:
    await add_theirs(url, "images", 2)
    claimed = await client.post("/queue/claim", json={"queues": ["images"], "limit": 2})
    for job in claimed.json()["jobs"]:
        at, lease = f"/queue/jobs/{job['id']}", {"lease": job["lease"]}
        told = await client.post(f"{at}/progress", json={**lease, "percent": 50})
        assert told.status_code == 200, told.text
        assert (await client.post(f"{at}/complete", json=lease)).status_code == 200
        assert (await client.post(f"{at}/fail", json={"lease": "images:no"})).status_code == 409
    assert (await queue.counts())[JobState.COMPLETED] == 2


async def test_the_dashboard_shows_many_jobs_of_others(queue: Queue, url: str) -> None:
    await add_theirs(url, "images", 120)
    transport = httpx.ASGITransport(create_site(queue, Settings()))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as opened:
        seen = set()
        path: str | None = "/ui/jobs"
        while path:
            page = await opened.get(path)
            assert page.status_code == 200, page.text
            seen |= {one for one in range(1, 121) if f'/ui/jobs/images:{one}"' in page.text}
            last = min(f"images:{n}" for n in seen)
            path = f"/ui/jobs?after={last}" if len(seen) < 120 else None
        assert (await opened.get("/ui/jobs/images:7")).status_code == 200


async def test_queues_that_nobody_named_are_seen_and_not_taken_from(
    queue: Queue, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SCAN_KEYS", 1)
    monkeypatch.setattr(connection, "SCAN_PARTS", 2)
    links = cast(BullmqStore, queue.store)._links
    await add_theirs(url, "theirs", 3)
    while not await queue.queues() or links._cursor:  # a part of the keys at a time
        pass
    assert [info.name for info in await queue.queues()] == ["theirs"]
    assert (await queue.counts())[JobState.READY] == 3
    assert not await queue.claim(), "who names no queues takes from those that Windrow knows"
    await add_theirs(url, "later")
    assert len(await queue.queues()) == 1, "all keys were gone through a moment ago"
    links._scan_at = 0.0
    while len(await queue.queues()) < 2:
        pass
