"""Open pages in a real Chromium: they follow what happens, and disturb nobody who uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.server import Server
from tests.dashboard.browser import ADMIN, Tab, logged_in
from tests.dashboard.conftest import Elsewhere, Shown, thumbnail
from windrow import Worker

MANY = 8  # more than the six connections a browser opens to a server
LONG = 60_000  # only a failing test waits for it
# A page asks by itself now and then, whatever it hears: not here.
ONLY_BY_WORD = "window.setInterval = () => 0"
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def another(chrome: Any, server: Server, shown: Shown) -> Iterator[Tab]:
    with logged_in(chrome, server, ADMIN) as tab:
        tab.page.context.add_init_script(ONLY_BY_WORD)
        yield tab


def test_many_windows_side_by_side_all_follow(another: Tab, elsewhere: Elsewhere) -> None:
    tabs = [Tab(another.page.context.new_page(), another.url) for _ in range(MANY)]
    for one in tabs:
        one.go("/ui/jobs?kind=everywhere")
    elsewhere.enqueue("everywhere", delay=3600)
    for one in tabs:
        one.page.locator("#list .state.scheduled").wait_for(timeout=LONG)
    tabs[0].page.close()  # which had listened for all
    elsewhere.enqueue("everywhere", delay=3600)
    for one in tabs[1:]:
        one.page.locator("#list .state.scheduled").nth(1).wait_for(timeout=LONG)
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
    first.locator("#list .state.scheduled").wait_for(timeout=LONG)
    assert tabs[1].page.locator("#list .state").count() == 0  # nobody looks at it
    elsewhere.enqueue("behind", delay=3600)
    first.locator("#list .state.scheduled").nth(1).wait_for(timeout=LONG)
    assert [line for one in tabs for line in one.trouble] == []


def test_a_refresh_leaves_the_focus_and_the_scroll_where_they_are(
    another: Tab, elsewhere: Elsewhere
) -> None:
    job = elsewhere.enqueue("kept", {"text": "hay " * 40}, delay=3600)
    another.page.set_viewport_size({"width": 660, "height": 700})
    page = another.go("/ui/jobs?kind=kept")
    page.locator(f'a[href="/ui/jobs/{job.id}"]').focus()
    page.evaluate("document.querySelector('.scroll').scrollLeft = 40")
    elsewhere.enqueue("kept", delay=3600)  # its row is put above
    page.locator("#list tbody tr").nth(1).wait_for(timeout=LONG)
    assert page.evaluate("document.activeElement.getAttribute('href')") == f"/ui/jobs/{job.id}"
    assert page.evaluate("document.querySelector('.scroll').scrollLeft") == 40
    page.keyboard.press("Enter")  # and it is still the same link
    page.wait_for_url(f"**/ui/jobs/{job.id}")


# A part becomes another after somebody used it: whether it is so then, and what is there.
MORPH = """async ([before, after]) => {
  const { morph } = await import("/ui/static/morph.js");
  const old = Object.assign(document.createElement("section"), { innerHTML: before });
  const fresh = Object.assign(document.createElement("section"), { innerHTML: after });
  document.querySelector("main").append(old);
  const one = (css) => old.querySelector(css);
  %s;
  morph(old, fresh);
  try { return [%s, old.innerHTML]; } finally { old.remove(); }
}"""
BLANKS = "<br>" * 100
FORM = '<form><textarea name="payload">old</textarea><button value="edit">Save</button></form>'


@pytest.mark.parametrize(
    ("before", "after", "use", "check"),
    [
        pytest.param(
            f"<div class='prose'><p>a</p>{BLANKS}</div>",
            f"<p>new</p><div class='prose'><p>b</p>{BLANKS}<p>c</p></div>",
            "one('.prose').scrollTop = 50",
            "one('.prose').scrollTop === 50 && one('.prose p').textContent === 'b'",
            id="scroll",
        ),
        pytest.param(
            "<ul><li><details id='a'><summary>a</summary><a href='1'>1</a></details></ul>",
            "<ul><li><a href='0'>0</a><li><details id='a'><summary>b</summary></details></ul>",
            "one('details').open = true; one('summary').focus()",
            "one('details').open && document.activeElement.textContent === 'b'",
            id="open details",
        ),
        pytest.param(
            "<p>1 job</p><pre>some text</pre>",
            "<p>2 jobs</p><pre>some text</pre>",
            "getSelection().selectAllChildren(one('pre'))",
            "getSelection().toString() === 'some text'",
            id="selection",
        ),
        pytest.param(
            "<p>a</p><p><a href='?after=1'>Older ones</a></p>",
            "<p>a</p><p><a href='?after=2'>Older ones</a></p>",
            "one('a').focus()",
            "document.activeElement.getAttribute('href') === '?after=2'",
            id="link that leads elsewhere",
        ),
        pytest.param(
            "<form><button value='cancel'>Cancel</button></form>",
            "<form><button value='delete'>Delete</button></form>",
            "one('button').focus()",
            "document.activeElement === document.body",
            id="a button that does something else is another",
        ),
        pytest.param(
            f"<details id='edit'>{FORM}</details>",
            f"<p>new</p><details id='edit'>{FORM.replace('old', 'newer')}</details>",
            "one('details').open = true; one('textarea').value = 'mine'",
            "one('details').open && one('textarea').value === 'mine'",
            id="what was typed",
        ),
        pytest.param(
            f"<details id='edit'>{FORM}</details>",
            "<p>done</p>",
            "one('details').open = true; one('textarea').value = 'mine'",
            "one('textarea').value === 'mine' && one('p').textContent === 'done'",
            id="what was typed, though it is not wanted any more",
        ),
        pytest.param(
            f"<details id='edit'>{FORM}</details>",
            "<p>done</p>",
            "one('details').open = true",
            "!one('details') && one('p').textContent === 'done'",
            id="what is not wanted any more goes",
        ),
    ],
)
def test_what_somebody_does_with_a_part_stays_when_it_changes(
    tab: Tab, before: str, after: str, use: str, check: str
) -> None:
    if tab.page.url != f"{tab.url}/ui/add":
        tab.go("/ui/add")  # which has no parts of its own
    is_so, became = tab.page.evaluate(MORPH % (use, check), [before, after])
    assert is_so, became


def test_what_a_part_becomes_is_what_was_sent(tab: Tab) -> None:
    rows = [f"<tr class='{n % 2}'><th><a href='{n}'>{n}</a></th><td>x</td></tr>" for n in range(7)]
    orders = [(3, 1, 2), (1, 2, 3, 4), (0, 4, 3, 1), (), (6, 5, 0), (0, 5, 6), (1, 1, 2, 1), (2,)]
    tab.go("/ui/add")
    for olds in orders:
        for news in orders:
            before, after = (
                f"<p>{one}</p><table><tbody>{''.join(rows[n] for n in one)}</tbody></table>text"
                for one in (olds, news)
            )
            _, became = tab.page.evaluate(MORPH % ("", "true"), [before, after])
            assert became == after.replace("'", '"'), (olds, news)


def test_a_job_that_ends_shows_what_came_of_it(another: Tab, elsewhere: Elsewhere) -> None:
    job = elsewhere.enqueue("thumbnail", {"n": 1}, queue="images")
    page = another.go(f"/ui/jobs/{job.id}")
    page.locator("#edit").wait_for()
    elsewhere.do(lambda queue: Worker(queue, [thumbnail]).run(until_idle=True))
    page.locator(".prose", has_text="A page").wait_for(timeout=LONG)
    assert page.locator("#result").is_visible()
    assert page.locator("#edit").count() == 0
    assert another.trouble == []


def test_what_is_typed_into_a_job_stays_while_it_changes(
    another: Tab, elsewhere: Elsewhere
) -> None:
    job = elsewhere.enqueue("odd", {"n": 1}, delay=3600)
    page = another.go(f"/ui/jobs/{job.id}")
    page.get_by_text("Edit").click()
    page.get_by_label("Payload, as JSON").fill('{"n": 2}')
    elsewhere.do(lambda queue: queue.cancel(job.id))
    page.locator("#facts .state.cancelled").first.wait_for(timeout=LONG)
    assert page.get_by_label("Payload, as JSON").input_value() == '{"n": 2}'
    page.get_by_role("button", name="Save").click()
    page.locator(".said", has_text="The job is changed").wait_for()
    assert '"n": 2' in page.locator("#content > pre").inner_text()


def test_a_page_says_when_its_session_has_ended(another: Tab, elsewhere: Elsewhere) -> None:
    page = another.go("/ui/jobs?state=failed")
    page.context.clear_cookies()
    elsewhere.enqueue("odd", delay=3600)
    page.locator(".ended").wait_for(timeout=LONG)
    assert page.locator(".away").is_hidden()
    page.get_by_role("link", name="Log in again").click()
    page.get_by_label("API key").fill(ADMIN)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{another.url}/ui/jobs?state=failed")
