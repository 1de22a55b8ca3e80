"""A URL becomes a resource: redirects, cookies, headers, conditions, and asking too often."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest
from aiohttp import CookieJar

from tests.ingest.fetch.hostile import HostileServer, page, redirect
from windrow.errors import FetchError, RateLimited
from windrow.ingest.fetch import codes
from windrow.ingest.fetch.fetcher import MOBILE_USER_AGENT, Fetcher
from windrow.ingest.fetch.retry_after import parse_retry_after


async def test_a_page_comes_with_all_that_is_known_about_it(
    server: HostileServer, fetcher: Fetcher
) -> None:
    url = server.serves(
        page("<p>é</p>".encode(), 'ETag: "1"', "X-One: a", "X-One: b", "Set-Cookie: s=secret")
    )
    resource = await fetcher.fetch(url)
    assert (resource.url, resource.final_url, resource.status) == (url, url, 200)
    assert (resource.content_type, resource.charset) == ("text/html", "utf-8")
    assert (resource.text(), resource.etag) == ("<p>é</p>", '"1"')
    assert (resource.headers["x-one"], resource.headers["X-ONE"]) == ("a", "a")
    assert "set-cookie" not in resource.headers
    assert pickle.loads(pickle.dumps(resource)) == resource


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "503 Busy", "204 No Content"])
async def test_any_status_is_an_answer(
    server: HostileServer, fetcher: Fetcher, status: str
) -> None:
    body = b"" if status.startswith("204") else b"sorry"
    resource = await fetcher.fetch(server.serves(page(body, status=status)))
    assert (resource.status, resource.body) == (int(status[:3]), body)


async def test_redirects_are_followed_and_told(server: HostileServer, fetcher: Fetcher) -> None:
    last = server.serves(page(), "/there?a=1")
    middle = server.serves(redirect("/there?a=1", status="308 Permanent Redirect"))
    first = server.serves(redirect(middle, status="301 Moved Permanently"))
    resource = await fetcher.fetch(first + "#part")
    assert resource.final_url == last + "#part"
    assert resource.redirects == (first + "#part", middle + "#part")


async def test_a_redirect_to_a_place_with_raw_bytes_is_followed(
    server: HostileServer, fetcher: Fetcher
) -> None:
    server.serves(page(b"here"), "/caf%E9")
    url = server.serves(b"HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n")
    assert (await fetcher.fetch(url)).body == b"here"


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("http://[::1", codes.INVALID_URL),
        ("http://[::1]@", codes.INVALID_URL),
        ("file:///etc/passwd", codes.INVALID_URL),
        ("gopher://127.0.0.1:70/_x", codes.INVALID_URL),
        ("javascript:alert(1)", codes.INVALID_URL),
        ("http://:80/", codes.INVALID_URL),
    ],
)
async def test_a_redirect_to_something_else_than_http_is_refused(
    server: HostileServer, fetcher: Fetcher, location: str, code: str
) -> None:
    with pytest.raises(FetchError) as raised:
        await fetcher.fetch(server.serves(redirect(location)))
    assert raised.value.code == code
    assert not raised.value.transient


async def test_circles_and_endless_redirects_end(server: HostileServer, fetcher: Fetcher) -> None:
    server.serves(redirect("/b"), "/a")
    server.serves(redirect("/a"), "/b")
    with pytest.raises(FetchError, match="circle") as raised:
        await fetcher.fetch(f"{server.origin}/a")
    assert raised.value.code == codes.REDIRECT_LOOP
    for number in range(25):
        server.serves(redirect(f"/far/{number + 1}"), f"/far/{number}")
    with pytest.raises(FetchError) as raised:
        await fetcher.fetch(f"{server.origin}/far/0")
    assert raised.value.code == codes.TOO_MANY_REDIRECTS
    assert len(server.visits["/far/20"]) == 1
    assert server.visits["/far/21"] == []


async def test_a_page_that_sets_a_cookie_may_redirect_to_itself(
    server: HostileServer, fetcher: Fetcher
) -> None:
    async def gate(visit) -> None:
        is_known = "seen=1" in visit.headers.get("cookie", "")
        again = redirect("/gate", "Set-Cookie: seen=1; Path=/; HttpOnly")
        await visit.send(page(b"in") if is_known else again)

    url = server.serves(gate, "/gate")
    assert (await fetcher.fetch(url)).body == b"in"
    assert (await fetcher.fetch(url)).redirects == (url,), "nothing is kept from the last fetch"
    jar = CookieJar(unsafe=True)
    await fetcher.fetch(url, jar=jar)
    assert (await fetcher.fetch(url, jar=jar)).redirects == ()


async def test_secrets_stay_with_their_origin(server: HostileServer, fetcher: Fetcher) -> None:
    with HostileServer() as other:
        target = other.serves(page(), "/other")
        back = server.serves(page(), "/back")
        away = other.serves(redirect(back), "/away")
        url = server.serves(redirect(away), "/start")
        with_user = url.replace("http://", "http://me:pass@")
        headers = {"X-Api-Key": "k", "Accept-Language": "de", "Host": "evil", "user-agent": "U"}
        resource = await fetcher.fetch(with_user, headers=headers, cookies={"session": "s"})
        assert resource.redirects == (url, away), "user and password are not told to anybody"
        at_home, at_other, at_back = server.seen(url)[0], other.seen(away)[0], server.seen(back)[0]
        for seen in (at_home, at_back):
            assert seen["x-api-key"] == "k"
            assert seen["cookie"] == "session=s"
            assert seen["authorization"].startswith("Basic ")
            assert seen["host"] == f"127.0.0.1:{server.port}"
        assert not {"x-api-key", "cookie", "authorization"} & set(at_other)
        assert (at_other["accept-language"], at_other["user-agent"]) == ("de", "U")
        evil = server.serves(redirect(target.replace("http://", "http://a:b@")))
        await fetcher.fetch(evil)
        assert "authorization" not in other.seen(target)[0]


async def test_what_has_not_changed_is_not_sent_again(
    server: HostileServer, fetcher: Fetcher
) -> None:
    async def act(visit) -> None:
        is_known = visit.headers.get("if-none-match") == '"7"'
        head = b'HTTP/1.1 304 Not Modified\r\nETag: "7"\r\nContent-Length: 99\r\n\r\n'
        await visit.send(head if is_known else page(b"new", 'ETag: "7"'))

    url = server.serves(act)
    first = await fetcher.fetch(url)
    again = await fetcher.fetch(url, etag=first.etag, last_modified="Mon, 16 Nov 2026 01:00:00 GMT")
    assert (first.is_unchanged, again.is_unchanged, again.body) == (False, True, b"")
    assert server.seen(url)[1]["if-modified-since"] == "Mon, 16 Nov 2026 01:00:00 GMT"


async def test_only_the_head_is_asked_for(server: HostileServer, fetcher: Fetcher) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 999999999\r\n\r\n"
    resource = await fetcher.fetch(server.serves(head), method="HEAD")
    assert (resource.content_type, resource.body, resource.charset) == (
        "application/pdf",
        b"",
        None,
    )


async def test_a_phone_says_that_it_is_one(server: HostileServer, fetcher: Fetcher) -> None:
    url = server.serves(page())
    await fetcher.fetch(url, mobile=True)
    await fetcher.fetch(url, user_agent="mine")
    await fetcher.fetch(url)
    phone, own, usual = [seen["user-agent"] for seen in server.seen(url)]
    assert (phone, own) == (MOBILE_USER_AGENT, "mine")
    assert "windrow" in usual


@pytest.mark.parametrize("bad", [{"X": "a\r\nY: b"}, {"X\n": "a"}, {"": "a"}, {"Ä": "a"}])
async def test_headers_that_would_break_the_request_are_refused(
    server: HostileServer, fetcher: Fetcher, bad: dict[str, str]
) -> None:
    with pytest.raises(FetchError) as raised:
        await fetcher.fetch(server.serves(page()), headers=bad)
    assert raised.value.code == codes.INVALID_HEADER


async def test_being_asked_too_often_names_the_host_and_the_time(
    server: HostileServer, fetcher: Fetcher
) -> None:
    for status, header, seconds in [
        ("429 Too Many Requests", "Retry-After: 30", 30.0),
        ("429 Too Many Requests", "X-Other: 1", None),
        ("429 Too Many Requests", "Retry-After: soon", None),
        ("503 Busy", "Retry-After: 1.5", 1.5),
    ]:
        with pytest.raises(RateLimited) as raised:
            await fetcher.fetch(server.serves(page(b"", header, status=status)))
        assert (raised.value.key, raised.value.retry_after) == ("host:127.0.0.1", seconds)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("Mon, 16 Nov 2026 12:01:00 GMT", 60),
        ("Monday, 16-Nov-26 12:01:00 GMT", 60),
        ("Mon Nov 16 12:01:00 2026", 60),
        ("Mon, 16 Nov 2026 11:00:00 GMT", 0),
        ("Mon, 16 Nov 2096 11:00:00 GMT", 86_400),
        ("1e400", 86_400),
        ("99999999999999999999", 86_400),
        ("-5", None),
        ("nan", None),
        ("٣٠", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    now = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    assert parse_retry_after(value, now) == seconds
