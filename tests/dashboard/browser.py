"""A real Chromium that is logged in to the dashboard, and the rules that no page may break."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.api.server import Server
    from tests.dashboard.conftest import Shown

ADMIN, READER, TENANT = "admin-key-0123456789", "read-key-0123456789", "tenant-key-0123456789"
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"

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
  const contrast = (el, part) => { const [a, b] = [light(getComputedStyle(el, part).color), light(back(el))].sort((x, y) => y - x); return (a + .05) / (b + .05); };
  for (const el of document.querySelectorAll("main *, header *")) {
    if (!seen(el) || ![...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    if (el.closest("svg, .skip, option, datalist")) continue;
    if (contrast(el) < 4.5) bad.push(`contrast ${contrast(el).toFixed(1)}: ${el.outerHTML.slice(0, 80)}`);
  }
  for (const el of document.querySelectorAll("[placeholder]")) {
    const is = contrast(el, "::placeholder");
    if (seen(el) && is < 4.5) bad.push(`contrast of placeholder ${is.toFixed(1)}: ${el.outerHTML.slice(0, 80)}`);
  }
  for (const el of document.querySelectorAll("main .row")) {
    const above = el.previousElementSibling;
    if (seen(el) && above && seen(above) && el.getBoundingClientRect().top - above.getBoundingClientRect().bottom < 8) bad.push(`touches what is above: ${el.outerHTML.slice(0, 80)}`);
  }
  const heights = [...document.querySelectorAll("form.line input:not([type=hidden], [type=file]), form.line select")].filter(seen).map((el) => Math.round(el.getBoundingClientRect().height));
  if (new Set(heights).size > 1) bad.push(`fields of different heights: ${heights}`);
  if (document.documentElement.scrollWidth > innerWidth + 1) bad.push(`wider than the screen: ${document.documentElement.scrollWidth}`);
  return [...new Set(bad)].slice(0, 10);
}"""  # noqa: E501


@pytest.fixture(scope="module")
def artifacts() -> Path:
    """Where screenshots are kept: WINDROW_ARTIFACTS, or a folder that git ignores."""
    folder = Path(os.environ.get("WINDROW_ARTIFACTS") or SCREENSHOTS)
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


@contextmanager
def logged_in(chrome: Any, server: Server, key: str, **look: Any) -> Iterator[Tab]:
    """A browser of its own for somebody; `look` says how it shows pages."""
    context = chrome.new_context(**{"viewport": {"width": 1280, "height": 900}, **look})
    context.set_default_timeout(20_000)
    tab = Tab(context.new_page(), server.url)
    page = tab.go("/")
    page.wait_for_url("**/ui/login*")
    tab.check()
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    page.wait_for_url(server.url + "/")
    yield tab
    context.close()


@pytest.fixture(scope="module")
def tab(chrome: Any, server: Server, shown: Shown) -> Iterator[Tab]:
    """Of somebody who may do everything."""
    with logged_in(chrome, server, ADMIN) as tab:
        yield tab
