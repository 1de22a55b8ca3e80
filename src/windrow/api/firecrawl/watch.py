"""The WebSocket of a crawl or batch: what there is, then each document as it comes, then the end.

    {"type": "catchup", "data": <as GET, with all documents>}
    {"type": "document", "data": <document>}
    {"type": "done"}  or  {"type": "error", "error": …}

The end is a message, because that is what clients wait for; then it is closed.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect

from windrow.api.callers import Caller, identify
from windrow.api.errors import ApiError, to_api_error
from windrow.api.firecrawl.progress import BATCHES, CRAWLS, Verb, describe, documents, find
from windrow.errors import WindrowError
from windrow.queue.ids import is_id, plain_id
from windrow.services.web import Crawl, NewPages

router = APIRouter()

LOOK_SECONDS: Final = 1.0
DONE: Final = 1000
CLOSE_CODES: Final = {401: 3000, 403: 3003, 404: 1008}
BROKEN: Final = 1011


@router.websocket(CRAWLS.path + "/{crawl_id}")
async def watch_crawl(socket: WebSocket, crawl_id: str) -> None:
    """The documents of a crawl as they come, then a message `done`."""
    await _serve(socket, CRAWLS, crawl_id)


@router.websocket(BATCHES.path + "/{crawl_id}")
async def watch_batch(socket: WebSocket, crawl_id: str) -> None:
    """The documents of a batch as they come, then a message `done`."""
    await _serve(socket, BATCHES, crawl_id)


async def _serve(socket: WebSocket, verb: Verb, crawl_id: str) -> None:
    await socket.accept()
    try:
        caller = Caller(socket.app.state.queue, await identify(socket))
        if not is_id(crawl_id):
            raise ApiError(404, "NOT_FOUND", "Job not found")
        await _watch(socket, caller, verb, plain_id(crawl_id))
    except WebSocketDisconnect:
        return  # nobody looks any more
    except (ApiError, WindrowError) as error:
        told = error if isinstance(error, ApiError) else to_api_error(error)
        await _send(socket, {"type": "error", "error": told.body["error"]})
        await socket.close(CLOSE_CODES.get(told.status, BROKEN))
    else:
        await socket.close(DONE)


async def _watch(socket: WebSocket, caller: Caller, verb: Verb, crawl_id: str) -> None:
    # First how far it is, then the pages: of one that is over all are there.
    crawl = await find(caller, verb, crawl_id)
    pages = NewPages(caller.queue, crawl_id)
    body = {"success": True, **describe(crawl), "data": documents(await pages.read())}
    await _send(socket, {"type": "catchup", "data": body})
    while crawl.status == "scraping":
        if await _is_left(socket):
            raise WebSocketDisconnect
        crawl = await find(caller, verb, crawl_id)
        for document in documents(await pages.read()):
            await _send(socket, {"type": "document", "data": document})
    await _send(socket, _end(crawl))


def _end(crawl: Crawl) -> dict[str, Any]:
    if crawl.status == "failed":
        return {"type": "error", "error": crawl.error}
    return {"type": "done"}  # without data: the documents would be there twice


async def _is_left(socket: WebSocket) -> bool:
    """Wait a moment; whether the other side left meanwhile. What it says is not listened to."""
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            while (await socket.receive())["type"] != "websocket.disconnect":
                continue
    except TimeoutError:
        return False
    return True


async def _send(socket: WebSocket, message: dict[str, Any]) -> None:
    await socket.send_text(msgspec.json.encode(message).decode())
