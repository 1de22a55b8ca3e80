"""Open pages in a real Chromium: they follow what happens, and disturb nobody who uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.server import Server
from tests.dashboard.browser import ADMIN, Tab, logged_in
from tests.dashboard.conftest import Elsewhere, Shown

MANY = 8  # more than the six connections a browser opens to a server
# Sooner than a page asks by itself, whatever it hears.
SOON = 8_000
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def another(chrome: Any, server: Server, shown: Shown) -> Iterator[Tab]:
    with logged_in(chrome, server, ADMIN) as tab:
        yield tab


def test_many_windows_side_by_side_all_follow(another: Tab, elsewhere: Elsewhere) -> None:
    tabs = [Tab(another.page.context.new_page(), another.url) for _ in range(MANY)]
    for one in tabs:
        one.go("/ui/jobs?kind=everywhere")
    elsewhere.enqueue("everywhere", delay=3600)
    for one in tabs:
        one.page.locator("#list .state.scheduled").wait_for(timeout=SOON)
    tabs[0].page.close()  # which had listened for all
    elsewhere.enqueue("everywhere", delay=3600)
    for one in tabs[1:]:
        one.page.locator("#list .state.scheduled").nth(1).wait_for(timeout=SOON)
        assert one.trouble == []


def test_hidden_tabs_leave_their_connections_to_others(another: Tab, elsewhere: Elsewhere) -> None:
    context = another.page.context
    context.add_init_script("Object.defineProperty(navigator, 'locks', { value: undefined })")
    tabs = [Tab(context.new_page(), another.url) for _ in range(MANY)]
    for one in tabs:
        one.go("/ui/jobs?kind=behind").evaluate(HIDE, True)
    elsewhere.enqueue("behind", delay=3600)
    first = tabs[0].page
    first.evaluate(HIDE, False)
    first.locator("#list .state.scheduled").wait_for(timeout=SOON)
    assert tabs[1].page.locator("#list .state").count() == 0  # nobody looks at it
    elsewhere.enqueue("behind", delay=3600)
    first.locator("#list .state.scheduled").nth(1).wait_for(timeout=SOON)
    assert [line for one in tabs for line in one.trouble] == []
