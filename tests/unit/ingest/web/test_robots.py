"""What a robots.txt allows."""

from __future__ import annotations

import time

import pytest

from windrow.ingest.web.robots import (
    ALLOWS_ALL,
    UNREACHABLE,
    Robots,
    read_robots,
    robots_of_answer,
    robots_url,
)

ORIGIN = "https://example.org"
WHERE = f"{ORIGIN}/robots.txt"

FILE = b"""\xef\xbb\xbfUser-agent: *
Disallow: /private/
Disallow: /*.cgi$
Disallow: /search*q=
Allow: /private/open/
Crawl-delay: 2

User-agent: Windrow
Disallow: /not-for-windrow
Crawl-delay: 0.5

User-agent: Greedy
Disallow: /
Crawl-delay: 86400

Sitemap: https://example.org/map.xml
Sitemap: /second.xml
Sitemap: https://example.org/map.xml
nonsense
"""


@pytest.mark.parametrize(
    ("path", "agent", "is_allowed"),
    [
        ("/", "Other", True),
        ("/private/a", "Other", False),
        ("/private/open/a", "Other", True),
        ("/private", "Other", True),
        ("/run.cgi", "Other", False),
        ("/run.cgi?a", "Other", True),
        ("/search?x=1&q=2", "Other", False),
        ("/search", "Other", True),
        ("/private/a", "Windrow", True),
        ("/not-for-windrow/a", None, False),
        ("/anything", "Greedy", False),
    ],
)
def test_rules_are_those_of_the_agent(path: str, agent: str | None, is_allowed: bool) -> None:
    assert read_robots(FILE, WHERE).allows(ORIGIN + path, agent) is is_allowed


def test_crawl_delay_and_sitemaps_are_read() -> None:
    robots = read_robots(FILE, WHERE)
    assert robots.crawl_delay("Other") == 2.0
    assert robots.crawl_delay() == 0.5
    assert robots.crawl_delay("Greedy") == 60.0, "nobody waits a day between two pages"
    assert robots.sitemaps == (f"{ORIGIN}/map.xml", f"{ORIGIN}/second.xml")


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        (404, ALLOWS_ALL),
        (403, ALLOWS_ALL),
        (410, ALLOWS_ALL),
        (429, UNREACHABLE),
        (500, UNREACHABLE),
        (503, UNREACHABLE),
    ],
)
def test_missing_file_allows_all_and_a_broken_server_nothing(status: int, wanted: Robots) -> None:
    found = robots_of_answer(WHERE, status, b"User-agent: *\nDisallow: /")
    assert found is wanted
    assert found.allows(f"{ORIGIN}/a") is (wanted is ALLOWS_ALL)
    assert found.crawl_delay() is None


@pytest.mark.parametrize("body", [b"", b"<html>not found</html>", b"\xff\xfe\x00", b"Disallow: /"])
def test_file_without_rules_allows_all(body: bytes) -> None:
    assert robots_of_answer(WHERE, 200, body).allows(f"{ORIGIN}/a")


def test_what_comes_after_the_first_half_mebibyte_is_not_read() -> None:
    body = b"User-agent: *\n" + b"#" * (600 * 1024) + b"\nDisallow: /"
    assert read_robots(body, WHERE).allows(f"{ORIGIN}/a")


def test_rule_made_of_wildcards_costs_no_time() -> None:
    robots = read_robots(b"User-agent: *\nDisallow: /" + b"*a" * 40 + b"*b$", WHERE)
    began = time.process_time()
    assert robots.allows(f"{ORIGIN}/{'a' * 2000}c")
    assert time.process_time() - began < 0.5


def test_file_lies_at_the_root_of_an_origin() -> None:
    assert robots_url("https://example.org:8443/a/b?c") == "https://example.org:8443/robots.txt"
