"""Servers that follow the protocols of ScrapeCreators and of OpenAI: they count what they bill, and
go wrong as a test wants them to."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

KEY = "hay-key"
TIKTOK = "https://www.tiktok.com/@farm/video/7"
INSTAGRAM = "https://www.instagram.com/reel/C7/"
YOUTUBE = "https://www.youtube.com/watch?v=hay"
SILENT = "https://www.youtube.com/watch?v=silent"
GONE = "https://www.youtube.com/watch?v=gone"
SAID = "The harvester needs a new belt. I will order the belt tomorrow."
CHAT = {"title": "A belt", "summary": "It broke.", "topics": ["belts"], "action_items": ["Order"]}


@dataclass
class Fault:
    """An answer that goes wrong; `hangs` is none at all."""

    status: int = 500
    body: Any = field(default_factory=lambda: {"error": {"message": "trouble"}})
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False

    async def answer(self) -> web.Response:
        if self.hangs:
            await asyncio.Event().wait()
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return web.Response(text=text, status=self.status, headers=self.headers)


class Standin:
    """`faults` are given one after the other to whoever asks next."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: Counter[str] = Counter()  # by path
        self.billed: Counter[str] = Counter()  # by path and what was asked about
        self.faults: deque[Fault] = deque()

    async def fault(self, request: web.Request) -> web.Response | None:
        self.asked[request.path] += 1
        return await self.faults.popleft().answer() if self.faults else None


class ScrapeCreatorsStandin(Standin):
    async def answer(self, request: web.Request) -> web.Response:
        if (wrong := await self.fault(request)) is not None:
            return wrong
        if request.headers.get("x-api-key") != KEY:
            return web.json_response({"success": False, "message": "bad key"}, status=401)
        url = request.query.get("url", "")
        if not url:
            return web.json_response({"success": False, "error": "url is missing"}, status=400)
        if url == GONE:
            return web.json_response({"success": False, "message": "not found"}, status=404)
        self.billed[f"{request.path} {url}"] += 1
        return web.json_response(_scraped(request.path, url))


def _scraped(path: str, url: str) -> dict[str, Any]:
    cues = "WEBVTT\n\n1\n00:00:00.000 --> 00:00:02.000\n" + SAID.replace(
        ". ", ".\n\n2\n00:00:02.000 --> 00:00:04.000\n"
    )
    lines = [
        {"text": "The harvester needs a new belt.", "startMs": "0", "endMs": "2000"},
        {"text": "I will order the belt tomorrow.", "startMs": 2000, "endMs": 4000},
    ]
    media = {
        "edge_media_to_caption": {"edges": [{"node": {"text": "A reel\nabout belts"}}]},
        "owner": {"username": "farm"},
        "taken_at_timestamp": 1_700_000_000,
    }
    bodies: dict[str, dict[str, Any]] = {
        "/v1/tiktok/video/transcript": {"success": True, "id": "7", "transcript": cues},
        "/v2/tiktok/video": {
            "aweme_detail": {"desc": "A clip", "statistics": {"play_count": 12}},
        },
        "/v2/instagram/media/transcript": {
            "success": True,
            "transcripts": [{"id": "1", "shortcode": "C7", "text": SAID}, {"text": None}],
        },
        "/v1/instagram/post": {"data": {"xdt_shortcode_media": media}},
        "/v1/youtube/video/transcript": {"transcript": None if url == SILENT else lines},
        "/v1/youtube/video": {
            "title": "The belt",
            "description": "Of a harvester",
            "channel": {"title": "Farm"},
            "viewCountInt": 12,
            "durationMs": "4000",
        },
    }
    return bodies[path]


class OpenAIStandin(Standin):
    """Chat and embeddings, each with faults of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.chat: Any = CHAT
        self.embedding_faults: deque[Fault] = deque()

    async def answer_chat(self, request: web.Request) -> web.Response:
        if (wrong := await self.fault(request)) is not None:
            return wrong
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "Incorrect key"}}, status=401)
        self.billed["chat"] += 1
        content = self.chat if isinstance(self.chat, str) else json.dumps(self.chat)
        message = {"role": "assistant", "content": content, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        body = {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}
        return web.json_response(body)

    async def answer_embeddings(self, request: web.Request) -> web.Response:
        self.asked[request.path] += 1
        if self.embedding_faults:
            return await self.embedding_faults.popleft().answer()
        asked = await request.json()
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        self.billed["embeddings"] += 1
        packed = base64.b64encode(struct.pack("<4f", 1.0, 0.5, 0.25, 0.0)).decode()
        is_packed = asked.get("encoding_format") == "base64"
        vector: Any = packed if is_packed else [1.0, 0.5, 0.25, 0.0]
        data = [{"object": "embedding", "index": n, "embedding": vector} for n in range(len(texts))]
        return web.json_response({"object": "list", "data": data, "model": asked["model"]})


@asynccontextmanager
async def open_scrapecreators() -> AsyncIterator[ScrapeCreatorsStandin]:
    standin = ScrapeCreatorsStandin()
    app = web.Application()
    app.router.add_get("/{path:.*}", standin.answer)
    async with TestServer(app, host="127.0.0.1") as server:
        standin.url = f"http://127.0.0.1:{server.port}"
        yield standin


@asynccontextmanager
async def open_openai() -> AsyncIterator[OpenAIStandin]:
    standin = OpenAIStandin()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", standin.answer_chat)
    app.router.add_post("/v1/embeddings", standin.answer_embeddings)
    async with TestServer(app, host="127.0.0.1") as server:
        standin.url = f"http://127.0.0.1:{server.port}/v1"
        yield standin
