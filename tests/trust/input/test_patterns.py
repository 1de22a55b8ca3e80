"""Patterns of one person do not stop the work of others, wherever a pattern is taken."""

from __future__ import annotations

import itertools
import multiprocessing
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import msgspec
import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.api.server import Server
from tests.trust.scorecard import record
from tests.web.crawling import crawl, pages
from tests.web.site import Site, SiteServer
from windrow import Queue
from windrow.errors import InvalidOptions, InvalidSearch
from windrow.index.globs import fits, to_regex
from windrow.ingest.convert import convert
from windrow.ingest.convert.selectors import select
from windrow.ingest.document import Resource
from windrow.ingest.enrich.llm import _validator
from windrow.ingest.files.ignore import Rules
from windrow.ingest.files.walk import WalkOptions, walk
from windrow.ingest.options import ScrapeOptions
from windrow.ingest.web.scope import CrawlOptions, Scope
from windrow.patterns import MAX_PROGRAM_SIZE, compile_pattern, compile_patterns
from windrow.queue.job import JobState
from windrow.search.request import SearchRequest
from windrow.services import web

PATH = "/" + "a" * 39 + "!"  # 41 characters
HOSTILE = [
    "([a-z]+[a-z]?)+$",
    "([a-z]?[a-z]+)+$",
    "(?:[a-z]+)+$",
    "(a|a)+$",
    "(a|aa)+$",
    "(a*)*$",
    "((a+)?)+$",
    "(([a-z])+.?)+[A-Z]$",
    "(.*a){30}[^a!]$",
    "(a?){40}a{40}$",
    "^(/?(a|b|ab)*)*c$",
    "(.+)+(.+)+(.+)+x$",
]
STARS = "**/*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"  # as a glob
QUIET: dict[str, Any] = {"sitemap": "skip", "llmsTxt": False}
SECONDS = 30  # a backtracking engine needs years


@pytest.fixture(scope="module")
def site_server() -> Any:
    with SiteServer() as server:
        yield server


@pytest.fixture
def site(site_server: SiteServer) -> Site:
    site = site_server.site()
    site.page("/", links=[PATH, "/b"])
    site.page(PATH)
    site.page("/b")
    return site


def ends(target: Callable[..., object], *arguments: Any) -> bool:
    """Whether a function returns in time, in a process that can be killed: a search by `re` holds
    the interpreter, so no timeout in this process would end it."""
    process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
        return False
    return process.exitcode == 0


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_pattern_of_a_crawl_ends(pattern: str) -> None:
    def search() -> None:
        for option in ("includePaths", "excludePaths"):
            scope = Scope("https://example.org/", CrawlOptions.parse({option: [pattern]}))
            scope.admits(f"https://example.org{PATH}", 1)
            scope.admits(f"https://example.org/{'a' * 1900}!", 1)

    assert ends(search)


@pytest.mark.parametrize("glob", [STARS, "**/" * 30 + "b", "[a-z]*" * 40 + "!"])
def test_a_hostile_glob_of_a_search_ends(glob: str) -> None:
    assert ends(fits, glob, f"{'a/' * 500}{'a' * 1000}")


@pytest.mark.parametrize("rule", [STARS, "*a" * 40 + "b", "a/**/" * 30 + "b", "*?" * 60 + "!"])
def test_a_hostile_rule_in_a_file_of_rules_ends(rule: str) -> None:
    def decide() -> None:
        rules = Rules([rule, "*.log"])
        rules.decide("a/" * 500 + "a" * 250, is_folder=False)
        assert rules.decide("a.log", is_folder=False)

    assert ends(decide)


def test_a_long_line_in_a_file_of_rules_keeps_the_others() -> None:
    rules = Rules(["*a" * 50_000, *["*b" * 2000] * 200, "*.log"])
    assert rules.decide("a.log", is_folder=False)
    assert rules.decide("a.txt", is_folder=False) is None


@pytest.mark.parametrize("option", ["patterns", "ignore_patterns"])
def test_a_long_rule_of_a_person_is_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(InvalidOptions, match=f"a pattern of {option} is longer than 4096"):
        walk(tmp_path, msgspec.convert({option: ["*a" * 50_000]}, WalkOptions))


