"""Which URLs belong to a crawl, option by option."""

from __future__ import annotations

from typing import Any

import pytest

from windrow.errors import InvalidOptions
from windrow.ingest.web.scope import CrawlOptions, Scope, Verdict

START = "https://example.org/docs/"


def scope(start: str = START, **options: Any) -> Scope:
    return Scope(start, CrawlOptions.parse(options))


@pytest.mark.parametrize(
    ("start", "inside", "outside"),
    [
        ("https://example.org/", ["/", "/a", "/a/b?c"], []),
        ("https://example.org/docs/", ["/docs/", "/docs/a"], ["/", "/docs", "/docsy", "/blog"]),
        ("https://example.org/docs", ["/docs", "/docs/a"], ["/", "/docsy", "/blog"]),
        ("https://example.org/docs/index.html", ["/docs/", "/docs/b"], ["/docs", "/blog"]),
        ("https://example.org/docs/v1.2", ["/docs/", "/docs/b"], ["/blog"]),
    ],
)
def test_crawl_stays_under_its_start(start: str, inside: list[str], outside: list[str]) -> None:
    asked = scope(start)
    for path in inside:
        assert asked.admits(f"https://example.org{path}", 1, start) is Verdict.ADMITTED, path
    for path in outside:
        assert asked.admits(f"https://example.org{path}", 1, start) is Verdict.ABOVE_START, path


@pytest.mark.parametrize(
    ("options", "url", "wanted"),
    [
        ({}, "https://example.org/docs/a", Verdict.ADMITTED),
        ({}, "http://www.example.org/docs/a", Verdict.ADMITTED),
        ({}, "https://example.org/blog", Verdict.ABOVE_START),
        ({"crawlEntireDomain": True}, "https://example.org/blog", Verdict.ADMITTED),
        ({"crawlEntireDomain": True}, "https://else.example/", Verdict.ELSEWHERE),
        ({}, "https://api.example.org/docs/", Verdict.ELSEWHERE),
        ({"allowSubdomains": True}, "https://api.example.org/", Verdict.ADMITTED),
        ({"allowSubdomains": True}, "https://notexample.org/", Verdict.ELSEWHERE),
        ({}, "https://example.org:8443/docs/a", Verdict.ELSEWHERE),
        ({"allowExternalLinks": True}, "https://else.example/", Verdict.ADMITTED),
        ({"maxDiscoveryDepth": 1}, "https://example.org/docs/a", Verdict.ADMITTED),
        ({"maxDiscoveryDepth": 0}, "https://example.org/docs/a", Verdict.TOO_DEEP),
        ({"includePaths": ["^/docs/a"]}, "https://example.org/docs/ab", Verdict.ADMITTED),
        ({"includePaths": ["^/docs/a"]}, "https://example.org/docs/b", Verdict.NOT_INCLUDED),
        ({"includePaths": ["guide", "b$"]}, "https://example.org/docs/b", Verdict.ADMITTED),
        ({"excludePaths": ["old"]}, "https://example.org/docs/old/a", Verdict.EXCLUDED),
        (
            {"excludePaths": ["old"], "includePaths": ["docs"]},
            "https://example.org/docs/old",
            Verdict.EXCLUDED,
        ),
        ({"includePaths": [r"\?page="]}, "https://example.org/docs/?page=2", Verdict.NOT_INCLUDED),
        (
            {"includePaths": [r"\?page="], "regexOnFullURL": True},
            "https://example.org/docs/?page=2",
            Verdict.ADMITTED,
        ),
        (
            {"excludePaths": ["^https://example"], "regexOnFullURL": True},
            "https://example.org/docs/a",
            Verdict.EXCLUDED,
        ),
        ({}, "https://example.org/docs/logo.png", Verdict.NOT_A_PAGE),
        ({}, "https://example.org/docs/paper.pdf", Verdict.ADMITTED),
    ],
)
def test_url_is_judged_by_the_options(options: dict, url: str, wanted: Verdict) -> None:
    assert scope(**options).admits(url, 1, START) is wanted


def test_external_links_lead_one_hop_out_of_the_site() -> None:
    asked = scope(allowExternalLinks=True)
    assert asked.admits("https://else.example/b", 2, "https://else.example/a") is Verdict.ELSEWHERE
    assert asked.admits(f"{START}b", 2, "https://else.example/a") is Verdict.ADMITTED


def test_sitemap_cannot_lead_to_other_sites() -> None:
    asked = scope(allowExternalLinks=True)
    assert asked.admits("https://else.example/", 0, None) is Verdict.ELSEWHERE


def test_address_and_key_follow_the_options() -> None:
    plain = scope()
    assert plain.address("a?b=1", START) == f"{START}a?b=1"
    assert plain.key("http://www.example.org/docs/index.html") == plain.key(START)
    bare = scope(ignoreQueryParameters=True, deduplicateSimilarURLs=False)
    assert bare.address("a?b=1", START) == f"{START}a"
    assert bare.key("http://www.example.org/docs/") != bare.key(START)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"limt": 5}, "limt"),
        ({"limit": 0}, "limit must be at least 1, not 0"),
        ({"limit": "many"}, "limit"),
        ({"maxDiscoveryDepth": -1}, "maxDiscoveryDepth must be at least 0"),
        ({"maxConcurrency": 0}, "maxConcurrency must be at least 1"),
        ({"delay": 0}, "delay must be more than 0"),
        ({"delay": 61}, "at most 60 seconds, not 61"),
        ({"sitemap": "maybe"}, "sitemap"),
        ({"includePaths": ["("]}, "includePaths: '(' is no regular expression"),
        ({"excludePaths": ["a(?=b)"]}, "excludePaths: 'a(?=b)' is not supported: lookaround"),
        ({"excludePaths": "old"}, "excludePaths"),
        ({"excludePaths": ["a" * 5000]}, "longer than 2000"),
        ({"includePaths": ["a"] * 1001}, "1001 patterns"),
        ([], "object"),
    ],
)
def test_bad_options_are_refused_by_name(given: Any, complaint: str) -> None:
    with pytest.raises(InvalidOptions) as refused:
        CrawlOptions.parse(given)
    assert complaint in str(refused.value)


@pytest.mark.parametrize("pattern", ["(?:/[a-z]+)+", "([a-z]+-)+$", "^/(a|b)+"])
def test_groups_that_repeat_are_taken(pattern: str) -> None:
    assert scope(includePaths=[pattern]).options.include_paths == (pattern,)


def test_options_are_written_with_the_names_they_came_with() -> None:
    given = {"limit": 5, "deduplicateSimilarURLs": False, "regexOnFullURL": True, "delay": 0.5}
    options = CrawlOptions.parse(given)
    assert options.to_wire() == given
    assert CrawlOptions.parse(options.to_wire()) == options
