"""The way out for a browser: everything through the guard, one request per plain connection."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.ingest.fetch.hostile import HostileServer, Visit, page
from windrow.ingest.fetch.guard import Guard
from windrow.ingest.fetch.proxy import GuardProxy


@pytest.fixture
async def proxy() -> AsyncIterator[GuardProxy]:
    async with GuardProxy(Guard(allow=["127.0.0.1"])) as proxy:
        yield proxy


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_a_page_comes_through(
    server: HostileServer, proxy: GuardProxy, browser: aiohttp.ClientSession
) -> None:
    url = server.serves(page(b"through", "Keep-Alive: timeout=5"), "/page?a=1")
    for _ in range(2):
        async with browser.get(
            url, proxy=proxy.url, headers={"X-Own": "1", "Proxy-Authorization": "secret"}
        ) as answer:
            assert (answer.status, await answer.read()) == (200, b"through")
            assert answer.headers["Connection"] == "close"
            assert "Keep-Alive" not in answer.headers
    for seen in server.seen(url):
        assert (seen["x-own"], seen["connection"]) == ("1", "close")
        assert not [name for name in seen if name.startswith("proxy-")]


async def test_a_body_is_sent_and_interim_answers_are_passed_on(
    server: HostileServer, proxy: GuardProxy, browser: aiohttp.ClientSession
) -> None:
    async def echo(visit: Visit) -> None:
        body = await visit.reader.readexactly(int(visit.headers["content-length"]))
        await visit.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + page(body))

    async with browser.post(server.serves(echo), proxy=proxy.url, data=b"x" * 300_000) as answer:
        assert await answer.read() == b"x" * 300_000


async def test_a_tunnel_carries_bytes_both_ways(server: HostileServer, proxy: GuardProxy) -> None:
    path = server.serves(page(b"tunnelled")).removeprefix(server.origin)
    reader, writer = await _dial(proxy, f"CONNECT 127.0.0.1:{server.port} HTTP/1.1")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    for _ in range(2):
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (await reader.readuntil(b"tunnelled")).startswith(b"HTTP/1.1 200 OK")
    writer.close()


@pytest.mark.parametrize(
    "line",
    [
        "CONNECT 10.0.0.1:443",
        "CONNECT localhost:443",
        "CONNECT [::1]:443",
        "CONNECT 0x7f.2:80",
        "CONNECT 169.254.169.254:80",
        "CONNECT inside.example:443",
        "GET http://10.0.0.1/",
        "GET http://[::ffff:10.0.0.1]/",
        "GET http://inside.example/",
    ],
)
async def test_a_private_target_is_refused(
    proxy: GuardProxy, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    def look_up(host: str, port: int, family: int) -> list:
        address = "10.0.0.7" if host == "inside.example" else host
        return socket.getaddrinfo(address, port, family, socket.SOCK_STREAM)

    monkeypatch.setattr("windrow.ingest.fetch.resolver._look_up", look_up)
    reader, writer = await _dial(proxy, f"{line} HTTP/1.1")
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"private network" in answer
    writer.close()


@pytest.mark.parametrize(
    "line",
    [
        "GET /here HTTP/1.1",
        "GET ftp://127.0.0.1/ HTTP/1.1",
        "HI",
        "GET https://a.example/ HTTP/1.1",
    ],
)
async def test_what_is_no_request_to_a_proxy_is_refused(proxy: GuardProxy, line: str) -> None:
    reader, writer = await _dial(proxy, line)
    assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()


async def test_nobody_there_is_told(proxy: GuardProxy, unused_tcp_port: int) -> None:
    reader, writer = await _dial(proxy, f"CONNECT 127.0.0.1:{unused_tcp_port} HTTP/1.1")
    assert (await reader.read()).startswith(b"HTTP/1.1 502 ")
    writer.close()


async def test_a_side_that_hangs_up_ends_the_other(
    server: HostileServer, proxy: GuardProxy
) -> None:
    gone = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def waits(visit: Visit) -> None:
        await visit.reader.read()
        loop.call_soon_threadsafe(gone.set)

    path = server.serves(waits).removeprefix(server.origin)
    _, writer = await _dial(proxy, f"GET {server.origin}{path} HTTP/1.1")
    while not server.visits[path]:
        await asyncio.sleep(0)
    writer.close()
    async with asyncio.timeout(10):
        await gone.wait()


async def test_an_endless_head_is_not_read(proxy: GuardProxy) -> None:
    reader, writer = await _dial(proxy, "GET http://127.0.0.1/ HTTP/1.1\r\nX: " + "y" * 200_000)
    with contextlib.suppress(ConnectionResetError):  # what was not read of it resets
        assert await reader.read() == b""
    writer.close()


async def _dial(proxy: GuardProxy, line: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rsplit(":", 1)[1]))
    writer.write(f"{line}\r\nHost: x\r\n\r\n".encode())
    return reader, writer