@pytest.mark.parametrize("key", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("joint", ["allOf", "anyOf"])
def test_references_that_multiply_are_refused(key: str, joint: str) -> None:
    doubled = {f"d{at}": {joint: [{key: f"#/$defs/d{at + 1}"}] * 2} for at in range(30)}
    with pytest.raises(InvalidOptions, match="more than 20000 parts"):
        _validator({"$defs": {**doubled, "d30": {}}, "$ref": "#/$defs/d0"})


def test_references_of_usual_schemas_are_followed() -> None:
    node = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#/$defs/a~1b"}}}
    validate = _validator({**node, "$defs": {"a/b": {"type": "object"}}})
    assert validate is not None
    assert validate.problem({"left": {"left": {"right": {}}}}) is None
    assert validate.problem({"left": {"left": {"right": 5}}}) is not None
    for reference in ("other.json", "#/$defs/none"):
        with pytest.raises(InvalidOptions, match="schema"):
            _validator({"$ref": reference})


@pytest.mark.parametrize("joint", ["allOf", "anyOf"])
def test_a_schema_that_refers_to_itself_twice_ends_with_a_deep_answer(joint: str) -> None:
    twice = {joint: [{"$ref": "#/$defs/a"}] * 2}
    schema = {"$defs": {"a": {"properties": {"c": twice}}}, "$ref": "#/$defs/a"}
    value: dict[str, Any] = {}
    for _ in range(60):
        value = {"c": value}

    def validate() -> None:
        validate = _validator(schema)
        assert validate is not None
        assert validate.problem({"c": {"c": {}}}) is None
        assert "nested too deeply" in (validate.problem(value) or "")

    assert ends(validate)


def test_deep_trees_and_lists_are_validated() -> None:
    node = {"$ref": "#/$defs/node"}
    shape = {
        "properties": {"left": node, "right": node, "others": {"items": node}},
        "additionalProperties": False,
    }
    validate = _validator({"$defs": {"node": shape}, **node})
    assert validate is not None
    value: dict[str, Any] = {}
    for _ in range(100):
        value = {"left": value, "right": {}, "others": [{}]}
    assert validate.problem(value) is None
    assert validate.problem({"others": [{"left": {"up": 1}}]}) is not None


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_pattern_in_a_schema_ends(pattern: str) -> None:
    def validate() -> None:
        schema = {
            "properties": {"a": {"pattern": pattern}},
            "patternProperties": {pattern: {"type": "number"}},
            "additionalProperties": {"type": "string"},
        }
        validate = _validator(schema)
        assert validate is not None
        validate.problem({"a": PATH, PATH: "hay"})

    assert ends(validate)


@pytest.mark.parametrize("glob", [STARS, "**/" * 30 + "b", "[a-z]*" * 40 + "!"])
async def test_a_hostile_glob_ends_in_postgres_too(postgres_url: str, glob: str) -> None:
    path = f"{'a/' * 500}{'a' * 1000}"
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute(f"SET statement_timeout = '{SECONDS}s'")
        found = await connection.fetchval("SELECT $1::text ~ $2::text", path, to_regex(glob))
        assert found == fits(glob, path)
    finally:
        await connection.close()


def test_other_tenants_are_answered_while_hostile_patterns_are_matched(
    tmp_path: Path, site: Site
) -> None:
    with Server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        begun = []
        for pattern in HOSTILE:
            body = {"url": site.url, "excludePaths": [pattern], "limit": 5}
            begun.append(client.post("/v2/crawl", json=body).json()["id"])
            assert client.get("/health").status_code == 200
        body = {"url": site.url, "url_exclude_patterns": [STARS]}
        assert client.post("/api/knowledge-items/crawl", json=body).status_code == 200
        deadline = time.monotonic() + 60
        for crawl_id in begun:
            while (status := client.get(f"/v2/crawl/{crawl_id}").json())["status"] == "scraping":
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert (status["status"], status["completed"]) == ("completed", status["total"])
    record(
        "patterns_bounded",
        "patterns that freeze a backtracking engine",
        store="sqlite",
        jobs=len(HOSTILE) + 1,
        faults=len(HOSTILE) + 1,
        lost=0,
        doubled=0,
        note="crawls with them, on a server that others were answered by meanwhile",
    )


def test_a_selector_that_is_not_taken_is_a_bad_request(tmp_path: Path, site: Site) -> None:
    with Server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        body = {"url": site.url, "includeTags": ["div:has(div:has(p))"]}
        refused = client.post("/v2/scrape", json=body)
        assert (refused.status_code, refused.json()["code"]) == (400, "BAD_REQUEST")


async def test_a_waiting_crawl_whose_pattern_is_not_supported_fails_and_says_why(
    tmp_path: Path, site: Site
) -> None:
    async with Queue.open(f"sqlite:///{tmp_path}/jobs.db") as queue:
        good = await web.start_crawl(queue, site.url, QUIET)
        bad = await web.start_crawl(queue, site.url, QUIET)
        job = await queue.get(bad)
        options = {**job.payload["crawlerOptions"], "excludePaths": ["^(?!/b)"]}
        await queue.edit(bad, payload={**job.payload, "crawlerOptions": options})
        await crawl(queue, site, **QUIET)
        failed = await queue.get(bad)
        assert failed.state is JobState.FAILED
        assert "'^(?!/b)' is not supported: lookaround" in (failed.error or "")
        assert await pages(queue, good) == {"/", "/b", PATH}


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("a(?=b)", "is not supported: lookaround, '(?='"),
        ("(?<!a)b", "is not supported: lookaround, '(?<!'"),
        (r"(a)\1", r"is not supported: back-references"),
        ("(?>a)", "is not supported: '(?>'"),
        ("(a{100}){100}", "no regular expression: invalid repetition size"),
        (r"\pL{900}", "too large once its repetitions are written out"),
        ("(", "no regular expression: missing )"),
        ("a\ud800(", "no regular expression"),
    ],
)
def test_a_pattern_that_is_not_taken_is_named(pattern: str, complaint: str) -> None:
    with pytest.raises(InvalidOptions) as refused:
        compile_pattern(pattern, "includePaths")
    assert str(refused.value).startswith(f"includePaths: {pattern!r} ")
    assert complaint in str(refused.value)


