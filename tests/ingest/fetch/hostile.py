"""A server that answers with whatever bytes it is told to, true HTTP or not.

It runs in a thread with a loop of its own, so that one serves all tests of a module.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
import struct
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

Act = Callable[["Visit"], Awaitable[None]]


@dataclass
class Visit:
    """One request, and the way to answer it."""

    path: str
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Break the connection off, as a crashed server does."""
        raw: socket.socket = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@dataclass
class HostileServer:
    tls: ssl.SSLContext | None = None
    port: int = 0
    visits: dict[str, list[dict[str, str]]] = field(default_factory=lambda: defaultdict(list))
    _acts: dict[str, Act] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def serves(self, answer: bytes | Act, path: str | None = None) -> str:
        """A URL with this answer: bytes to send as they are, or something to do."""
        path = path or f"/{next(self._numbers)}"
        self._acts[path] = _sends(answer) if isinstance(answer, bytes) else answer
        return f"{self.origin}{path}"

    @property
    def origin(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def seen(self, url: str) -> list[dict[str, str]]:
        """The headers of every request for a URL."""
        return self.visits["/" + url.split("/", 3)[3]]

    def _run(self, started: threading.Event) -> None:
        self._loop.run_until_complete(self._serve(started))
        self._loop.close()

    async def _serve(self, started: threading.Event) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._meet, "127.0.0.1", self.port, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._stop.wait()
        server.close()
        here = asyncio.current_task()
        rest = [task for task in asyncio.all_tasks() if task is not here]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while first := await reader.read(1):
                if first == b"\x16":  # the hello of TLS
                    writer.write(page(b"", status="400 Bad Request"))
                    return
                head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                top, *lines = head.strip().split("\r\n")
                path = top.split(" ")[1]
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in lines)
                }
                self.visits[path].append(headers)
                await self._acts[path](Visit(path, headers, reader, writer))
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # the other side has gone, as it may
        finally:
            writer.close()


def page(
    body: bytes = b"<p>hello</p>",
    *headers: str,
    status: str = "200 OK",
    content_type: str = "text/html; charset=utf-8",
) -> bytes:
    """A well-formed answer."""
    said = [f"Content-Type: {content_type}"] if content_type else []
    lines = [f"HTTP/1.1 {status}", *said, f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def redirect(location: str, *headers: str, status: str = "302 Found") -> bytes:
    return page(b"moved", f"Location: {location}", *headers, status=status)


def _sends(answer: bytes) -> Act:
    async def act(visit: Visit) -> None:
        await visit.send(answer)
        if b"content-length" not in answer.partition(b"\r\n\r\n")[0].lower():
            visit.writer.close()

    return act
