"""A TCP proxy between programs and their database, which passes on, or fails as it is told to.

async with Proxy("127.0.0.1", port) as proxy:
    proxy.delay = 0.2     # every piece comes late
    proxy.halve()         # of the next piece half arrives, then the connection is cut
    proxy.cut()           # all connections are cut; new ones are taken
    proxy.refuse(True)    # new ones are cut at once, too
    proxy.stall(True)     # pieces are swallowed: nobody hears anything any more
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self

PIECE = 64 * 1024


class Proxy:
    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self.delay = 0.0
        self.cuts = 0
        self._is_refusing = False
        self._is_stalling = False
        self._halves = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def cut(self) -> None:
        """Reset every connection."""
        for writer in self._writers:
            writer.transport.abort()
            self.cuts += 1
        self._writers.clear()

    def refuse(self, is_refusing: bool) -> None:
        self._is_refusing = is_refusing
        self.cut()

    def stall(self, is_stalling: bool) -> None:
        """What comes is swallowed. At the end of it the connections are cut: what they miss cannot
        be sent any more."""
        self._is_stalling = is_stalling
        if not is_stalling:
            self.cut()

    def halve(self) -> None:
        self._halves += 1

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_refusing:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection(*self._to)
        except OSError:
            writer.transport.abort()
            return
        for source, target in ((reader, back), (there, writer)):
            self._writers.add(target)
            task = asyncio.create_task(self._pass_on(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(PIECE):
                if self.delay:
                    await asyncio.sleep(self.delay)
                if self._is_stalling:
                    continue
                if self._halves and len(piece) > 1:
                    self._halves -= 1
                    self.cuts += 1
                    target.write(piece[: len(piece) // 2])
                    with suppress(ConnectionError):
                        await target.drain()
                    break
                target.write(piece)
                await target.drain()
        except ConnectionError:  # cut, by us or by one of the two
            pass
        finally:
            self._writers.discard(target)
            target.transport.abort() if self._halves else target.close()
