"""A FastAPI application with a queue, and with a worker in the same process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI, WebSocket
from fastapi.testclient import TestClient

from windrow import Job, Queue, handler
from windrow.errors import ConfigError, StoreUnavailable
from windrow.integrations.fastapi import CurrentQueue, get_queue, windrow_lifespan

STARTED = threading.Event()


@handler("fastapi.slow")
async def slow(job: Job) -> str:
    STARTED.set()
    await asyncio.sleep(0.3)
    return "to the end"


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