def test_patterns_are_bounded_together() -> None:
    assert len(compile_patterns(["/blog/.*", r"\.pdf$"] * 500, "excludePaths")) == 1000
    with pytest.raises(InvalidOptions, match="excludePaths: the patterns are too large together"):
        compile_patterns(["[a-z]?" * 300 + "é"] * (MAX_PROGRAM_SIZE // 600), "excludePaths")


def test_a_glob_that_is_too_large_is_refused_by_the_search() -> None:
    for glob in ("a" * 2001, "[" * 1_000_000):
        with pytest.raises(InvalidSearch, match="longer than 2000"):
            SearchRequest(query="hay", path=glob).check()


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        ("^/blog/.*$", "/blog/a", True),
        (r"/\d{4}/\d{2}/[^/]+\.html?$", "/2026/01/hay.htm", True),
        (r"\bold\b", "/the-old-barn", True),
        (r"(?i)/DOCS", "/docs", True),
        (r"(?P<year>\d+)-(?<month>\d+)", "/2026-01", True),
        (r"/a\Z", "/a", True),
        (r"/a\z", "/ab", False),
        (r"\\Z", r"\Z", True),
        (r"\p{Cyrillic}+", "/сено", True),
        ("^(?:/en|/de)?/(?:docs|api)/", "/de/api/", True),
        ("[^/]+\\.(?:png|jpe?g)$", "/a.jpeg", True),
    ],
)
def test_usual_patterns_mean_what_they_mean_elsewhere(
    pattern: str, text: str, is_found: bool
) -> None:
    assert compile_pattern(pattern, "includePaths").is_in(text) is is_found


