"""Open pages are told that something happened, and of nothing too few."""

from __future__ import annotations

import asyncio

from windrow import Queue
from windrow.services.broadcasting import Broadcast, Wanted
from windrow.web.pages import tell

CHANGE = b"event: change\ndata: \n\n"


async def test_what_happens_while_it_rests_is_told_afterwards(store_url: str) -> None:
    async with Queue.open(store_url) as queue:
        broadcast = Broadcast(queue)
        told = tell(broadcast, Wanted(), rest=0.2)
        assert (await anext(told)).startswith(b"retry")
        async with asyncio.timeout(30):
            assert await anext(told) == CHANGE  # it listens
            await queue.enqueue("once", {})
            assert await anext(told) == CHANGE
            second = asyncio.ensure_future(anext(told))
            await asyncio.sleep(0)
            await queue.enqueue("again", {})
            assert await second == CHANGE
            broadcast.close()
            async for said in told:
                assert said == CHANGE
