"""The WebSocket of a crawl or batch: what there is, then each document as it comes, then the end.

    {"type": "catchup", "data": <as GET, with all documents>}
    {"type": "document", "data": <document>}
    {"type": "status", "data": <as GET, without documents>}
    {"type": "done", "data": <as GET, without documents>}  or  {"type": "error", "error": …}

Documents are pushed when pages end. The status follows each change, and each second: a client that
hears nothing for a while asks by GET, and one that learns of the end there does not wait for the
last documents. The end is a message, because that is what clients wait for; then it is closed.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Any, Final

import msgspec
from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect

from windrow.api.callers import Caller, identify
from windrow.api.errors import ApiError, to_api_error
from windrow.api.firecrawl.progress import BATCHES, CRAWLS, Verb, describe, documents, find
from windrow.errors import WindrowError
from windrow.ids import is_id, plain_id
from windrow.services.broadcasting import Broadcast, TooManyListeners, Wanted
from windrow.services.web import Crawl, NewPages

router = APIRouter()

LOOK_SECONDS: Final = 0.9  # shorter than any client's pause between two looks of its own
TOGETHER_SECONDS: Final = 0.03  # pages that end within this are read together
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
    crawl = await find(caller, verb, crawl_id)
    wanted = Wanted(tenant=caller.tenant, group=crawl_id)
    changed = asyncio.Event()
    listening = asyncio.create_task(_listen(socket.app.state.broadcast, wanted, changed))
    leaving = asyncio.create_task(_until_left(socket))
    try:
        await _push(socket, caller, verb, crawl, changed, leaving)
    finally:
        listening.cancel()
        leaving.cancel()
        await asyncio.gather(listening, leaving, return_exceptions=True)


async def _push(
    socket: WebSocket,
    caller: Caller,
    verb: Verb,
    crawl: Crawl,
    changed: asyncio.Event,
    leaving: asyncio.Task[None],
) -> None:
    """Send what there is and then what comes. How far the crawl is is read before its pages are: of
    one that is over all are there."""
    pages = NewPages(caller.queue, crawl.id)
    body = {"success": True, **describe(crawl), "data": documents(await pages.read())}
    await _send(socket, {"type": "catchup", "data": body})
    while _goes_on(crawl):
        await _wait(changed, leaving)
        crawl = await find(caller, verb, crawl.id)
        for document in documents(await pages.read()):
            await _send(socket, {"type": "document", "data": document})
        if crawl.status == "scraping":
            await _send(socket, {"type": "status", "data": {**describe(crawl), "data": []}})
    await _send(socket, _end(crawl))


def _goes_on(crawl: Crawl) -> bool:
    """Also while the last pages of a cancelled one are in flight."""
    return crawl.status == "scraping" or (crawl.status == "cancelled" and crawl.pending > 0)


async def _listen(broadcast: Broadcast, wanted: Wanted, changed: asyncio.Event) -> None:
    """Note that something has happened. Where no more may listen, the regular looks have to do."""
    with suppress(TooManyListeners):
        async with aclosing(broadcast.listen(wanted)) as happened:
            async for _ in happened:
                changed.set()


async def _wait(changed: asyncio.Event, leaving: asyncio.Task[None]) -> None:
    """Wait until something happens, or for a second. Raises WebSocketDisconnect."""
    waiting = asyncio.create_task(changed.wait())
    try:
        await asyncio.wait(
            (waiting, leaving), timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        waiting.cancel()
    if leaving.done():
        raise WebSocketDisconnect
    if changed.is_set():
        await asyncio.sleep(TOGETHER_SECONDS)
    changed.clear()


async def _until_left(socket: WebSocket) -> None:
    """Wait until the other side has left. What it says is not listened to."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        continue


def _end(crawl: Crawl) -> dict[str, Any]:
    if crawl.status == "failed":
        return {"type": "error", "error": crawl.error}
    # Without documents: they would be there twice.
    return {"type": "done", "data": {**describe(crawl), "data": []}}


async def _send(socket: WebSocket, message: dict[str, Any]) -> None:
    await socket.send_text(msgspec.json.encode(message).decode())
