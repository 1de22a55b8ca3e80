"""A server that speaks the protocol of chat completions, and says what a test wants it to say."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

KEY = "hay-key"


@dataclass
class Reply:
    content: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None  # of an error
    choice: Mapping[str, Any] = field(default_factory=dict)  # what is different about it


class Chat:
    """`replies` are given one after the other, then what `otherwise` makes of a request."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.replies: deque[Reply] = deque()
        self.otherwise: Callable[[dict[str, Any]], str] = lambda asked: "Hay."
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "Incorrect key"}}, status=401)
        asked = await request.json()
        self.asked.append(asked)
        reply = self.replies.popleft() if self.replies else Reply(self.otherwise(asked))
        if reply.status != 200:
            problem = {"error": {"message": reply.content, "code": reply.code}}
            return web.json_response(problem, status=reply.status, headers=reply.headers)
        message = {"role": "assistant", "content": reply.content}
        choice = {"index": 0, "message": message, "finish_reason": "stop"} | dict(reply.choice)
        body = {"id": "1", "object": "chat.completion", "model": asked["model"]}
        return web.json_response(body | {"choices": [choice]})


@asynccontextmanager
async def open_chat() -> AsyncIterator[Chat]:
    chat = Chat()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat.answer)
    async with TestServer(app, host="127.0.0.1") as server:
        chat.url = f"http://127.0.0.1:{server.port}/v1"
        yield chat


def page_of(asked: dict[str, Any]) -> str:
    """The text that was handed over, apart from the instructions."""
    return str(asked["messages"][1]["content"])


def as_json(**values: Any) -> str:
    return json.dumps(values)
