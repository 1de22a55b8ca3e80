"""`/ui/events`: that something has happened, for pages that are open. What it was they ask for
themselves; what happens within a second is told as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Final

from starlette.responses import Response, StreamingResponse

from windrow.services.broadcasting import Beat, Broadcast, TooManyListeners, Wanted
from windrow.web.pages import Look

BEAT_SECONDS: Final = 15.0
REST_SECONDS: Final = 1.0


async def follow(look: Look) -> Response:
    broadcast: Broadcast = look.request.app.state.broadcast
    stream = tell(broadcast, Wanted(tenant=look.viewer.tenant))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def tell(
    broadcast: Broadcast, wanted: Wanted, *, rest: float = REST_SECONDS
) -> AsyncIterator[bytes]:
    """Also of what happens while it rests, when it has rested. When it begins to listen, it tells
    of whatever may have happened before."""
    happened = asyncio.Event()
    listening = asyncio.create_task(_listen(broadcast, wanted, happened))
    try:
        yield b"retry: 3000\n\n"
        while not listening.done():
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    await happened.wait()
            except TimeoutError:
                yield b": beat\n\n"
                continue
            happened.clear()
            yield b"event: change\ndata: \n\n"
            await asyncio.sleep(rest)
    finally:
        listening.cancel()


async def _listen(broadcast: Broadcast, wanted: Wanted, happened: asyncio.Event) -> None:
    try:
        # With too many listeners, or when the server stops, it ends: the page asks again later.
        with suppress(TooManyListeners):
            async with aclosing(broadcast.listen(wanted, None, beat=BEAT_SECONDS)) as events:
                await anext(events)  # a beat: from now on
                happened.set()
                async for one in events:
                    if not isinstance(one, Beat):
                        happened.set()
    finally:
        happened.set()
