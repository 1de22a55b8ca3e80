"""A FastAPI application with a queue, and with a worker in the same process."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from fastapi import Depends, FastAPI, WebSocket
from fastapi.testclient import TestClient

from tests.test_docs import ROOT
from windrow import Job, Queue, handler
from windrow.errors import ConfigError, StoreUnavailable
from windrow.integrations.fastapi import (
    CurrentQueue,
    add_error_handlers,
    get_queue,
    windrow_lifespan,
)

STARTED = threading.Event()


@handler("fastapi.slow")
async def slow(job: Job) -> str:
    STARTED.set()
    await asyncio.sleep(0.3)
    return "to the end"


class Measure(TypedDict):
    width: int


@handler("fastapi.measured")
async def measured(job: Job, payload: Measure) -> None: ...


def add_routes(app: FastAPI) -> None:
    @app.post("/jobs")
    async def take(kind: str, queue: CurrentQueue) -> dict[str, str]:
        return {"id": (await queue.enqueue(kind)).id}

    @app.get("/jobs")
    async def count(queue: Annotated[Queue, Depends(get_queue)]) -> dict[str, int]:
        return {str(state): count for state, count in (await queue.counts()).items() if count}

    @app.websocket("/live")
    async def live(socket: WebSocket, queue: CurrentQueue) -> None:
        await socket.accept()
        await socket.send_json(sum((await queue.counts()).values()))


def test_the_queue_is_open_as_long_as_the_application_runs(store_url: str) -> None:
    app = FastAPI(lifespan=windrow_lifespan(store_url, max_payload=100))
    add_routes(app)
    with TestClient(app) as client:
        assert client.post("/jobs", params={"kind": "work"}).status_code == 200
        assert client.get("/jobs").json() == {"ready": 1}
        with client.websocket_connect("/live") as socket:
            assert socket.receive_json() == 1
        queue: Queue = app.state.windrow_queue
        assert queue.size_limits.payload == 100

    with pytest.raises(StoreUnavailable):
        asyncio.run(queue.enqueue("work"))


def test_a_running_job_ends_before_the_application_does(store_url: str) -> None:
    app = FastAPI(
        lifespan=windrow_lifespan(
            store_url, handlers=[slow], worker={"concurrency": 2, "grace": 30}
        )
    )
    add_routes(app)
    STARTED.clear()
    with TestClient(app) as client:
        job_id: str = client.post("/jobs", params={"kind": "fastapi.slow"}).json()["id"]
        assert STARTED.wait(30)

    with Queue.sync(store_url) as queue:
        job: Any = queue.get(job_id)
        assert (job.state, job.result) == ("completed", "to the end")
        assert queue.workers() == []


def test_a_lifespan_of_ones_own_enters_ours(store_url: str) -> None:
    steps = []

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with windrow_lifespan(store_url)(app):
            steps.append(await get_queue_of(app).counts())
            yield
            steps.append(await get_queue_of(app).counts())

    app = FastAPI(lifespan=lifespan)
    add_routes(app)
    with TestClient(app) as client:
        client.post("/jobs", params={"kind": "work"})
    assert [sum(counts.values()) for counts in steps] == [0, 1]


def get_queue_of(app: FastAPI) -> Queue:
    queue: Queue = app.state.windrow_queue
    return queue


def test_an_application_without_a_queue_is_told_how_to_get_one() -> None:
    app = FastAPI()
    add_routes(app)
    with TestClient(app) as client, pytest.raises(ConfigError, match="lifespan=windrow_lifespan"):
        client.get("/jobs")


def test_errors_of_the_queue_are_answered_with_their_status(store_url: str) -> None:
    app = FastAPI(lifespan=windrow_lifespan(store_url, max_payload=100))
    add_routes(app)
    add_error_handlers(app)

    @app.get("/jobs/{job_id}")
    async def show(job_id: str, queue: CurrentQueue) -> str:
        return (await queue.wait(job_id, timeout=0)).state

    @app.post("/mismatch")
    async def mismatch(queue: CurrentQueue) -> None:
        await measured.enqueue(queue, {"width": "wide"})  # type: ignore[call-overload]

    @app.post("/full")
    async def full(queue: CurrentQueue) -> None:
        await queue.set_queue("narrow", max_depth=1)
        await queue.enqueue("work", queue="narrow")
        await queue.enqueue("work", queue="narrow")

    @app.get("/away")
    async def away() -> None:
        raise StoreUnavailable("cannot connect to postgresql://db.internal")

    with TestClient(app) as client:
        made = client.post("/jobs", params={"kind": "work"}).json()["id"]
        refused = client.post("/jobs", params={"kind": " "})
        waiting = client.get(f"/jobs/{made}")
        missing = client.get("/jobs/00000000-0000-7000-8000-000000000000")
        mismatched = client.post("/mismatch")
        narrow = client.post("/full")
        gone = client.get("/away")

    assert (refused.status_code, refused.json()["error"]) == (400, "InvalidJob")
    assert (missing.status_code, missing.json()["error"]) == (404, "JobNotFound")
    assert (mismatched.status_code, mismatched.json()["error"]) == (400, "PayloadMismatch")
    assert "$.width" in mismatched.json()["detail"]
    assert (waiting.status_code, waiting.headers["Retry-After"]) == (408, "1")
    assert (narrow.status_code, narrow.json()["error"]) == (429, "QueueFull")
    assert (gone.status_code, gone.json()["error"]) == (503, "StoreUnavailable")
    assert "db.internal" not in gone.text


def test_duplicate_is_answered_with_409(store_url: str) -> None:
    app = FastAPI(lifespan=windrow_lifespan(store_url))
    add_error_handlers(app)

    @app.post("/once")
    async def once(queue: CurrentQueue) -> None:
        await queue.enqueue("work", unique="once", on_conflict="reject")

    with TestClient(app) as client:
        assert [client.post("/once").status_code for _ in range(2)] == [200, 409]


def test_failed_runs_are_records_of_logging_with_event_and_fields(
    store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    @handler("fastapi.broken", max_attempts=1)
    async def broken(job: Job) -> None:
        raise ValueError("no such file")

    app = FastAPI(lifespan=windrow_lifespan(store_url, handlers=[broken]))
    add_routes(app)

    @app.get("/jobs/{job_id}")
    async def wait(job_id: str, queue: CurrentQueue) -> str:
        return (await queue.wait(job_id, timeout=30)).state

    with caplog.at_level(logging.INFO), TestClient(app) as client:
        job_id: str = client.post("/jobs", params={"kind": "fastapi.broken"}).json()["id"]
        assert client.get(f"/jobs/{job_id}").json() == "failed"
    events = {vars(record).get("event"): record for record in caplog.records}
    assert vars(events["job.failed"])["job_id"] == job_id
    assert {"worker.started", "worker.handlers", "worker.stopped"} <= events.keys()


def test_the_whole_application_of_the_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    guide = (ROOT / "docs/guides/fastapi.md").read_text("utf-8")
    code = guide.partition("## A whole application")[2].partition("```python\n")[2]
    (tmp_path / "shop_of_the_guide.py").write_text(code.partition("```")[0], "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    shop = import_module("shop_of_the_guide")
    urls = [f"https://images.example.org/{name}.png" for name in "ab"]
    with TestClient(shop.app) as client:
        group = client.post("/albums/hay", json=urls).json()["group"]
        assert client.post("/images", json={"url": urls[0]}).status_code == 202
        deadline = time.monotonic() + 30
        while (seen := client.get(f"/groups/{group}").json())["state"] == "active":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert seen == {"state": "completed", "pending": 0}
