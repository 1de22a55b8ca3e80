"""Pages in a real Chromium: what scripts make of them, actions, pictures, and what goes wrong."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.web.site import Page, Site
from windrow import Queue, Worker
from windrow.errors import (
    Blocked,
    BrowserCrashed,
    BrowserMissing,
    FetchTimeout,
    IngestError,
    RateLimited,
)
from windrow.ingest.browser.browser import Browser
from windrow.ingest.browser.rendered_page import NotAPage
from windrow.ingest.browser.traffic import blocked_urls
from windrow.ingest.convert import convert
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.guard import Guard
from windrow.ingest.options import ScrapeOptions
from windrow.pipelines.web.handlers import web_handlers
from windrow.services import web

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHOP = """<!doctype html><title>Shop</title><body style="margin:0"><main>
<h1>Shop</h1><p id=agent></p><input id=box><button id=more>More</button><ul id=list></ul>
<div style="height:3000px">Hay in long rows, and a barn behind them.</div></main><script>
agent.textContent = navigator.userAgent + ' ' + innerWidth;
more.onclick = () => setTimeout(() => {
  list.insertAdjacentHTML('beforeend', '<li class=late><a href="/late">Late hay</a></li>') }, 50);
box.onkeydown = event => { if (event.key == 'Enter') document.title = 'Sought ' + box.value };
</script>"""


def options(**wanted: Any) -> ScrapeOptions:
    return ScrapeOptions.parse(wanted)


def decoded(url: str, content_type: str) -> bytes:
    assert url.startswith(f"data:{content_type};base64,")
    return base64.b64decode(url.partition(",")[2])


def png_size(url: str) -> tuple[int, int]:
    width, height = struct.unpack(">II", decoded(url, "image/png")[16:24])
    return width, height


async def test_actions_are_done_in_order_and_tell_what_they_found(
    browser: Browser, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N4: actions, screenshot."""
    site.put("/", Page(SHOP.encode()))
    asked = options(
        formats=["markdown", "links", {"type": "screenshot", "fullPage": True}],
        actions=[
            {"type": "click", "selector": "#more"},
            {"type": "wait", "selector": ".late"},
            {"type": "click", "selector": "#box"},
            {"type": "write", "text": "hay"},
            {"type": "press", "key": "Enter"},
            {"type": "wait", "milliseconds": 10},
            {"type": "scroll", "direction": "down"},
            {"type": "executeJavascript", "script": "window.scrollY"},
            {"type": "executeJavascript", "script": "return {row: [1, 'two']}"},
            {"type": "screenshot", "viewport": {"width": 500, "height": 300}, "quality": 40},
            {"type": "scrape"},
            {"type": "pdf", "format": "A4"},
        ],
    )
    found = await browser.render(f"{site.url}/", asked)

    document = convert(found.resource, asked)
    assert "Late hay" in (document.markdown or "")
    assert document.links == [f"{site.url}/late"]
    assert document.metadata.title == "Sought hay"
    assert found.screenshot is not None
    width, height = png_size(found.screenshot)
    assert width == 1280
    assert height > 3000
    acted = found.actions
    assert acted is not None
    assert acted.javascript_returns is not None
    scrolled, given = acted.javascript_returns
    assert (scrolled.type, scrolled.value) == ("number", 800)
    assert (given.type, given.value) == ("object", {"row": [1, "two"]})
    [picture] = acted.screenshots or []
    assert decoded(picture, "image/jpeg").startswith(b"\xff\xd8")
    [scraped] = acted.scrapes or []
    assert scraped.url == f"{site.url}/"
    assert "Late hay" in scraped.html
    [printed] = acted.pdfs or []
    assert decoded(printed, "application/pdf").startswith(b"%PDF-")

    nothing = [{"type": "click", "selector": "#none"}]
    with monkeypatch.context() as patched:
        patched.setattr("windrow.ingest.browser.actions.LONGEST_SECONDS", 0.2)
        with pytest.raises(IngestError, match=r"action 1, click \(#none\)") as failed:
            await browser.render(f"{site.url}/", options(actions=nothing))
    assert failed.value.code == "SCRAPE_ACTION_ERROR"
    broken = [{"type": "executeJavascript", "script": "throw new Error('no such hay')"}]
    with pytest.raises(IngestError, match="no such hay"):
        await browser.render(f"{site.url}/", options(actions=broken))


