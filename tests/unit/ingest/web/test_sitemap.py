"""Sitemaps, whole and broken, and those that are made to do harm."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from windrow.ingest.web.sitemap import SitemapEntry, read_sitemap

WHERE = "https://example.org/maps/sitemap.xml"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def urls(body: str | bytes, **caps: int) -> list[str]:
    data = body.encode() if isinstance(body, str) else body
    return [entry.url for entry in read_sitemap(data, WHERE, **caps)]


def urlset(*entries: str) -> str:
    inside = "".join(f"<url>{entry}</url>" for entry in entries)
    return f'{HEAD}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{inside}</urlset>'


TWO = urlset("<loc>https://example.org/a</loc>", "<loc>https://example.org/b</loc>")
BOTH = ["https://example.org/a", "https://example.org/b"]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (TWO, BOTH),
        (TWO.encode("utf-16"), BOTH),
        (gzip.compress(TWO.encode()), BOTH),
        (gzip.compress(TWO[:120].encode()) + gzip.compress(TWO[120:].encode()), BOTH),
        (gzip.compress(TWO.encode())[:-8], BOTH),
        (TWO.replace("<", "\n  <").replace("</loc>", "\n</loc>"), BOTH),
        (TWO.replace("<url", "<sm:url").replace("</url>", "</sm:url>"), BOTH),
        (TWO.replace("<loc>https://example.org/b</loc>", "<loc><![CDATA[/b]]></loc>"), BOTH),
        (TWO.replace("https://example.org/b", "../b"), BOTH),
        (TWO[: TWO.index("</urlset>")], BOTH),
        (TWO.replace("</url>", ""), BOTH),
        (TWO.replace(HEAD, "\ufeff" + HEAD), BOTH),
        ("https://example.org/a\r\nhttps://example.org/b\n", BOTH),
        ("https://example.org/a", BOTH[:1]),
        (
            urlset("<loc>/a?x=1&amp;y=2</loc>", "<loc>/b?x=1&y=2</loc>"),
            ["https://example.org/a?x=1&y=2", "https://example.org/b?x=1&y=2"],
        ),
        (urlset("<loc>/%E4%B8%AD</loc>"), ["https://example.org/%E4%B8%AD"]),
        (urlset("<loc>/&#228;</loc>"), ["https://example.org/%C3%A4"]),
        (
            urlset("<loc>/a</loc><image:image><image:loc>/pic.png</image:loc></image:image>"),
            BOTH[:1],
        ),
        (urlset("<!-- <loc>/no</loc> --><loc>/a</loc><!-- x -->"), BOTH[:1]),
        (urlset("<loc>mailto:a@example.org</loc>", "<loc></loc>", "<loc>/a</loc>"), BOTH[:1]),
        ("", []),
        ("<html><body>Not found</body></html>", []),
        (b"\x1f\x8bnot gzip at all", []),
        (b"\x00\x01\x02", []),
    ],
)
def test_pages_of_a_sitemap_are_found(body: str | bytes, wanted: list[str]) -> None:
    assert urls(body) == wanted


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_it_does_not_matter_where_the_chunks_are_cut(size: int) -> None:
    body = urlset(
        "<!-- <loc>/no</loc> --><loc>/a</loc><lastmod>2026-01-02</lastmod>",
        "<loc><![CDATA[/b?x=1&y=<2>]]></loc>",
        "<loc>/ä&amp;c</loc>",
    ).encode()
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    assert list(read_sitemap(chunks, WHERE)) == list(read_sitemap(body, WHERE))
    assert len(list(read_sitemap(body, WHERE))) == 3


def test_index_leads_to_further_sitemaps_and_tells_when_they_changed() -> None:
    body = (
        f"{HEAD}<sitemapindex><sitemap><loc>one.xml.gz</loc><lastmod>2026-02-03</lastmod></sitemap>"
        "<sitemap><loc>https://example.org/two.xml</loc></sitemap></sitemapindex>"
    )
    assert list(read_sitemap(body.encode(), WHERE)) == [
        SitemapEntry("https://example.org/maps/one.xml.gz", "2026-02-03", is_sitemap=True),
        SitemapEntry("https://example.org/two.xml", None, is_sitemap=True),
    ]


ENTITIES = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;">
<!ENTITY file SYSTEM "file:///etc/passwd">]>
<urlset><url><loc>https://example.org/&lol2;</loc></url>
<url><loc>https://example.org/&file;</loc></url><url><loc>https://example.org/a</loc></url></urlset>
"""


def test_entities_are_never_expanded() -> None:
    assert urls(ENTITIES) == [
        "https://example.org/&lol2;",
        "https://example.org/&file;",
        "https://example.org/a",
    ]


def test_bomb_is_read_up_to_the_cap_and_held_a_chunk_at_a_time() -> None:
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    tracemalloc.start()
    try:
        assert list(read_sitemap(bomb, WHERE)) == []
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "body",
    [
        HEAD + "<urlset><url><loc>" + "a" * 3_000_000,
        HEAD + "<urlset>" + "<a " * 300_000,
        HEAD + "<!-- " * 300_000,
        HEAD + "<![CDATA[" * 200_000,
        "<" * 500_000,
    ],
    ids=["endless text", "open tags", "open comments", "open literals", "brackets"],
)
def test_endless_token_ends_in_nothing(body: str) -> None:
    assert urls(body) == []


def test_caps_are_kept() -> None:
    many = urlset(*(f"<loc>/{number}</loc>" for number in range(500)))
    assert len(urls(many, max_entries=100)) == 100
    assert 0 < len(urls(many, max_bytes=5000)) < 500
