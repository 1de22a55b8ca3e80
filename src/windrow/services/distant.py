"""A queue that is looked at through a server (`windrow serve`) and not in its database.

What it says of itself is asked for again only when something has happened, which `GET /events`
tells, or when it is a few seconds old: workers that die make no event.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import msgspec

from windrow.errors import ConfigError, StoreUnavailable
from windrow.services.overview import Glance

OLD_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 30.0
FOLLOW_AGAIN_SECONDS: Final = 2.0


class Server:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url.rstrip("/")
        self._seen: Glance | None = None
        self._seen_at = 0.0
        self._has_news = True
        self.is_following = False

    async def glance(self) -> Glance:
        """Raises ConfigError if the key is not taken, and StoreUnavailable."""
        is_old = time.monotonic() > self._seen_at + OLD_SECONDS
        if self._seen is None or self._has_news or is_old or not self.is_following:
            self._has_news = False  # what happens while it answers is news again
            try:
                body = await self._ask("GET", "/queue/overview")
                self._seen = msgspec.json.decode(body, type=Glance)
            except BaseException:
                self._has_news = True
                raise
            self._seen_at = time.monotonic()
        return self._seen

    async def pause(self, name: str) -> None:
        await self._change(name, "pause")

    async def resume(self, name: str) -> None:
        await self._change(name, "resume")

    async def follow(self) -> None:
        """Hear what happens, for ever; while the server is away, try again."""
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                await self._listen()
            self.is_following = False
            await asyncio.sleep(FOLLOW_AGAIN_SECONDS)

    async def _listen(self) -> None:
        forever = aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_SECONDS)
        async with self._session.get(f"{self.url}/events", timeout=forever) as response:
            response.raise_for_status()
            async for said in response.content.iter_any():
                # Beats are comments; they tell that it is quiet.
                self._has_news = self._has_news or not said.startswith(b":")
                self.is_following = True

    async def _change(self, name: str, verb: str) -> None:
        await self._ask("POST", f"/queue/queues/{quote(name, safe='')}/{verb}")
        self._has_news = True

    async def _ask(self, method: str, path: str) -> bytes:
        limit = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        try:
            async with self._session.request(method, f"{self.url}{path}", timeout=limit) as answer:
                body = await answer.read()
        except aiohttp.InvalidURL as error:
            raise ConfigError(f"{self.url!r} is no address of a server") from error
        except (aiohttp.ClientError, TimeoutError) as error:
            said = str(error) or "it does not answer"
            raise StoreUnavailable(f"{self.url} cannot be reached: {said}") from error
        if answer.status in (401, 403):
            raise ConfigError(f"{self.url} does not take the key for this: {_error(body)}")
        if answer.status != 200:
            raise StoreUnavailable(f"{self.url} answers {answer.status}: {_error(body)}")
        return body


@asynccontextmanager
async def open_server(url: str, key: str = "") -> AsyncIterator[Server]:
    """A server by its address, followed while this is open."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with aiohttp.ClientSession(headers=headers) as session:
        server = Server(session, url)
        following = asyncio.create_task(server.follow())
        try:
            yield server
        finally:
            following.cancel()
            await asyncio.wait([following])


def _error(body: bytes) -> str:
    try:
        said: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return "not in the words of Windrow"
    return str(said.get("error", said)) if isinstance(said, dict) else str(said)
