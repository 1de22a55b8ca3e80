"""Which part of a page is what people came for."""

from __future__ import annotations

import pytest

from tests.unit.ingest.convert.pages import markdown

TEXT = "A paragraph that is long enough to be what the page is about, and says something. "


@pytest.mark.parametrize(
    "frame",
    [
        "<nav>FRAME</nav>",
        '<div class="Sidebar left">FRAME</div>',
        '<div id="Footer">FRAME</div>',
        '<ul class="breadcrumbs"><li>FRAME</li></ul>',
        '<div role="contentinfo">FRAME</div>',
        '<aside class="promo">FRAME</aside>',
        "<dialog open>FRAME</dialog>",
        '<p class="copyright">FRAME</p>',
        "<button>FRAME</button>",
    ],
)
def test_framing_is_left_out_wherever_it_is(frame: str) -> None:
    for page in (f"{frame}<p>{TEXT}</p>", f"<main><p>{TEXT}</p>{frame}</main>"):
        assert markdown(page) == TEXT.strip()
        assert "FRAME" in markdown(page, onlyMainContent=False) or "button" in frame


@pytest.mark.parametrize(
    "part",
    [
        '<section id="cookies"><h2>Cookies</h2><p>PART</p></section>',
        '<div class="section" id="search"><h2>Search</h2><p>PART</p></div>',
        '<aside class="admonition note"><p>PART</p></aside>',
        '<aside class="footnote-list brackets"><aside class="footnote">PART</aside></aside>',
        "<blockquote><p>Said</p><footer>PART</footer></blockquote>",
        '<div class="layout-with-sidebar"><p>PART</p></div>',
        "<h3><button>PART</button></h3>",
        '<div class="header"><h1>PART</h1></div>',
    ],
)
def test_what_only_looks_like_framing_stays(part: str) -> None:
    assert "PART" in markdown(f"<main><p>{TEXT}</p>{part}</main>")


def test_a_frame_that_holds_the_page_is_the_page() -> None:
    page = f'<div class="sidebar"><h1>All of it</h1><p>{TEXT * 3}</p></div><p>Little.</p>'

    assert "# All of it" in markdown(page)


def test_of_several_articles_none_is_the_main_part() -> None:
    page = "".join(f"<article><h2>No. {number}</h2><p>{TEXT}</p></article>" for number in range(5))

    assert [line for line in markdown(page).splitlines() if line.startswith("##")] == [
        f"## No. {number}" for number in range(5)
    ]


@pytest.mark.parametrize("tag", ["article", "div class=content", "div class=post-content"])
def test_the_answers_to_a_long_post_are_part_of_the_thread(tag: str) -> None:
    end = tag.split()[0]
    posts = [f"<{tag}><p>{TEXT * 8}</p></{end}>", *[f"<{tag}><p>ANSWER {TEXT}</p></{end}>"] * 4]

    assert markdown("".join(posts)).count("ANSWER") == 4


def test_the_heading_of_the_page_is_taken_along_and_that_of_the_site_is_not() -> None:
    page = "<title>{title}</title><header><h1>{heading}</h1></header><main><p>" + TEXT + "</main>"

    assert markdown(page.format(title="Tide mills - Site", heading="Tide mills")).startswith(
        "# Tide"
    )
    assert "Openpedia" not in markdown(page.format(title="Tide mills", heading="Openpedia"))
