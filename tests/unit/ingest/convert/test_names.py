"""A class name decides nothing by itself: headings and code stay, and so does most of the text."""

from __future__ import annotations

from itertools import cycle, islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.ingest.convert.pages import markdown, read
from windrow.ingest.convert.html import FRAMES_KEPT, HIDDEN_KEPT
from windrow.ingest.convert.main_content import FRAME_NAMES

PROSE = "The keeper of the lock wrote down each boat, what it carried and who was paid for it. "
TRIMMING_NAMES = [
    "anchor",
    "headerlink",
    "hash-link",
    "id_link",
    "copybtn",
    "copy-button",
    "clipboard-copy",
    "linenos",
    "linenodiv",
    "lineno",
    "gutter",
    "line-numbers-rows",
    "advertisement",
    "advert",
    "ad-slot",
    "taboola",
    "sr-only",
]
names = st.one_of(
    st.sampled_from(sorted(FRAME_NAMES)),
    st.sampled_from(TRIMMING_NAMES),
    st.text(
        st.characters(codec="ascii", categories=["L", "N"], include_characters="-_"), max_size=12
    ),
)
wrappers = st.lists(
    st.tuples(st.sampled_from(["div", "section", "table><tr><td"]), names, st.booleans()),
    max_size=3,
)


def wrap(inside: str, around: list[tuple[str, str, bool]]) -> str:
    for tag, name, is_id in around:
        attribute = "id" if is_id else "class"
        end = "</td></tr></table>" if "td" in tag else f"</{tag}>"
        inside = f'<{tag} {attribute}="{name}">{inside}{end}'
    return inside


@given(around=wrappers, on_heading=names, on_link=names, on_code=names)
@example([("div", "sidebar", False)], "header", "header", "linenos")
def test_headings_and_code_of_the_main_part_stay_whatever_they_are_called(
    around: list[tuple[str, str, bool]], on_heading: str, on_link: str, on_code: str
) -> None:
    part = (
        f'<h2 class="{on_heading}"><a class="{on_link}" href="#here">A heading</a></h2>'
        f"<p>{PROSE}</p>"
        f'<pre class="{on_code}"><code class="{on_link}">open --gate 3</code></pre>'
    )
    text = markdown(f"<nav>menu</nav><main><p>{PROSE * 5}</p>{wrap(part, around)}</main>")

    assert "A heading" in text
    assert "open --gate 3" in text


@given(around=wrappers.filter(bool), on_heading=names)
def test_a_heading_with_prose_stays_whatever_is_around_it_is_called(
    around: list[tuple[str, str, bool]], on_heading: str
) -> None:
    part = f'<h3><span class="{on_heading}">A heading</span></h3><p>{PROSE}</p>'

    assert "A heading" in markdown(f"<main><p>{PROSE * 5}</p>{wrap(part, around)}</main>")


@given(classes=st.lists(names, min_size=1, max_size=4))
def test_a_tenth_of_the_text_is_never_all_that_is_left(classes: list[str]) -> None:
    """The text is in several parts, so that none of them is most of it."""
    parts = "".join(
        f'<div class="{name}"><p>{PROSE * 4}</p></div>' for name in islice(cycle(classes), 4)
    )
    document = read(f"<p>One line.</p>{parts}", {"formats": ["markdown"]})
    kept = len(document.markdown or "")

    assert kept > len(PROSE) * 1.6
    if kept < len(PROSE) * 4:
        assert document.warning is None


@pytest.mark.parametrize("name", ["widget", "sidebar", "related"])
def test_framing_that_holds_nearly_all_of_the_text_is_kept_with_a_warning(name: str) -> None:
    page = f"<p>One line.</p><nav>{'<a href=/x>MENU</a> ' * 200}</nav>" + (
        f'<div class="{name}"><p>{PROSE * 4}</p></div>' * 3
    )
    document = read(page, {"formats": ["markdown"]})

    assert (document.markdown or "").count("wrote down each boat") == 12
    assert "MENU" not in (document.markdown or "")
    assert document.warning == FRAMES_KEPT


