"""Pages whose parts are moved into their places by a script."""

from __future__ import annotations

import time

import pytest

from tests.unit.ingest.convert.pages import markdown

SHELL = '<main><p>Before</p><!--$?--><template id="B:0"></template><p>Wait</p><!--/$--></main>'


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        (
            '<div hidden id="S:0"><p>Inside</p></div><script>$RC("B:0","S:0")</script>',
            "Before\n\nInside",
        ),
        (  # the content of a boundary has boundaries, whose fallbacks have some too
            (
                '<div hidden id="S:0"><!--$?--><template id="B:1"></template><!--$-->Wait<!--/$-->'
                '<!--/$--><p>End</p></div><script>$RC("B:0","S:0")</script>'
                '<div hidden id="S:1"><p>Inside</p></div><script>$RC("B:1","S:1")</script>'
            ),
            "Before\n\nInside\n\nEnd",
        ),
        (  # nobody knows the slot: it is shown where it is
            "<div hidden id='S:0'><p>Inside</p></div><script>$RC('B:9','S:0')</script>",
            "Before\n\nWait\n\nInside",
        ),
    ],
)
def test_streamed_content_is_where_a_browser_shows_it(rest: str, text: str) -> None:
    assert markdown(SHELL + rest, onlyMainContent=False) == text


@pytest.mark.parametrize(
    "calls",
    [
        '$RC("S:0","S:0")',
        '$RC("B:1","S:0");$RC("B:1","S:0")',  # a slot inside its own content
        '$RC("B:0","S:7");$RC("B:7","S:0")',
        '$RC("B:0","S:0");$RC("B:0","S:0");$RS("S:0","B:0")',
    ],
)
def test_calls_that_make_no_sense_do_no_harm(calls: str) -> None:
    slot = '<div hidden id="S:0"><p>Inside</p><template id="B:1"></template></div>'

    assert "Inside" in markdown(f"{SHELL}{slot}<script>{calls}</script>", onlyMainContent=False)


def test_many_slots_in_each_other_take_no_long_time() -> None:
    slots = "".join(
        f'<div hidden id="S:{n}">{n}<template id="B:{n + 1}"></template></div>'
        for n in range(20_000)
    )
    calls = "".join(f'$RC("B:{n}","S:{n}");' for n in range(20_000))
    started = time.process_time()
    text = markdown(f"{SHELL}{slots}<script>{calls}</script>", onlyMainContent=False)

    assert "19999" in text
    assert time.process_time() - started < 10
