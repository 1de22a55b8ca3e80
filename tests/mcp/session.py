"""A client of the SDK that stays connected for many tests, in a thread of its own: what it opens
must be closed by the task that opened it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any, Self

from mcp import Client


class Session:
    def __init__(self, server: Any) -> None:
        self._server = server
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()))
        self._ready: Future[None] = Future()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.result(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def list_tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in self._do(self._client.list_tools()).tools}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers, which must be well."""
        result = self._do(self._client.call_tool(tool, arguments))
        assert not result.is_error, result.content
        answer: dict[str, Any] = result.structured_content
        return answer

    def fail(self, tool: str, **arguments: Any) -> str:
        """What a tool says is wrong."""
        result = self._do(self._client.call_tool(tool, arguments))
        assert result.is_error, result.structured_content
        said: str = result.content[0].text
        return said

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(90)

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        try:
            async with Client(self._server) as self._client:
                self._ready.set_result(None)
                await self._done.wait()
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)