async def test_each_page_has_a_context_of_its_own_and_headers_stay_with_their_origin(
    browser: Browser, site: Site, site_server: Any
) -> None:
    other = site_server.site()
    other.text("/pixel", "x", headers={"Access-Control-Allow-Origin": "*"})
    then = ".then(() => { document.documentElement.id = 'done' })"
    script = f"<script>document.cookie='a=1'; fetch('{other.url}/pixel'){then}</script>"
    site.page("/", head=script, headers={"Set-Cookie": "b=2"})
    site.redirect("/away", f"{other.url}/pixel")
    own = {"X-Secret": "hay", "Cookie": "c=3"}
    asked = options(actions=[{"type": "wait", "selector": "#done"}], headers=own)

    first, mobile = await asyncio.gather(
        browser.render(f"{site.url}/", asked),
        browser.render(f"{site.url}/mobile", options(mobile=True)),
    )
    await browser.render(f"{site.url}/away", options(waitFor=1, headers=own))

    assert first.resource.status == 200
    assert b'id="done"' in first.resource.body
    assert mobile.resource.status == 404
    assert site.headers["/"]["X-Secret"] == "hay"
    assert "iPhone" in site.headers["/mobile"]["User-Agent"]
    assert "X-Secret" not in other.headers["/pixel"]
    assert "Cookie" not in other.headers["/pixel"]
    assert other.hits["/pixel"] == 2
    again = await browser.render(f"{site.url}/", options(waitFor=1))
    assert "a=1" not in site.headers["/"].get("Cookie", ""), "of the page before"
    assert again.resource.headers.get("Set-Cookie") is None


