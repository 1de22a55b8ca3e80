"""Windrow in a FastAPI application: the queue is opened and closed with it.

    app = FastAPI(lifespan=windrow_lifespan("sqlite:///jobs.db", handlers=[thumbnail]))

    @app.post("/thumbnails")
    async def order(url: str, queue: CurrentQueue) -> dict[str, str]:
        job = await queue.enqueue("thumbnail", {"url": url})

    add_error_handlers(app)  # InvalidJob is answered with 400, JobNotFound with 404

With a lifespan of your own, enter it there: `async with windrow_lifespan(url)(app): yield`.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import ModuleType
from typing import Annotated, Any, Unpack

from fastapi import Depends, FastAPI
from fastapi.responses import JSONResponse
from starlette.requests import HTTPConnection, Request

from windrow.api.errors import public_message, status_of
from windrow.errors import ConfigError, WindrowError
from windrow.queue.queue import OpenOptions, Queue
from windrow.worker.registry import Handler
from windrow.worker.worker import Worker

logger = logging.getLogger(__name__)

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def windrow_lifespan(
    url: str,
    *,
    handlers: Iterable[Handler | ModuleType] = (),
    worker: Mapping[str, Any] | None = None,
    **options: Unpack[OpenOptions],
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


def add_error_handlers(app: FastAPI) -> None:
    """Answer what endpoints let through of `windrow.errors` with the status of the HTTP API and
    `{"detail": message, "error": name}`; a transient one with `Retry-After`. Messages about the
    database are logged and not sent."""
    app.add_exception_handler(WindrowError, _answer)


async def _answer(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, WindrowError):
        raise error
    name = type(error).__name__
    status, _ = status_of(error)
    if status >= 500:
        logger.error("a request failed: %s: %s", name, error)
    wait = {"Retry-After": str(math.ceil(error.retry_after or 1))} if error.transient else None
    return JSONResponse({"detail": public_message(error), "error": name}, status, wait)


@asynccontextmanager
async def _working(worker: Worker) -> AsyncIterator[None]:
    running = asyncio.create_task(worker.run(), name="windrow worker")
    try:
        yield
    finally:
        worker.stop()
        await running
