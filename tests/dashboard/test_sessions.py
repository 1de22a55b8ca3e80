"""Logging in, what a page says once, and where the navigation leads."""

from __future__ import annotations

import re
from urllib.parse import quote

import httpx
import pytest

from tests.api.server import Server
from tests.dashboard.conftest import ADMIN, READER, TENANT, Shown
from tests.dashboard.test_pages import log_in, token_of

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
