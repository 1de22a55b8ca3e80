"""The WebSocket of a batch without its regular looks: what is sent is sent because it happened."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI

from tests.web.site import Site
from tests.web.test_cancel import working
from windrow import Queue
from windrow.api.app import create_app
from windrow.api.firecrawl import watch
from windrow.services import web
from windrow.settings import Settings

# The broadcast wakes those who listen every 15 s even if nothing happens.
PATIENCE = 10.0


@pytest.fixture
def app(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    monkeypatch.setattr(watch, "LOOK_SECONDS", 3600.0)
    return create_app(queue, Settings())


@asynccontextmanager
async def watching(app: FastAPI, path: str) -> AsyncIterator[asyncio.Queue[dict[str, Any]]]:
    """The messages of a WebSocket."""
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    said.put_nowait({"type": "websocket.connect"})
    scope = {
        "type": "websocket",
        "scheme": "ws",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "subprotocols": [],
    }

    async def hear(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "websocket.send":
            await messages.put(json.loads(message["text"]))

    serving = asyncio.create_task(app(scope, said.get, hear))
    try:
        yield messages
    finally:
        said.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await serving


async def test_n8_a_document_is_pushed_when_its_page_ends(
    queue: Queue, site: Site, app: FastAPI
) -> None:
    answers = threading.Event()
    site.page("/", until=answers)
    batch = await web.start_batch(queue, [f"{site.url}/"])
    path = f"/v2/batch/scrape/{batch.id}"
    async with working(queue), watching(app, path) as first, watching(app, path) as second:
        for messages in (first, second):
            assert (await messages.get())["type"] == "catchup"
        answers.set()
        async with asyncio.timeout(PATIENCE):
            for messages in (first, second):
                types = [(await messages.get())["type"]]
                while types[-1] != "done":
                    types.append((await messages.get())["type"])
                assert [one for one in types if one != "status"] == ["document", "done"]
