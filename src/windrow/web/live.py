"""`/ui/events`: that something has happened, for pages that are open. What it was they ask for
themselves; many things in a row are told as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

from starlette.responses import Response, StreamingResponse

from windrow.services.broadcasting import Beat, Broadcast, TooManyListeners, Wanted
from windrow.web.pages import Look

BEAT_SECONDS: Final = 15.0
REST_SECONDS: Final = 1.0


async def follow(look: Look) -> Response:
    broadcast: Broadcast = look.request.app.state.broadcast
    wanted = Wanted(tenant=look.viewer.tenant)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = _stream(broadcast, wanted)
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _stream(broadcast: Broadcast, wanted: Wanted) -> AsyncIterator[bytes]:
    yield b"retry: 3000\n\n"
    while True:
        # Listened to anew each time, from now on: what came while it rested was told already.
        events = broadcast.listen(wanted, None, beat=BEAT_SECONDS)
        async with aclosing(events):
            try:
                async for one in events:
                    if isinstance(one, Beat):
                        yield b": beat\n\n"
                        continue
                    yield b"event: change\ndata: \n\n"
                    break
                else:
                    return  # the server stops
            except TooManyListeners:
                return
        await asyncio.sleep(REST_SECONDS)