async def test_what_goes_to_servers_of_advertisements_is_not_sent(
    browser: Browser, site: Site, site_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = site_server.site()
    other.text("/pixel", "x", headers={"Access-Control-Allow-Origin": "*"})
    patterns = [f"{other.url}/*"]
    monkeypatch.setattr("windrow.ingest.browser.traffic.blocked_urls", lambda _: patterns)
    done = "document.documentElement.id = 'done'"
    script = f"<script>fetch('{other.url}/pixel').finally(() => {{ {done} }})</script>"
    site.page("/", head=script)
    wait = [{"type": "wait", "selector": "#done"}]
    for blocks, hits in ((True, 0), (False, 1)):
        rendered = await browser.render(f"{site.url}/", options(actions=wait, blockAds=blocks))
        assert b'id="done"' in rendered.resource.body
        assert other.hits["/pixel"] == hits


async def test_a_page_of_a_blocked_host_itself_is_not_blocked() -> None:
    blocked = " ".join(blocked_urls("https://www.hotjar.com/about"))
    assert "hotjar" not in blocked
    assert "https://*.doubleclick.net/*" in blocked


async def test_answers_that_are_no_pages_are_told_apart(
    browser: Browser, chromium: str, site: Site
) -> None:
    asked = options(waitFor=1)
    site.pdf("/a.pdf", "Hay")
    with pytest.raises(NotAPage):
        await browser.render(f"{site.url}/a.pdf", asked)
    site.put("/a.bin", Page(b"hay", headers={"Content-Disposition": "attachment"}))
    with pytest.raises(NotAPage):
        await browser.render(f"{site.url}/a.bin", asked)
    site.page("/slow", status=429, headers={"Retry-After": "7"})
    with pytest.raises(RateLimited) as limited:
        await browser.render(f"{site.url}/slow", asked)
    assert limited.value.retry_after == 7
    site.text("/data.json", '{"hay": 1}', content_type="application/json")
    data = await browser.render(f"{site.url}/data.json", asked)
    assert data.resource.body == b'{"hay": 1}'
    site.redirect("/old", "/new")
    site.page("/new", text="Hay")
    moved = await browser.render(f"{site.url}/old", asked)
    assert moved.resource.final_url == f"{site.url}/new"
    assert moved.resource.redirects == (f"{site.url}/old",)


async def test_private_networks_are_refused_also_when_a_page_leads_there(
    chromium: str, site: Site, site_server: Any
) -> None:
    """Whatever the browser does, it does through the guard."""
    inside = site_server.site()
    inside.page("/secret", text="Secret")
    outside = Guard(allow=["localhost"])  # by its name alone
    start = site.url.replace("127.0.0.1", "localhost")
    frame = f'<iframe src="{inside.url}/secret"></iframe><img src="{inside.url}/secret">'
    site.page("/", text=frame, head=f"<script>fetch('{inside.url}/secret')</script>")
    site.redirect("/in", f"{inside.url}/secret")
    async with Browser(outside, executable=chromium) as browser:
        await browser.render(f"{start}/", options(waitFor=200))
        with pytest.raises(Blocked):
            await browser.render(f"{start}/in", options(waitFor=1))
        with pytest.raises(Blocked):
            await browser.render(f"{inside.url}/secret", options(waitFor=1))
    assert inside.hits["/secret"] == 0


async def test_hanging_page_is_ended_and_a_dead_browser_is_started_again(
    browser: Browser, site: Site
) -> None:
    site.page("/", text="Hay")
    site.page("/loop", head="<script>while (true) {}</script>")
    with pytest.raises(FetchTimeout):
        await browser.render(f"{site.url}/loop", options(waitFor=1, timeout=1000))
    after = await browser.render(f"{site.url}/", options(waitFor=1))
    assert b"Hay" in after.resource.body

    assert browser.pid is not None
    killed = browser.pid
    os.kill(killed, signal.SIGKILL)
    again = None
    while again is None:  # its end may come in the middle of a page, which a job would try again
        try:
            again = await browser.render(f"{site.url}/", options(waitFor=1))
        except BrowserCrashed:
            continue
    assert b"Hay" in again.resource.body
    assert browser.pid != killed


async def test_missing_browser_is_named_with_the_extra_and_the_setting(tmp_path: Path) -> None:
    async with Browser(executable=str(tmp_path / "none")) as browser:
        with pytest.raises(BrowserMissing) as missing:
            await browser.render("https://example.org/", options(formats=["screenshot"]))
    assert missing.value.code == "SCRAPE_BROWSER_MISSING"
    for words in ("format 'screenshot'", "windrow[browser]", "WINDROW_CHROMIUM"):
        assert words in str(missing.value)


async def test_jobs_use_the_browser_only_where_it_is_needed(
    browser: Browser, site: Site, tmp_path: Path
) -> None:
    site.put("/", Page(SHOP.encode()))
    site.pdf("/a.pdf", "Hay")
    wanted: list[tuple[str, dict[str, Any]]] = [
        ("/", {}),
        ("/", {"formats": ["markdown", "screenshot"], "waitFor": 1}),
        ("/a.pdf", {"formats": ["markdown", "screenshot"]}),
    ]
    async with (
        Queue.open(f"sqlite:///{tmp_path}/jobs.db") as queue,
        Fetcher(guard=Guard(allow=["127.0.0.0/8"])) as fetcher,
        web_handlers(queue, fetcher=fetcher, browser=browser) as handlers,
    ):
        ids = [(await web.start_scrape(queue, site.url + path, asked)).id for path, asked in wanted]
        await Worker(queue, handlers).run(until_idle=True)
        plain, shown, file = [web.document_of(await queue.get(job_id)) for job_id in ids]

    assert "Chrome/" not in (plain.markdown or ""), "its script has not run"
    assert "Chrome/" in (shown.markdown or "")
    assert png_size(shown.screenshot or "") == (1280, 800)
    assert "Hay" in (file.markdown or "")
    assert "format 'screenshot' had nothing to work on" in (file.warning or "")