def test_a_page_in_elements_that_frame_others_is_kept_with_a_warning() -> None:
    page = f"<p>One line.</p><header>{PROSE * 5}</header><footer>{PROSE * 5}</footer>"
    document = read(page, {"formats": ["markdown"]})

    assert (document.markdown or "").count("wrote down each boat") == 10
    assert document.warning == FRAMES_KEPT


@pytest.mark.parametrize(
    "heading",
    [
        "<button class='accordion'><h3>How much is it?</h3></button>",
        "<h3><button>How much is it?</button></h3>",
        "<div class='header' role='heading' aria-level='2'>How much is it?</div>",
    ],
)
def test_a_question_that_opens_its_answer_stays(heading: str) -> None:
    page = f"<main><p>{PROSE}</p>{heading}<div>{PROSE}</div></main>"
    assert "How much is it?" in markdown(page)


def test_menus_longer_than_the_text_are_left_out_without_a_warning() -> None:
    menu = "<a href='/x'>A link of the menu to some other page</a> " * 200
    page = f"<nav>{menu}</nav><p>One line.</p><div class='footer'>{menu}</div>"
    document = read(page, {"formats": ["markdown"]})

    assert (document.markdown, document.warning) == ("One line.", None)


def test_a_page_that_a_script_shows_is_kept_with_a_warning() -> None:
    page = f"<p>Loading</p><div id='app' style='display: none'><p>{PROSE * 9}</p></div>"
    document = read(page, {"formats": ["markdown"]})

    assert PROSE.strip() in (document.markdown or "")
    assert document.warning == HIDDEN_KEPT


@pytest.mark.parametrize(
    ("button", "panel"),
    [
        ("", 'role="tabpanel" hidden'),
        ("", 'role="tabpanel" aria-hidden="true"'),
        ("", 'role="tabpanel" style="display: none"'),
        ('<h3><button aria-controls="a1">When?</button></h3>', 'id="a1" hidden'),
        ('<h3><a aria-controls="a1" href="#a1">When?</a></h3>', 'id="a1" style="display:none"'),
    ],
)
def test_hidden_tabs_and_answers_are_part_of_the_text(button: str, panel: str) -> None:
    page = f"<main><h1>T</h1><p>{PROSE * 5}</p>{button}<div {panel}><pre>yarn add x</pre></div>"
    assert "yarn add x" in markdown(page)


def test_a_hidden_menu_or_form_that_a_button_opens_is_left_out() -> None:
    for inside in ("<a href='/a'>SECRET</a>", "<form>SECRET<input></form>"):
        button = '<button aria-controls="m">Menu</button>'
        page = f"<main><p>{PROSE * 5}</p>{button}<div id='m' hidden>{inside}</div></main>"
        assert "SECRET" not in markdown(page)


def test_hidden_text_beside_a_page_is_left_out() -> None:
    page = f"<p>{PROSE * 20}</p><div hidden><p>{'HIDDEN ' * 5000}</p></div>"
    document = read(page, {"formats": ["markdown"]})

    assert "HIDDEN" not in (document.markdown or "")
    assert document.warning is None


@pytest.mark.parametrize(
    "part",
    [
        "<div class='header'><h2>KEPT</h2></div>",
        "<div class='header'><h2><a href='/page#kept'>KEPT</a></h2></div>",
        "<div class='sidebar'><pre>KEPT = 1</pre></div>",
    ],
)
@pytest.mark.parametrize("around", ["<div id='content'>{}</div>", "<div role='main'>{}</div>"])
def test_a_heading_or_code_in_a_named_box_stays_without_a_main_element(
    part: str, around: str
) -> None:
    assert "KEPT" in markdown(around.format(f"<p>{PROSE * 9}</p>{part}<p>{PROSE * 9}</p>"))
