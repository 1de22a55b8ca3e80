"""The dashboard in a real Chromium: clicked through, with a keyboard, in the dark, on a phone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.server import Server
from tests.dashboard.conftest import ADMIN, Shown
from tests.web.site import SiteServer

# Labels, contrast and focus, by rules of our own: no page may break one.
CHECK = """() => {
  const bad = [];
  const seen = (el) => el.getClientRects().length && getComputedStyle(el).visibility !== "hidden";
  for (const el of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (seen(el) && !el.labels?.length && !el.getAttribute("aria-label")) bad.push(`no label: ${el.outerHTML.slice(0, 80)}`);
  for (const el of document.querySelectorAll("button, a"))
    if (seen(el) && !el.textContent.trim() && !el.getAttribute("aria-label")) bad.push(`no name: ${el.outerHTML.slice(0, 80)}`);
  for (const id of [...document.querySelectorAll("[id]")].map((el) => el.id))
    if (document.querySelectorAll(`[id="${CSS.escape(id)}"]`).length > 1) bad.push(`id twice: ${id}`);
  if (document.querySelectorAll("h1").length !== 1) bad.push("not one h1");
  if (!document.documentElement.lang) bad.push("no language");
  const light = (rgb) => { const [r, g, b] = rgb.match(/[\\d.]+/g).map(Number).map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const back = (el) => { for (; el; el = el.parentElement) { const c = getComputedStyle(el).backgroundColor; if (!/^rgba.*, 0\\)$|transparent/.test(c)) return c; } return "rgb(255, 255, 255)"; };
  for (const el of document.querySelectorAll("main *, header *")) {
    if (!seen(el) || ![...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    if (el.closest("svg, .skip, option, datalist")) continue;
    const [a, b] = [light(getComputedStyle(el).color), light(back(el))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) bad.push(`contrast ${((a + .05) / (b + .05)).toFixed(1)}: ${el.outerHTML.slice(0, 80)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) bad.push(`wider than the screen: ${document.documentElement.scrollWidth}`);
  return [...new Set(bad)].slice(0, 10);
}"""  # noqa: E501


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept: WINDROW_ARTIFACTS, or a temporary folder."""
    kept = os.environ.get("WINDROW_ARTIFACTS")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def chrome(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page, and what its console said."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        self.trouble: list[str] = []
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.trouble.append(message.text)

    def go(self, path: str) -> Any:
        self.page.goto(self.url + path, wait_until="load")
        return self.page

    def check(self) -> None:
        assert self.page.evaluate(CHECK) == [], self.page.url


@pytest.fixture(scope="module")
def tab(chrome: Any, server: Server, shown: Shown) -> Iterator[Tab]:
    context = chrome.new_context(viewport={"width": 1280, "height": 900})
    tab = Tab(context.new_page(), server.url)
    page = tab.go("/")
    assert page.url.endswith("/ui/login")
    tab.check()
    page.get_by_label("API key").fill(ADMIN)
    page.keyboard.press("Enter")
    page.wait_for_url(server.url + "/")
    yield tab
    context.close()


def test_overview_says_how_it_is_and_follows_what_happens(tab: Tab, artifacts: Path) -> None:
    page = tab.go("/")
    page.screenshot(path=artifacts / "overview.png", full_page=True)
    tab.check()
    row = page.locator("#queues tr", has_text="images")
    row.get_by_role("button", name="Pause").click()
    page.locator(".said", has_text="images is paused").wait_for()
    page.locator("#queues tr", has_text="images").get_by_role("button", name="Resume").click()
    page.locator(".said", has_text="images goes on").wait_for()
    assert tab.trouble == []


def test_jobs_are_found_retried_edited_and_deleted(tab: Tab, shown: Shown, artifacts: Path) -> None:
    page = tab.go("/ui/jobs")
    page.get_by_label("State").select_option("failed")
    page.get_by_role("button", name="Filter").click()
    page.locator(f'a[href="/ui/jobs/{shown.failed[0]}"]').click()
    page.screenshot(path=artifacts / "job.png", full_page=True)
    tab.check()
    page.get_by_text("Edit and retry").click()
    page.get_by_label("Payload, as JSON").fill('{"n": 4, "again": true}')
    page.get_by_role("button", name="Save and retry").click()
    page.locator(".said", has_text="it is changed").wait_for()
    assert '"again": true' in page.locator("main > pre").first.inner_text()
    page.get_by_role("button", name="Cancel").click()
    page.locator(".said", has_text="it is cancelled").wait_for()
    page.get_by_role("button", name="Delete").click()
    page.locator(".said", has_text="it is deleted").wait_for()
    page = tab.go("/ui/failed")
    tab.check()
    page.get_by_role("button", name="Retry all").first.click()
    page.locator(".said", has_text=re.compile(r"\d+ jobs will run again")).wait_for()
    assert page.title() != "broken"
    assert tab.trouble == []


def test_what_is_added_is_crawled_found_and_removed(
    tab: Tab, site_server: SiteServer, artifacts: Path
) -> None:
    site = site_server.site()
    site.page("/", links=["/two"], text="Windrows of hay dry in the sun.")
    site.page("/two", text="Rain is bad for them.")
    page = tab.go("/ui/add")
    tab.check()
    page.get_by_label("Text").fill("A baler picks up dry hay <b>quickly</b>.")
    page.get_by_role("button", name="Keep it").click()
    page.locator(".said", has_text="it is being taken in").wait_for()
    page.locator("#facts").get_by_text("A baler picks up").wait_for(timeout=20_000)  # by itself
    page = tab.go("/ui/add")
    page.get_by_label("Files").set_input_files(
        [
            {
                "name": "notes.md",
                "mimeType": "text/markdown",
                "buffer": b"# Tedders\n\nThey turn hay.",
            }
        ]
    )
    page.get_by_role("button", name="Upload").click()
    page.locator(".said", has_text="1 files are being taken in").wait_for()
    page = tab.go("/ui/add")
    page.get_by_label("Address").fill(site.url + "/")
    page.get_by_role("button", name="Crawl it").click()
    page.locator(".said", has_text="it is being taken in").wait_for()
    page = tab.go("/ui/runs")
    page.locator("#list a[href^='/ui/runs/']").first.wait_for(timeout=20_000)
    page.locator("#list a[href^='/ui/runs/']").first.click()
    page.locator("#progress .state.completed").wait_for(timeout=20_000)
    page.screenshot(path=artifacts / "crawl.png", full_page=True)
    tab.check()
    page = tab.go("/ui/search?q=hay")
    page.get_by_text("Why this hit").first.click()
    page.screenshot(path=artifacts / "search.png", full_page=True)
    tab.check()
    page.locator("article", has_text=f"{site.url}/").locator("h2 a").first.click()
    assert "Windrows of hay dry" in page.locator(".prose").inner_text()  # as it reads, no Markdown
    tab.check()
    page = tab.go("/ui/sources")
    tab.check()
    page.locator("#list a").first.click()
    page.get_by_role("button", name="Remove").click()
    page.locator(".said", has_text="it is removed").wait_for()
    assert tab.trouble == []


@pytest.mark.parametrize("path", ["/ui/pipelines", "/ui/schedules", "/ui/settings", "/ui/runs"])
def test_the_other_pages_are_readable(tab: Tab, path: str) -> None:
    tab.go(path)
    tab.check()
    assert tab.trouble == []


def test_a_schedule_is_paused_and_goes_on(tab: Tab) -> None:
    page = tab.go("/ui/schedules")
    page.get_by_role("button", name="Pause").click()
    page.locator(".said", has_text="nightly is paused").wait_for()
    page.get_by_role("button", name="Resume").click()
    page.locator(".said", has_text="nightly goes on").wait_for()


def test_keyboard_reaches_the_content_and_shows_where_it_is(tab: Tab) -> None:
    page = tab.go("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Overview"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_page_says_when_its_server_is_away_and_goes_on_when_it_is_back(
    tab: Tab, server: Server, shown: Shown
) -> None:
    page = tab.go("/")
    assert page.locator(".away").is_hidden()
    server.kill()
    page.locator(".away").wait_for(state="visible")
    server.start()
    page.locator(".away").wait_for(state="hidden")
    tab.trouble.clear()  # the console tells of it, too


def test_it_fits_a_phone_in_the_dark(
    chrome: Any, server: Server, shown: Shown, artifacts: Path
) -> None:
    context = chrome.new_context(
        viewport={"width": 390, "height": 800}, color_scheme="dark", is_mobile=True
    )
    tab = Tab(context.new_page(), server.url)
    page = tab.go("/ui/login")
    page.get_by_label("API key").fill(ADMIN)
    page.keyboard.press("Enter")
    page.wait_for_url(server.url + "/")
    for path in ("/", "/ui/jobs", f"/ui/jobs/{shown.page}", "/ui/add", "/ui/settings"):
        tab.go(path)
        tab.check()
    page.screenshot(path=artifacts / "phone.png")
    assert tab.trouble == []
    context.close()
