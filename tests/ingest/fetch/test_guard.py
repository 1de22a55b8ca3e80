"""Nothing private is connected to, however it is written and wherever the way there leads."""

from __future__ import annotations

import socket
from asyncio.selector_events import BaseSelectorEventLoop
from ipaddress import ip_address
from typing import Any

import pytest

from tests.ingest.fetch.hostile import HostileServer, page, redirect
from tests.ingest.fetch.tricky import NAMES, NO_URLS, PUBLIC, REFUSED, answer
from windrow.errors import Blocked, ConfigError, FetchError
from windrow.ingest.fetch import codes
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.guard import Guard, is_public, parse_host_address
from windrow.settings import Settings


@pytest.fixture(autouse=True)
def name_server(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answers for NAMES; returns the names that were asked for."""
    asked: list[str] = []

    def look_up(host: str, port: int, family: int) -> list[tuple]:
        asked.append(host)
        return answer(host, port, family)

    monkeypatch.setattr("windrow.ingest.fetch.resolver._look_up", look_up)
    return asked


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The addresses that something tried to connect to."""
    tried: list[object] = []
    connect = BaseSelectorEventLoop.sock_connect

    async def watched(loop: BaseSelectorEventLoop, sock: socket.socket, address: Any) -> None:
        tried.append(address)
        await connect(loop, sock, address)

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_connect", watched)
    return tried


async def test_nothing_private_is_connected_to(connections: list[object]) -> None:
    assert len(REFUSED) + len(NO_URLS) >= 60
    async with Fetcher() as fetcher:
        for url in REFUSED:
            with pytest.raises(Blocked) as raised:
                await fetcher.fetch(url)
            assert raised.value.code == "SCRAPE_FORBIDDEN_TARGET", url
            assert not raised.value.transient
        for url in NO_URLS:
            with pytest.raises(FetchError) as other:
                await fetcher.fetch(url)
            assert other.value.code == codes.INVALID_URL, url
    assert connections == []


def test_what_a_url_alone_tells_is_known_before_anything_is_asked(name_server: list[str]) -> None:
    guard = Guard()
    by_name = [url for url in REFUSED if ".example" in url.lower() and "@" not in url]
    for url in set(REFUSED) - set(by_name):
        with pytest.raises(Blocked):
            guard.check_url(url)
    for url in ["http://loop.example/", *PUBLIC]:
        guard.check_url(url)
    assert name_server == []


async def test_a_redirect_into_a_private_network_is_not_followed() -> None:
    guard = Guard(allow=["good.example"])
    with HostileServer() as server:
        secret = server.serves(page(b"secret"), "/secret")
        async with Fetcher(guard=guard) as fetcher:
            ways = (
                secret,
                secret.replace("127.0.0.1", "loop.example"),
                "http://0x7f.1/",
                "//[::1]/",
            )
            for number, way in enumerate(ways):
                server.serves(redirect(way), f"/to/{number}")
                with pytest.raises(Blocked):
                    await fetcher.fetch(f"http://good.example:{server.port}/to/{number}")
        assert server.seen(secret) == []


async def test_the_address_that_was_checked_is_the_one_connected_to(
    monkeypatch: pytest.MonkeyPatch, name_server: list[str]
) -> None:
    """A name that is public when looked up first and private afterwards gains nothing."""
    with HostileServer() as server:
        url = server.serves(page(b"secret")).replace("127.0.0.1", "rebind.example")
        monkeypatch.setitem(NAMES, "rebind.example", ["127.0.0.1"])
        async with Fetcher() as fetcher:
            fetcher.guard.check_url(url)
            with pytest.raises(Blocked):
                await fetcher.fetch(url)
        assert name_server == ["rebind.example"], "no second look-up between check and connect"
        assert server.seen(url) == []


async def test_of_a_name_with_several_addresses_only_the_public_are_tried(
    monkeypatch: pytest.MonkeyPatch, connections: list[object]
) -> None:
    """The allowed network stands in for the public one: there is none in a test."""
    with HostileServer() as server:
        url = server.serves(page(b"public")).replace("127.0.0.1", "mixed.example")
        monkeypatch.setitem(NAMES, "mixed.example", ["10.0.0.1", "fd00::1", "127.0.0.1"])
        async with Fetcher(guard=Guard(allow=["127.0.0.1"])) as fetcher:
            assert (await fetcher.fetch(url)).body == b"public"
    assert connections == [("127.0.0.1", server.port)]


async def test_what_the_operator_allows_is_fetched_and_nothing_else() -> None:
    with HostileServer() as server:
        path = server.serves(page(b"inside")).removeprefix(server.origin)
        hosts = ["good.example", "www.good.example", "notgood.example", "127.0.0.1", "localhost"]
        for allow, opened in [
            (["good.example"], ["good.example"]),
            (["GOOD.example."], ["good.example"]),
            (["*.good.example"], ["good.example", "www.good.example"]),
            (["localhost"], ["localhost"]),
            (["127.0.0.0/8"], ["good.example", "www.good.example", "notgood.example", "127.0.0.1"]),
            ([], []),
        ]:
            async with Fetcher(guard=Guard(allow=allow)) as fetcher:
                for host in hosts:
                    url = f"http://{host}:{server.port}{path}"
                    if host in opened:
                        assert (await fetcher.fetch(url)).body == b"inside"
                    else:
                        with pytest.raises(Blocked):
                            await fetcher.fetch(url)
        async with Fetcher(guard=Guard(allow_private=True)) as fetcher:
            for host in hosts:
                await fetcher.fetch(f"http://{host}:{server.port}{path}")


def test_the_settings_say_what_is_allowed() -> None:
    assert not Guard.from_settings(Settings()).is_open("10.0.0.1")
    guard = Guard.from_settings(Settings(allow_hosts="wiki.corp, *.docs.corp 10.1.0.0/16"))
    assert guard.is_open("wiki.corp")
    assert guard.is_open("a.docs.corp")
    assert guard.admits(ip_address("10.1.2.3"))
    assert not guard.admits(ip_address("10.2.0.1"))
    assert Guard.from_settings(Settings(allow_private_networks=True)).admits(ip_address("::1"))


@pytest.mark.parametrize("entry", ["10.0.0.0/99", "http://x/", "a b", "*", "*.*", "x:80", "a/b"])
def test_an_entry_that_allows_nothing_sensible_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match="allow_hosts"):
        Guard(allow=[entry])


def test_the_internet_is_public() -> None:
    for address in ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1"]:
        assert is_public(ip_address(address)), address
        assert is_public(ip_address(f"::ffff:{address}"))
        assert is_public(ip_address(f"64:ff9b::{address}")), "how IPv6-only networks reach IPv4"
    for address in ["2606:4700::1111", "2a00:1450:4001::1", "2620:fe::fe"]:
        assert is_public(ip_address(address)), address


@pytest.mark.parametrize("host", ["1.2.3.4.5", "256.1", "1.2.3.256", "4294967296", "08.1", "a.0x1"])
def test_a_host_that_ends_in_a_number_and_is_no_address_is_none_at_all(host: str) -> None:
    with pytest.raises(ValueError, match=r"IPv4|invalid literal"):
        parse_host_address(host)
    with pytest.raises(Blocked):
        Guard().check_url(f"http://{host}/")
