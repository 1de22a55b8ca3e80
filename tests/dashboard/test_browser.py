"""The dashboard in a real Chromium: clicked through, with a keyboard, in the dark, on a phone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.api.server import Server
from tests.dashboard.browser import Tab, logged_in
from tests.dashboard.conftest import ADMIN, READER, TENANT, Shown
from tests.web.site import Page, SiteServer

IS_IN_VIEW = """(one) => {
  const { left, right } = one.getBoundingClientRect();
  return left >= 0 && right <= innerWidth;
}"""


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
    page.locator(".said", has_text="The job is changed").wait_for()
    assert '"again": true' in page.locator("#content > pre").first.inner_text()
    page.get_by_role("button", name="Cancel").click()
    page.locator(".said", has_text="The job is cancelled").wait_for()
    page.get_by_role("button", name="Delete").click()
    page.locator(".said", has_text="The job is deleted").wait_for()
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
    page.locator(".said", has_text="The source is being taken in").wait_for()
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
    page.locator(".said", has_text="1 file is being taken in").wait_for()
    page = tab.go("/ui/add")
    page.get_by_label("Address").fill(site.url + "/")
    page.get_by_role("button", name="Crawl it").click()
    page.locator(".said", has_text="The source is being taken in").wait_for()
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
    page.get_by_role("button", name="Remove the source").click()
    page.locator(".said", has_text="The source is removed").wait_for()
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
    assert tab.trouble == []


def open_crawl(tab: Tab, url: str) -> Any:
    """Start it, and look at it."""
    page = tab.go("/ui/add")
    page.get_by_label("Address").fill(url)
    page.get_by_role("button", name="Crawl it").click()
    page.locator(".said", has_text="The source is being taken in").wait_for()
    page.wait_for_url("**/ui/runs/*")
    return page


def test_a_crawl_is_paused_goes_on_and_is_cancelled(tab: Tab, site_server: SiteServer) -> None:
    site = site_server.site()
    site.page("/", links=[f"/{number}" for number in range(90)])
    for number in range(90):
        site.page(f"/{number}", seconds=2)
    page = open_crawl(tab, site.url + "/")
    page.get_by_role("button", name="Pause").click()
    page.locator(".said", has_text="The run is paused").wait_for()
    tab.check()
    page.get_by_role("button", name="Resume").click()
    page.locator(".said", has_text="The run goes on").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.locator(".said", has_text="The run is cancelled").wait_for()
    page.locator("#progress .state.cancelled").wait_for()
    page = tab.go("/ui/runs")
    page.get_by_label("State").select_option("cancelled")
    page.get_by_role("button", name="Filter").click()
    page.locator("#list .state.cancelled").wait_for()
    assert tab.trouble == []


def test_failed_pages_of_a_crawl_are_tried_again(tab: Tab, site_server: SiteServer) -> None:
    site = site_server.site()
    site.page("/", links=["/film"])
    site.put("/film", Page(b"\0\1", content_type="video/mp4"))
    page = open_crawl(tab, site.url + "/")
    page.locator("#progress .state.completed").wait_for()
    site.page("/film", text="The film is a page now.")
    page.get_by_role("button", name="Retry failed pages").click()
    page.locator(".said", has_text="1 pages are tried again").wait_for()
    page.locator("#pages tbody a", has_text="/film").first.wait_for()
    page.locator("#progress .state.completed").wait_for()
    assert page.get_by_role("button", name="Retry failed pages").count() == 0
    assert tab.trouble == []


def test_a_source_is_looked_at_again_and_search_keeps_to_its_filters(
    tab: Tab, site_server: SiteServer
) -> None:
    site = site_server.site()
    site.page("/", text="A haycock is a small pile of hay.")
    page = tab.go("/ui/add")
    form = page.locator("form", has=page.get_by_label("Address"))
    form.get_by_label("Address").fill(site.url + "/")
    form.get_by_label("Collection").fill("fields")
    form.get_by_label("Tags").fill("piles")
    form.get_by_role("button", name="Crawl it").click()
    page.locator("#progress .state.completed").wait_for()
    page = tab.go("/ui/sources")
    page.locator("#list tr", has_text=site.url).get_by_role("link").first.click()
    page.locator("#facts a[href^='/ui/documents/']").wait_for()
    page.get_by_text("not indexed yet").wait_for(state="hidden")
    page.get_by_role("button", name="Look again").click()
    page.locator(".said", has_text="The source is looked at again").wait_for()

    page = tab.go("/ui/search")
    page.get_by_label("What do you look for?").fill("haycock")
    page.get_by_text("Filters").click()
    page.get_by_label("Found by").select_option("keyword")
    page.get_by_label("Collection").select_option("fields")
    page.get_by_label("Tag").fill("piles")
    page.get_by_role("button", name="Search").click()
    page.locator("article", has_text="haycock").wait_for()
    assert page.get_by_label("Tag").input_value() == "piles"  # to be changed, not typed anew
    page.get_by_label("Tag").fill("rakes")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("Nothing was found with these filters.").wait_for()
    page.get_by_label("Tag").fill("piles")
    page.get_by_label("Found by").select_option("exact")
    page.get_by_label("What do you look for?").fill("haycocks")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("Nothing was found with these filters.").wait_for()
    assert tab.trouble == []


def test_a_key_is_made_used_and_revoked_and_its_owner_logs_out(
    tab: Tab, chrome: Any, server: Server
) -> None:
    page = tab.go("/ui/settings")
    page.get_by_label("Name").fill("harvest")
    page.get_by_label("Tenant").fill("acme")
    page.get_by_label("Role").select_option("read")
    page.get_by_role("button", name="Make a key").click()
    page.get_by_label("Key", exact=True).wait_for()
    [key] = set(re.findall(r"wr-[\w-]{40,}", page.content()))
    tab.check()
    with logged_in(chrome, server, key) as other:
        other.page.get_by_text("acme · read").wait_for()
        other.page.get_by_role("button", name="Log out").click()
        other.page.wait_for_url("**/ui/login")
        other.go("/ui/jobs").wait_for_url("**/ui/login?next=*")
        assert other.trouble == []
    page = tab.go("/ui/settings")
    page.locator("tr", has_text="harvest").get_by_role("button", name="Revoke").click()
    page.locator(".said", has_text="harvest counts no longer").wait_for()
    assert page.locator("tr", has_text="harvest").count() == 0
    assert tab.trouble == []


def test_readers_and_tenants_are_shown_what_is_theirs_and_nothing_to_press_in_vain(
    chrome: Any, server: Server, shown: Shown, artifacts: Path
) -> None:
    with logged_in(chrome, server, READER) as tab:
        places = tab.page.locator("nav a").evaluate_all("all => all.map((a) => a.pathname)")
        for path in [*places, f"/ui/jobs/{shown.failed[1]}"]:
            page = tab.go(path)
            tab.check()
            forms = page.locator("form[method=post]:not([action='/ui/logout'])")
            assert forms.count() == 0, path
        page.screenshot(path=artifacts / "reader.png", full_page=True)
        assert tab.trouble == []
    with logged_in(chrome, server, TENANT) as tab:
        page = tab.go("/")
        page.screenshot(path=artifacts / "tenant.png", full_page=True)
        assert page.locator("#queues tbody th").all_inner_texts() == ["odd", "printer"]
        page = tab.go("/ui/jobs")
        tab.check()
        page.locator("#list tr", has_text="mine").get_by_role("link").click()
        page.get_by_role("button", name="Pause").click()
        page.locator(".said", has_text="The job is paused").wait_for()
        tab.check()
        page.get_by_role("button", name="Resume").click()
        page.locator(".said", has_text="The job goes on").wait_for()
        assert tab.trouble == []


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
    phone = {"viewport": {"width": 390, "height": 800}, "is_mobile": True}
    with logged_in(chrome, server, ADMIN, color_scheme="dark", **phone) as tab:
        for path in ("/", "/ui/jobs", f"/ui/jobs/{shown.page}", "/ui/add", "/ui/settings"):
            page = tab.go(path)
            tab.check()
            assert page.locator("header").bounding_box()["height"] < 100
            assert page.locator("nav a[aria-current]").evaluate(IS_IN_VIEW)
            name = path.strip("/").replace("/", "-")[:10] or "overview"
            page.screenshot(path=artifacts / f"phone-{name}.png", full_page=True)
            rows = page.locator("#list tbody tr").all()
            assert all(row.bounding_box()["height"] < 160 for row in rows), path
        assert tab.trouble == []


def test_a_new_key_is_on_top_and_copied(tab: Tab, artifacts: Path) -> None:
    page = tab.go("/ui/settings")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_label("Name").fill("clip")
    page.get_by_role("button", name="Make a key").click()
    field = page.get_by_label("Key", exact=True)
    assert field.bounding_box()["y"] < 400
    tab.check()
    page.screenshot(path=artifacts / "key.png")
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == field.input_value()
    assert tab.trouble == []
