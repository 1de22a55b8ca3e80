"""Windrow in a FastAPI application: the queue is opened and closed with it.

    app = FastAPI(lifespan=windrow_lifespan("sqlite:///jobs.db", handlers=[thumbnail]))

    @app.post("/thumbnails")
    async def order(url: str, queue: CurrentQueue) -> dict[str, str]:
        job = await queue.enqueue("thumbnail", {"url": url})

With a lifespan of your own, enter it there: `async with windrow_lifespan(url)(app): yield`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import ModuleType
from typing import Annotated, Any

from fastapi import Depends, FastAPI
from starlette.requests import HTTPConnection

from windrow.errors import ConfigError
from windrow.queue.queue import Queue
from windrow.worker.registry import Handler
from windrow.worker.worker import Worker

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def windrow_lifespan(
    url: str,
    *,
    handlers: Iterable[Handler | ModuleType] = (),
    worker: Mapping[str, Any] | None = None,
    **options: Any,
) -> Lifespan:
    """A lifespan with an open queue, for which `options` are those of `Queue.open`. With `handlers`
    a worker runs their jobs in the same process and event loop; `worker` are its options. When the
    application stops, running jobs may end within the worker's grace period."""
    chosen = list(handlers)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with Queue.open(url, **options) as queue:
            app.state.windrow_queue = queue
            if not chosen:
                yield
                return
            async with _working(Worker(queue, chosen, **(worker or {}))):
                yield

    return lifespan


def get_queue(connection: HTTPConnection) -> Queue:
    """The application's queue, of a request or a web socket: `Depends(get_queue)`."""
    queue = getattr(connection.app.state, "windrow_queue", None)
    if not isinstance(queue, Queue):
        raise ConfigError(
            "this application has no open queue: FastAPI(lifespan=windrow_lifespan(url))"
        )
    return queue


CurrentQueue = Annotated[Queue, Depends(get_queue)]


@asynccontextmanager
async def _working(worker: Worker) -> AsyncIterator[None]:
    running = asyncio.create_task(worker.run(), name="windrow worker")
    try:
        yield
    finally:
        worker.stop()
        await running
