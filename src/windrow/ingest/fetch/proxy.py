"""A proxy on this machine that connects through the guard: the way out for a browser.

A browser resolves names itself and follows what pages tell it to, so looking at its URLs is not
enough. With this proxy as its only way out, every connection is opened by `Guard.open_socket`.
One request per connection for plain HTTP: what follows could be for another host.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

from windrow.errors import Blocked, FetchError
from windrow.ingest.fetch.guard import ForbiddenAddress, Guard
from windrow.ingest.fetch.resolver import Resolver
from windrow.ingest.fetch.target import parse_url

HEAD_BYTES: Final = 64 * 1024
HEAD_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 10.0
PIECE_BYTES: Final = 64 * 1024

# Of one connection, never passed on; their place is taken by "Connection: close".
HOP_BY_HOP: Final = (b"connection:", b"keep-alive:", b"proxy-")

# Tells answers of the proxy from those of sites, whose own are not passed on (RFC 9209).
PROXY_STATUS: Final = "Proxy-Status"

log = logging.getLogger(__name__)


class GuardProxy:
    """An HTTP proxy on a free port of the loopback interface.

    async with GuardProxy(guard) as proxy:
        browser = await chromium.launch(args=proxy.chromium_arguments())
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._resolver = Resolver()
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_BYTES)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        await self._resolver.close()

    @property
    def url(self) -> str:
        if self._server is None:
            raise RuntimeError("use a GuardProxy as a context manager")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def chromium_arguments(self) -> list[str]:
        """What makes this the only way out of a Chromium."""
        return [
            f"--proxy-server={self.url}",
            "--proxy-bypass-list=<-loopback>",  # or it would go to this machine by itself
            "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--disable-quic",
        ]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = asyncio.current_task()
        if client is None:
            raise RuntimeError("a connection is served by a task")
        self._clients.add(client)
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            log.debug("a connection through the proxy ended early", exc_info=True)
        finally:
            self._clients.discard(client)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await _read_head(reader)
        try:
            method, target, version = head[0].decode("latin-1").split(" ")
            is_tunnel = method == "CONNECT"
            url = parse_url(f"http://{target}" if is_tunnel else target)
            if not is_tunnel and url.scheme != "http":
                raise ValueError("a plain request is for http")
            there, away = await self._connect(url.raw_host or "", url.port or 80)
        except (FetchError, ForbiddenAddress) as error:
            is_ours = isinstance(error, Blocked | ForbiddenAddress)
            return await _refuse(writer, "403 Forbidden" if is_ours else "400 Bad Request", error)
        except ValueError as error:
            return await _refuse(writer, "400 Bad Request", error)
        except OSError as error:
            return await _refuse(writer, "502 Bad Gateway", error)
        try:
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _until_one_ends(_pump(reader, away), _pump(there, writer))
            else:
                request = f"{method} {url.raw_path_qs} {version}".encode("latin-1")
                await _forward([request, *head[1:]], reader, away, there, writer)
        finally:
            away.close()

    async def _connect(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to one of the addresses of a host; the first that can be had."""
        self._guard.check_url(f"http://[{host}]/" if ":" in host else f"http://{host}/")
        async with asyncio.timeout(CONNECT_SECONDS):
            found = await self._resolver.resolve(host, port)
            last: OSError = OSError(f"no address for {host}")
            for address in found:
                info = (address["family"], 1, address["proto"], "", (address["host"], port))
                try:
                    return await self._open(host, info)
                except OSError as error:
                    last = error
            raise last

    async def _open(
        self, host: str, info: tuple[int, int, int, str, tuple[str, int]]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        is_allowed = self._guard.is_open(host)
        sock = socket.socket(*info[:3]) if is_allowed else self._guard.open_socket(info)
        try:
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, info[4])
            return await asyncio.open_connection(sock=sock, limit=HEAD_BYTES)
        except BaseException:
            sock.close()
            raise


async def _read_head(reader: asyncio.StreamReader) -> list[bytes]:
    async with asyncio.timeout(HEAD_SECONDS):
        return (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")


async def _refuse(writer: asyncio.StreamWriter, status: str, why: Exception) -> None:
    body = str(why).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    head += f"{PROXY_STATUS}: windrow; error={_error_type(why)}\r\n"
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


def _error_type(why: Exception) -> str:
    match why:
        case ForbiddenAddress() | Blocked():
            return "destination_ip_prohibited"
        case socket.gaierror():
            return "dns_error"
        case OSError():
            return "destination_unavailable"
        case _:
            return "http_request_error"


async def _forward(
    head: list[bytes],
    reader: asyncio.StreamReader,
    away: asyncio.StreamWriter,
    there: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """One request there, one answer back, and the end of the connection told to both sides."""
    away.write(_closing(head))
    await _until_one_ends(_pump(reader, away), _answer(there, writer))


async def _answer(there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        # The browser decides how long it waits for an answer.
        head = (await there.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        if head[0].partition(b" ")[2][:1] != b"1":
            break
        writer.write(b"\r\n".join([*head, b"", b""]))
    writer.write(_closing(head))
    await _pump(there, writer)


def _closing(head: list[bytes]) -> bytes:
    """A head that says that nothing follows its body."""
    first, *lines = [line for line in head if not line.lower().startswith(HOP_BY_HOP)]
    return b"\r\n".join([first, *lines, b"Connection: close", b"", b""])


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(PIECE_BYTES):
        target.write(data)
        await target.drain()


async def _until_one_ends(*ways: Coroutine[Any, Any, None]) -> None:
    """Both directions at once. When either side has hung up there is nothing left to say."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
