"""Logging in, what a page says once, and where the navigation leads."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.api.server import Server
from tests.dashboard.conftest import ADMIN, KEYS, READER, TENANT, Shown
from tests.dashboard.test_pages import log_in, token_of
from windrow import Queue
from windrow.api.limits import WRONG_KEYS_PER_MINUTE, Guesses
from windrow.services import keys
from windrow.services.keys import KEPT_SECONDS
from windrow.settings import Settings
from windrow.web.sessions import COOKIE
from windrow.web.site import create_site

PLACE = re.compile(r'<li><a href="([^"]+)"(?: aria-current="(\w+)")?>')


def places(page: str) -> dict[str, str]:
    return dict(PLACE.findall(page))


def test_login_leads_to_the_page_that_was_wanted(server: Server, shown: Shown) -> None:
    wanted = f"/ui/jobs/{shown.page}?a=1&b=%2F"
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=60) as client:
        page = client.get(wanted).text
        assert "API key" in page
        found = re.search(r'name="next" value="([^"]+)"', page)
        assert found is not None
        form = {"next": found[1].replace("&amp;", "&")}
        assert 'name="next"' in client.post("/ui/login", data=form | {"key": "wrong"}).text
        answer = client.post("/ui/login", data=form | {"key": ADMIN})
        assert str(answer.url) == server.url + wanted


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example/",
        "/ui/\t//evil.example",
        "/ui/x\r\nSet-Cookie: a=b",
        "javascript:alert(1)",
        "ui/jobs",
        "/v2/crawl",
        "/ui/" + "x" * 5000,
        "/.evil.example",
        "",
    ],
)
def test_login_leads_to_no_other_site(server: Server, wanted: str) -> None:
    form = {"key": ADMIN, "next": wanted}
    answer = httpx.post(f"{server.url}/ui/login", data=form, timeout=60)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    page = httpx.get(f"{server.url}/ui/login?next={quote(wanted)}", timeout=60)
    assert page.status_code == 200


def test_what_was_done_is_said_once_and_only_by_the_server(server: Server, shown: Shown) -> None:
    def said(client: httpx.Client, path: str = "/", **headers: str) -> list[str]:
        return re.findall(r'class="said"[^>]*>([^<]*)<', client.get(path, headers=headers).text)

    with log_in(server, ADMIN) as client:
        assert said(client, "/?said=call+this+number") == []
        form = {"queue": "images", "token": token_of(client)}
        done = client.post("/ui/queues", data=form | {"do": "pause"}, follow_redirects=False)
        assert done.headers["location"] == "/"
        note = client.cookies["windrow_note"]
        # A page that asks for itself again, in another tab, does not take it away.
        assert said(client, **{"X-Live": "1"}) == []
        assert said(client) == ["The queue images is paused"]
        assert said(client) == []
        client.post("/ui/queues", data=form | {"do": "resume"})
        client.cookies.set("windrow_note", "A" + note)
        assert said(client) == []
    with log_in(server, READER) as other:
        other.cookies.set("windrow_note", note)
        assert said(other) == []


def test_navigation_leads_only_where_somebody_may_go(server: Server, shown: Shown) -> None:
    for key, hidden in (
        (ADMIN, set()),
        (READER, {"/ui/add", "/ui/settings"}),
        (TENANT, {"/ui/settings"}),
    ):
        with log_in(server, key) as client:
            seen = set(places(client.get("/").text))
            assert {"/ui/add", "/ui/settings"} - seen == hidden, key
            assert all(client.get(path).status_code == 200 for path in seen)


def test_navigation_shows_where_somebody_is_on_pages_below_too(
    server: Server, shown: Shown
) -> None:
    with log_in(server, ADMIN) as client:
        for path, place, how in (
            ("/", "/", "page"),
            ("/ui/jobs?state=failed", "/ui/jobs", "page"),
            (f"/ui/jobs/{shown.page}", "/ui/jobs", "true"),
            ("/ui/runs/00000000-0000-0000-0000-000000000000", "/ui/runs", "true"),
            ("/ui/documents/none", "/ui/sources", "true"),
        ):
            current = {one: how for one, how in places(client.get(path).text).items() if how}
            assert current == {place: how}, path


def test_a_copied_cookie_is_worthless_after_log_out(tmp_path: Path) -> None:
    """Also at another server on the same database, and after a restart."""

    def see(server: Server, cookies: dict[str, str]) -> int:
        return httpx.get(f"{server.url}/ui/jobs", cookies=cookies, timeout=60).status_code

    with (
        Server(tmp_path, WINDROW_API_KEYS=KEYS) as server,
        Server(tmp_path, WINDROW_API_KEYS=KEYS) as other,
        log_in(server, ADMIN) as client,
        log_in(server, ADMIN) as second,
    ):
        copy = {COOKIE: client.cookies[COOKIE]}
        assert (see(server, copy), see(other, copy)) == (200, 200)
        client.post("/ui/logout", data={"token": token_of(client)})
        assert see(server, copy) == 303
        until = time.monotonic() + KEPT_SECONDS + 1
        while see(other, copy) == 200:
            assert time.monotonic() < until
        assert second.get("/ui/jobs").url.path == "/ui/jobs"
        server.stop()
        server.start()
        assert see(server, copy) == 303
        assert second.get("/ui/jobs").url.path == "/ui/jobs"


def test_wrong_keys_at_the_login_have_to_wait(tmp_path: Path) -> None:
    with (
        Server(tmp_path, WINDROW_API_KEYS=KEYS) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        answers = [
            client.post("/ui/login", data={"key": f"guess-{n}"})
            for n in range(WRONG_KEYS_PER_MINUTE + 10)
        ]
        assert {answer.status_code for answer in answers[:WRONG_KEYS_PER_MINUTE]} == {401}
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert int(refused.headers["Retry-After"]) >= 1
        assert "wrong keys a minute" in refused.text


async def test_wrong_keys_at_the_same_moment_are_counted_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "KEPT_SECONDS", -1.0)  # so that each login waits for the database
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        app = create_site(queue, Settings(api_keys=KEYS, data_dir=str(tmp_path)))
        app.state.guesses = Guesses(1)
        transport = httpx.ASGITransport(app, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as client:
            logins = [{"key": "a guess"}, {"key": "another"}, {"key": ADMIN}]
            answers = await asyncio.gather(
                *(client.post("/ui/login", data=form) for form in logins)
            )
    assert [one.status_code for one in answers] == [401, 429, 429]
    assert all("1 wrong keys a minute" in one.text for one in answers[1:])
    assert answers[-1].headers["Content-Type"].startswith("text/html")
