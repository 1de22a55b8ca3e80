"""Pages as markdown, HTML, links and images."""

from __future__ import annotations

import pytest

from tests.unit.ingest.convert.pages import markdown, read
from windrow.errors import InvalidOptions

PAGE = """<!doctype html><html lang="en"><head><title>The page</title></head><body>
<nav><a href="/home">Home</a></nav>
<main><h1>Hello</h1><p>Some <b>text</b> with a <a href="next.html">link</a>.
<img src="/cat.png" alt="A cat"></p></main>
<footer>Imprint</footer></body></html>"""


def test_a_page_becomes_markdown_without_its_framing() -> None:
    assert markdown(PAGE) == (
        "# Hello\n\nSome **text** with a [link](https://example.org/docs/next.html). "
        "![A cat](https://example.org/cat.png)"
    ).replace("\\\n", "\n")


def test_formats_that_are_not_asked_for_are_not_there() -> None:
    wire = read(PAGE, {"formats": ["links"]}).to_wire()

    assert set(wire) == {"metadata", "title", "url", "links"}


def test_links_are_those_of_the_whole_page() -> None:
    document = read(PAGE, {"formats": ["links", "images"]})

    assert document.links == ["https://example.org/home", "https://example.org/docs/next.html"]
    assert document.images == ["https://example.org/cat.png"]


def test_html_is_cleaned_and_absolute_and_raw_html_is_as_it_came() -> None:
    document = read(PAGE, {"formats": ["html", "rawHtml"]})

    assert document.raw_html == PAGE
    assert document.html is not None
    assert document.html.startswith("<main>")
    assert 'href="https://example.org/docs/next.html"' in document.html
    assert document.markdown is None


def test_without_only_main_content_the_framing_stays() -> None:
    text = markdown(PAGE, onlyMainContent=False)

    assert "[Home](https://example.org/home)" in text
    assert "Imprint" in text


def test_include_tags_take_those_parts_alone_and_exclude_tags_leave_some_out() -> None:
    assert markdown(PAGE, includeTags=["footer", "h1"]) == "# Hello\n\nImprint".replace(
        "\\\n", "\n"
    )
    assert "cat" not in markdown(PAGE, excludeTags=["img"])
    assert markdown(PAGE, includeTags=["#none"]) == ""


@pytest.mark.parametrize("option", ["includeTags", "excludeTags"])
def test_what_is_no_selector_is_refused(option: str) -> None:
    with pytest.raises(InvalidOptions, match=option):
        markdown(PAGE, **{option: ["a[["]})


def test_attributes_are_read_from_the_page_as_it_came() -> None:
    wanted = {"type": "attributes", "selectors": [{"selector": "a", "attribute": "href"}]}
    [found] = read(PAGE, {"formats": [wanted]}).attributes or []

    assert (found.selector, found.attribute) == ("a", "href")
    assert found.values == ["/home", "next.html"]


def test_images_inside_of_the_page_leave_only_their_names() -> None:
    page = '<p>A <img alt="dot" src="data:image/png;base64,AAAA"> B</p>'

    assert markdown(page) == "A ![dot](<Base64-Image-Removed>) B"
    assert "data:image/png" in markdown(page, removeBase64Images=False)
