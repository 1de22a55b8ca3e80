"""An endpoint for embeddings, as far as its protocol goes, that fails as it is told to.

Its vectors say what they are of: the first number is the length of the text.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from aiohttp import web

Fault = Callable[[dict[str, Any]], web.StreamResponse | None]
DIMENSION = 4


class EmbeddingsServer:
    """`faults` are asked in turn, once each; `rule` with every request that no fault answers."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[Fault] = []
        self.rule: Fault | None = None
        self.breaks_off = False
        self.dimension = DIMENSION
        self.encodings: tuple[str, ...] = ("base64", "float")
        self.in_flight = 0
        self.most_in_flight = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            if self.breaks_off:
                return await self._break_off(request)
            fault = self.faults.pop(0) if self.faults else self.rule
            return (fault and fault(body)) or self._embeddings(body)
        finally:
            self.in_flight -= 1

    async def _break_off(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "5000"})
        await response.prepare(request)
        await response.write(b'{"data": [')
        assert request.transport is not None
        request.transport.abort()
        return response

    def _embeddings(self, body: dict[str, Any]) -> web.StreamResponse:
        encoding = body.get("encoding_format", "float")
        if encoding not in self.encodings:
            return refuse(400, "encoding_format is not known here")
        length = body.get("dimensions", self.dimension)
        rows = [np.array([len(text), *range(1, length)], "<f4") for text in body["input"]]
        data = [
            {
                "object": "embedding",
                "index": place,
                "embedding": base64.b64encode(row.tobytes()).decode()
                if encoding == "base64"
                else row.tolist(),
            }
            for place, row in enumerate(rows)
        ]
        # Nothing says that rows come in order.
        return web.json_response({"object": "list", "data": data[::-1], "model": body["model"]})


def refuse(status: int, message: str, **headers: str) -> web.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response({"error": {"message": message}}, status=status, headers=named)


@asynccontextmanager
async def running() -> AsyncIterator[EmbeddingsServer]:
    server = EmbeddingsServer()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/embeddings", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert runner.addresses
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
