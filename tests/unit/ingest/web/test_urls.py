"""One form for the same page: what URLs become, and which of them are one."""

from __future__ import annotations

import pytest

from windrow.ingest.web.urls import (
    drop_query,
    has_skipped_extension,
    normalise,
    origin_of,
    page_key,
)

BASE = "https://example.org/docs/guide/page.html?x=1#part"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://example.org", "https://example.org/"),
        ("HTTPS://Example.ORG/Path", "https://example.org/Path"),
        ("http://example.org:80/", "http://example.org/"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("https://example.org:8443/a", "https://example.org:8443/a"),
        ("http://example.org:443/a", "http://example.org:443/a"),
        ("https://example.org./a", "https://example.org/a"),
        ("  https://example.org/a \n", "https://example.org/a"),
        ("https://example.org/a\nb", "https://example.org/ab"),
        ("https://example.org/a/../b/./c/..", "https://example.org/b/"),
        ("https://example.org/../../a", "https://example.org/a"),
        ("https://example.org/%2e%2e/a", "https://example.org/a"),
        ("https://example.org/%7Euser/%e4%b8%ad", "https://example.org/~user/%E4%B8%AD"),
        ("https://example.org/中 文", "https://example.org/%E4%B8%AD%20%E6%96%87"),
        ("https://example.org/100%", "https://example.org/100%25"),
        ("https://example.org/a%2Fb", "https://example.org/a%2Fb"),
        ("https://example.org/a?", "https://example.org/a"),
        ("https://example.org/a?q=ä b&c=[1]", "https://example.org/a?q=%C3%A4%20b&c=[1]"),
        ("https://example.org/a?b=2&a=1", "https://example.org/a?b=2&a=1"),
        ("https://example.org/a#part", "https://example.org/a"),
        ("https://example.org/a#", "https://example.org/a"),
        ("https://example.org/a#/", "https://example.org/a"),
        ("https://example.org/a#/inbox", "https://example.org/a#/inbox"),
        ("https://example.org/a#!/inbox", "https://example.org/a#!/inbox"),
        ("https://user:secret@example.org/a", "https://example.org/a"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://[2001:DB8::1]:8080/a", "https://[2001:db8::1]:8080/a"),
        ("https:\\\\example.org\\a", "https://example.org/a"),
        ("https://example.org//a//b", "https://example.org//a//b"),
        ("mailto:someone@example.org", None),
        ("javascript:void(0)", None),
        ("data:text/html,hello", None),
        ("ftp://example.org/a", None),
        ("tel:+491234", None),
        ("https://", None),
        ("https:///a", None),
        ("https://example.org:99999/", None),
        ("https://例え。jp。/", "https://xn--r8jz45g.jp/"),
        ("https://example.org:0/", None),
        ("https://example.org/\udcff", None),
        ("https://example.org/a?b=\ud800", None),
        ("https://example.org/#!/\ud800", None),
        ("https://example.org:port/", None),
        ("https://[1::2/", None),
        ("https://exa mple.org/", None),
        ("", None),
        ("no address", None),
        ("https://example.org/" + "a" * 3000, None),
    ],
)
def test_url_is_given_the_form_it_is_fetched_in(url: str, wanted: str | None) -> None:
    assert normalise(url) == wanted
    if wanted is not None:
        assert normalise(wanted) == wanted, "a second time changes nothing"


@pytest.mark.parametrize(
    ("link", "wanted"),
    [
        ("other", "https://example.org/docs/guide/other"),
        ("../other", "https://example.org/docs/other"),
        ("/root", "https://example.org/root"),
        ("//cdn.example.org/a", "https://cdn.example.org/a"),
        ("?page=2", "https://example.org/docs/guide/page.html?page=2"),
        ("#part", "https://example.org/docs/guide/page.html?x=1"),
        ("", "https://example.org/docs/guide/page.html?x=1"),
        ("http://else.example/", "http://else.example/"),
        ("\\root", "https://example.org/root"),
        ("javascript:history.back()", None),
        ("http://[", None),
    ],
)
def test_link_is_taken_from_the_page_it_is_on(link: str, wanted: str | None) -> None:
    assert normalise(link, BASE) == wanted


SAME = "https://example.org/docs"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/docs",
        "https://www.example.org/docs",
        "https://example.org/docs/",
        "https://example.org/docs/index.html",
        "http://www.example.org/docs/index.php",
        "https://example.org/docs/INDEX.HTML",
    ],
)
def test_similar_urls_are_one_page_unless_it_is_asked_otherwise(url: str) -> None:
    assert page_key(url) == page_key(SAME)
    assert page_key(url, similar=False) != page_key(SAME, similar=False)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/docs?a=1",
        "https://example.org/docs2",
        "https://example.org/Docs",
        "https://docs.example.org/docs",
        "https://example.org:8443/docs",
        "https://example.org/docs#/inbox",
        "https://example.org/docs/myindex.html",
    ],
)
def test_other_pages_have_other_keys(url: str) -> None:
    assert page_key(url) != page_key(SAME)


def test_the_roots_of_a_site_are_one_page() -> None:
    roots = ["http://example.org/", "https://www.example.org/index.php"]
    assert {page_key(url) for url in roots} == {"example.org/"}


def test_query_is_left_out_where_it_does_not_count() -> None:
    assert drop_query("https://example.org/a?b=1#/c") == "https://example.org/a#/c"
    assert drop_query("https://example.org/a?b=1") == "https://example.org/a"
    assert page_key("https://example.org/a?b=1", ignore_query=True) == "example.org/a"


@pytest.mark.parametrize(
    ("url", "is_skipped"),
    [
        ("https://example.org/logo.PNG", True),
        ("https://example.org/style.css?v=3", True),
        ("https://example.org/slides.pptx", True),
        ("https://example.org/paper.pdf", False),
        ("https://example.org/letter.docx", False),
        ("https://example.org/feed.xml", False),
        ("https://example.org/png", False),
        ("https://example.js/", False),
        ("https://example.org/v1.js/page", False),
    ],
)
def test_what_is_no_page_is_told_by_its_extension(url: str, is_skipped: bool) -> None:
    assert has_skipped_extension(url) is is_skipped


def test_origin_is_what_comes_before_the_path() -> None:
    assert origin_of("https://example.org:8443/a/b?c") == "https://example.org:8443"
    assert origin_of("http://example.org?c=/d") == "http://example.org"
