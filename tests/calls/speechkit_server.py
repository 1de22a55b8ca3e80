"""A server that keeps to the protocol of SpeechKit v2, counts what is billed, and fails as told."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

KEY = "hay-key"
GRPC = {400: 3, 401: 16, 403: 7, 404: 5, 429: 8}
How = Literal["refuse", "garbage", "hang", "drop"]


@dataclass
class Fault:
    """What becomes of one request. A start is billed before its answer is lost."""

    how: How = "refuse"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None  # of an error in the words of OpenAI, which gateways speak


class SpeechKitServer:
    """Operations are done after `polls_needed` polls, with `said`, or with `error`."""

    def __init__(self) -> None:
        self.billed: Counter[str] = Counter()  # starts by the key of their audio
        self.starts: list[dict[str, Any]] = []
        self.polls: Counter[str] = Counter()
        self.operations: dict[str, str] = {}
        self.polls_needed = 0
        self.said: list[dict[str, Any]] | None = [chunk("The invoice was sent on Monday.", 0, 2)]
        self.error: dict[str, Any] | None = None
        self.is_error_early = False
        self.faults: dict[str, deque[Fault]] = {"start": deque(), "poll": deque()}
        self.budget = {"start": 500, "poll": 2500}  # of an hour
        self.asked: Counter[str] = Counter()
        self.tokens: set[str] = set()
        self.exchanged: list[dict[str, Any]] = []
        self.token_seconds = 43_200.0
        self.public_key: rsa.RSAPublicKey | None = None
        self.url = ""
        # It reads the bucket as somebody who may.
        self.signed: Callable[[str], str] = lambda uri: uri
        self.reached = asyncio.Event()  # a request has come
        self.hanging: list[asyncio.Event] = []

    def fail(self, what: str, *faults: Fault) -> None:
        self.faults[what].extend(faults)

    async def start(self, request: web.Request) -> web.StreamResponse:
        if (refused := self._refused("start", request)) is not None:
            return refused
        body = await request.json()
        specification = body["config"]["specification"]
        if specification["audioEncoding"] == "OGG_OPUS" and "audioChannelCount" in specification:
            return refusal(400, "audio_channel_count is for LINEAR16_PCM only")
        uri = body.get("audio", {}).get("uri", "")
        if not await self._is_there(uri):
            return refusal(400, f"no audio at {uri}")
        self.starts.append(body)
        self.billed[urlsplit(uri).path] += 1
        operation = f"op-{len(self.starts)}"
        self.operations[operation] = uri
        return await self._answer("start", request, self._operation(operation, done=False))

    async def poll(self, request: web.Request) -> web.StreamResponse:
        if (refused := self._refused("poll", request)) is not None:
            return refused
        operation = request.match_info["id"]
        if operation not in self.operations:
            return refusal(404, f"operation {operation} not found")
        self.polls[operation] += 1
        is_done = self.polls[operation] > self.polls_needed
        body = self._operation(operation, done=is_done)
        if self.error is not None and (is_done or self.is_error_early):
            body["error"] = self.error
        elif is_done:
            kind = "type.googleapis.com/yandex.cloud.ai.stt.v2.LongRunningRecognitionResponse"
            body["response"] = {"@type": kind}
            if self.said is not None:
                body["response"]["chunks"] = self.said
        return await self._answer("poll", request, body)

    async def exchange(self, request: web.Request) -> web.Response:
        """A token for one that a service account has signed."""
        head, body, signature = (await request.json())["jwt"].split(".")
        assert self.public_key is not None
        pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
        signed = f"{head}.{body}".encode()
        self.public_key.verify(_decoded(signature), signed, pss, hashes.SHA256())
        self.exchanged.append({**json.loads(_decoded(head)), **json.loads(_decoded(body))})
        token = f"t1.{len(self.exchanged)}"
        self.tokens = {token}
        ends = datetime.now(UTC) + timedelta(seconds=self.token_seconds)
        return web.json_response(
            {"iamToken": token, "expiresAt": ends.isoformat().replace("+00:00", "Z")}
        )

    async def metadata(self, request: web.Request) -> web.Response:
        if request.headers.get("Metadata-Flavor") != "Google":
            return web.Response(status=403)
        self.tokens = {"from-metadata"}
        body = {"access_token": "from-metadata", "expires_in": 40_000, "token_type": "Bearer"}
        return web.json_response(body)

    def forget(self) -> None:
        """Begin to count anew."""
        self.billed.clear()
        self.polls.clear()

    def let_go(self) -> None:
        for one in self.hanging:
            one.set()

    async def _is_there(self, uri: str) -> bool:
        if self.faults["start"] and self.faults["start"][0].how == "hang":
            return True  # whoever asks has little patience
        async with aiohttp.ClientSession() as session, session.get(self.signed(uri)) as found:
            return found.status == 200 and (await found.read())[:4] == b"OggS"

    def _refused(self, what: str, request: web.Request) -> web.Response | None:
        self.reached.set()
        said = request.headers.get("Authorization", "")
        kind, _, secret = said.partition(" ")
        if not (said == f"Api-Key {KEY}" or (kind == "Bearer" and secret in self.tokens)):
            return refusal(401, "Unauthorized")
        fault = self.faults[what][0] if self.faults[what] else None
        if fault is not None and fault.how == "refuse":
            self.faults[what].popleft()
            return refusal(fault.status, f"told to answer with {fault.status}", fault)
        if self.asked[what] >= self.budget[what]:
            return refusal(429, "quota limit exceeded")
        self.asked[what] += 1
        return None

    async def _answer(
        self, what: str, request: web.Request, body: dict[str, Any]
    ) -> web.StreamResponse:
        fault = self.faults[what].popleft() if self.faults[what] else None
        if fault is None:
            return web.json_response(body)
        if fault.how == "hang":
            self.hanging.append(asyncio.Event())
            await self.hanging[-1].wait()
        if fault.how == "drop":
            assert request.transport is not None
            request.transport.abort()
        return web.Response(text="<html>it works</html>")

    def _operation(self, id: str, *, done: bool) -> dict[str, Any]:
        at = "2026-01-01T00:00:00Z"
        return {"done": done, "id": id, "createdAt": at, "createdBy": "me", "modifiedAt": at}


def chunk(text: str, start: float, end: float, channel: str = "1") -> dict[str, Any]:
    words = [
        {"startTime": f"{start}s", "endTime": f"{end}s", "word": text, "confidence": 1},
    ]
    return {
        "alternatives": [{"text": text, "confidence": 1, "words": words}],
        "channelTag": channel,
    }


def refusal(status: int, why: str, fault: Fault | None = None) -> web.Response:
    body: dict[str, Any] = {"code": GRPC.get(status, 13), "message": why, "details": []}
    if fault is not None and fault.code is not None:
        body = {"error": {"message": why, "code": fault.code}}
    return web.json_response(body, status=status, headers=fault.headers if fault else None)


@asynccontextmanager
async def open_speechkit() -> AsyncIterator[SpeechKitServer]:
    server = SpeechKitServer()
    app = web.Application()
    app.router.add_post("/speech/stt/v2/longRunningRecognize", server.start)
    app.router.add_get("/operations/{id}", server.poll)
    app.router.add_post("/iam/v1/tokens", server.exchange)
    app.router.add_get("/metadata", server.metadata)
    async with TestServer(app, host="127.0.0.1") as running:
        server.url = f"http://127.0.0.1:{running.port}"
        yield server
        server.let_go()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