NESTED = f"<html><body>{'<div>' * 400}hay{'</div>' * 400}</body></html>"


@pytest.mark.parametrize(
    "selector",
    [
        "p div div div div div div div",
        "p " + "div " * 200,
        "p ~ div ~ div > div div div",
        "p > div div + div div div div div",
        "div:has(p)",
        "div:not(:not(:not(div)))",
        ", ".join(["div"] * 800),
    ],
)
def test_a_hostile_selector_ends(selector: str) -> None:
    assert ends(lambda: select(LexborHTMLParser(NESTED), selector, "includeTags"))


@pytest.mark.parametrize(
    "selector",
    [
        "div:has(div div p)",
        "div:has(div:has(p))",
        "div:not(:has(div:has(p)))",
        "[title='('] div:is(p div div)",
        "a > > b",
        "a >",
        "> a b",
        "div:has(p",
        "div!",
        "div " * 2000,
        "p/*'*/ div div div div div div div div/*'*/",
        "div:is(p/*[*/ div div div div div div div/*]*/)",
        r"div:h\61s(div:has(p))",
        f"{'div:not(' * 9}p{')' * 9}",
    ],
)
def test_a_selector_that_is_not_taken_is_named(selector: str) -> None:
    with pytest.raises(InvalidOptions, match=r"^includeTags: "):
        select(LexborHTMLParser(NESTED), selector, "includeTags")


@pytest.mark.parametrize(
    "selector",
    ["p:nth-child(n)", "p:nth-last-of-type(n)", "*:first-of-type", "*:has(~ q)", "p:has(q, ~ q)"],
)
def test_siblings_of_a_large_page_are_not_looked_at_by_each_other(selector: str) -> None:
    page = LexborHTMLParser("<p>hay" * 80_000)
    with pytest.raises(InvalidOptions, match="takes too long on a page as large as this"):
        select(page, selector, "includeTags")
    assert len(select(page, "p:last-child, p:first-child", "includeTags")) == 2


def test_a_count_inside_of_has_is_weighed_by_both() -> None:
    table = f"<table>{'<tr><td>hay<td>hay' * 200}</table>"
    assert len(select(LexborHTMLParser(table * 30), "tr:has(td:nth-child(2))", "x")) == 6000
    nested = f"{'<div>' * 500}{'<p>hay' * 500}{'</div>' * 500}"
    with pytest.raises(InvalidOptions, match="takes too long"):
        select(LexborHTMLParser(nested * 50), "div:has(p:nth-child(n))", "x")


def test_selectors_of_one_page_share_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(seconds)))
    options = ScrapeOptions.parse({"excludeTags": [f".x{at}" for at in range(100)]})
    url = "https://example.org/"
    resource = Resource(url, url, 200, b"<p class=x1>hay</p>", content_type="text/html")
    with pytest.raises(InvalidOptions, match="excludeTags: matching one page took more than 5 s"):
        convert(resource, options)


def test_usual_selectors_find_what_lexbor_finds() -> None:
    rng = random.Random(7)
    tags, joints = (
        ["div", "p", "a", ".x", "#y", "[title]", "*", "p:not(.x)"],
        [" ", " > ", "+", " ~ "],
    )

    def element(depth: int) -> str:
        inside = "".join(element(depth - 1) for _ in range(rng.randrange(4))) if depth else "hay"
        said = rng.choice(["", " class=x", " id=y", " title='a > b, c'"])
        tag = rng.choice(["div", "a", "section"])
        return f"<{tag}{said}>{inside}</{tag}> text "

    for _ in range(60):
        page = LexborHTMLParser(f"<html><body>{element(4)}<p class=x>{element(0)}</body></html>")
        steps = [rng.choice(tags) + rng.choice(joints) for _ in range(rng.randrange(3))]
        selector = "".join(steps) + rng.choice(tags)
        if rng.random() < 0.3:
            selector += ", a:has(> .x), div:nth-child(2n + 1)"
        wanted = {node.mem_id for node in page.css(selector)}
        assert {node.mem_id for node in select(page, selector, "includeTags")} == wanted, selector
