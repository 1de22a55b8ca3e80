"""`windrow scrape`, `crawl`, `batch` and `map` on a site of this machine."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.builders import UNKNOWN_ID
from tests.cli.conftest import Read, Windrow
from tests.web.conftest import own_kinds, site, site_server  # noqa: F401
from tests.web.crawling import LOOPBACK, path_of
from tests.web.site import Page, Site
from windrow import Queue, Worker
from windrow.cli import web as commands
from windrow.cli.web_progress import ProgressLine, describe
from windrow.ids import new_id
from windrow.ingest.web.scope import CrawlOptions
from windrow.pipelines.web.handlers import web_handlers
from windrow.pipelines.web.mapping import MapOptions
from windrow.queue.records import WorkerRow
from windrow.services.attending import Pace, attend
from windrow.services.web import start_scrape
from windrow.settings import Settings

ALLOWED = {"WINDROW_ALLOW_HOSTS": "127.0.0.0/8"}


@pytest.fixture
def small(site: Site) -> Site:  # noqa: F811
    site.page("/", links=["/a", "/b"])
    site.page("/a", links=["/", "/c"])
    site.page("/b")
    site.page("/c")
    return site


def test_scrape_prints_pages_as_markdown_or_json(windrow: Windrow, read: Read, small: Site) -> None:
    printed = windrow("scrape", f"{small.url}/a", f"{small.url}/b", **ALLOWED)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert "# Page /a" in printed.stdout
    assert printed.stdout.index("# Page /a") < printed.stdout.index("# Page /b")

    [page] = read("scrape", f"{small.url}/a", "--format", "links", **ALLOWED)
    assert page["state"] == "completed"
    assert f"{small.url}/c" in page["document"]["links"]


@pytest.mark.parametrize("command", ["scrape", "crawl", "batch"])
def test_pages_are_found_by_a_search_unless_told_otherwise(
    windrow: Windrow, read: Read, small: Site, command: str
) -> None:
    small.page("/", title="Clover", text="A meadow of clover.")
    assert windrow(command, f"{small.url}/", "--no-index", **ALLOWED).returncode == 0
    assert read("search", "clover")["results"] == []

    assert windrow(command, f"{small.url}/", **ALLOWED).returncode == 0
    assert [one["uri"] for one in read("search", "clover")["results"]] == [f"{small.url}/"]
    assert read("sources", "list")[0]["pending"] == 0


def test_page_that_turns_out_to_be_another_one_is_not_counted_as_failed(
    windrow: Windrow, read: Read, small: Site
) -> None:
    small.redirect("/b", "/a")
    printed = windrow("crawl", f"{small.url}/", "--quiet", **ALLOWED)
    assert "completed  3 pages, 0 failed" in printed.stdout
    assert printed.stderr == ""


def test_scrape_that_fails_says_why_and_exits_with_1(windrow: Windrow, small: Site) -> None:
    """Without the setting this machine is nobody's business."""
    printed = windrow("scrape", small.url)
    assert (printed.returncode, printed.stdout) == (1, "")
    assert printed.stderr.startswith(f"failed: {small.url}/: ")
    assert small.hits == {}


def test_scrape_prints_the_warnings_of_pages_to_stderr(windrow: Windrow, small: Site) -> None:
    body = f"<p>Wait</p><div id=app hidden><p>{'A text of the page. ' * 20}</p></div>"
    small.put("/hidden", Page(body.encode()))
    printed = windrow("scrape", f"{small.url}/hidden", **ALLOWED)
    assert "A text of the page." in printed.stdout
    assert printed.stderr.startswith(f"warning: {small.url}/hidden: ")
    assert printed.returncode == 0


REFUSED = [
    (["crawl"], "give a URL"),
    (["crawl", "https://example.org", "--resume", "0190a0b0"], "give a URL"),
    (["crawl", "https://example.org", "--limit", "0"], "limit"),
    (["crawl", "https://example.org", "--include-paths", "("], "includePaths"),
    (["crawl", "https://example.org", "--format", "papyrus"], "papyrus"),
    (["scrape", "http://"], "no address"),
    (["scrape", "https://example.org", "--set", "depth=1"], "depth"),
    (["scrape", "https://example.org", "--header", "nonsense"], "NAME:VALUE"),
    (["batch", "https://example.org", "nonsense"], "nonsense"),
]


def test_what_cannot_be_asked_for_is_refused_with_2(windrow: Windrow) -> None:
    for words, told in REFUSED:
        printed = windrow(*words)
        assert (printed.returncode, printed.stdout) == (2, ""), words
        assert told in printed.stderr
    assert windrow("crawl", "--resume", UNKNOWN_ID).returncode == 1
    assert windrow("jobs", "list", "--json").stdout.strip() == "[]"


def test_crawl_writes_a_file_for_each_page(windrow: Windrow, read: Read, small: Site) -> None:
    printed = windrow("crawl", small.url, "--out", "pages", **ALLOWED)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert "4 pages, 0 failed" in printed.stdout
    folder = Path("pages") / f"127.0.0.1-{small.port}"
    assert sorted(path.name for path in folder.iterdir()) == ["a.md", "b.md", "c.md", "index.md"]
    assert (folder / "c.md").read_text().startswith("# Page /c")

    crawl_id = printed.stdout.split()[0]
    again = read("crawl", "--resume", crawl_id[:18], **ALLOWED)
    assert (again["id"], again["status"], again["completed"]) == (crawl_id, "completed", 4)
    assert {page["metadata"]["title"] for page in again["data"]} >= {"Page /a", "Page /c"}
    assert set(small.hits.values()) == {1}


def test_error_answers_of_a_crawl_are_failed_and_not_written(
    windrow: Windrow, read: Read, small: Site, tmp_path: Path
) -> None:
    small.page("/", links=["/a", "/gone", "/broken", "/loop"])
    small.page("/a")
    small.redirect("/loop", "/loop")
    small.page("/broken", status=500, text="An error page of the server.")
    out = tmp_path / "pages"
    printed = windrow("crawl", small.url, "--out", str(out), **ALLOWED)

    assert printed.returncode == 0
    assert "2 pages, 3 failed" in printed.stdout
    assert "2 written to" in printed.stdout
    assert f"failed: {small.url}/gone: its server answered with status 404 (Not Found)" in (
        printed.stderr
    )
    assert f"failed: {small.url}/broken: its server answered with status 500" in printed.stderr
    assert sorted(path.stem for path in out.rglob("*.md")) == ["a", "index"]
    assert len((out / "pages.jsonl").read_text().splitlines()) == 2

    run = read("crawl", small.url, **ALLOWED)
    assert (run["total"], run["completed"], run["failed"], len(run["data"])) == (5, 2, 3, 2)
    assert {path_of(one["url"]) for one in run["errors"]} == {"/gone", "/broken", "/loop"}


def test_crawl_that_has_only_error_pages_exits_with_1(windrow: Windrow, small: Site) -> None:
    small.page("/", status=503, text="Come back later.")
    printed = windrow("crawl", small.url, "--no-llms-txt", **ALLOWED)

    assert printed.returncode == 1
    assert "0 pages, 1 failed" in printed.stdout


def test_crawl_that_robots_txt_forbids_warns_and_exits_with_1(
    windrow: Windrow, small: Site
) -> None:
    small.robots("User-agent: *\nDisallow: /\n")
    printed = windrow("crawl", small.url, **ALLOWED)

    assert printed.returncode == 1
    assert f"warning: Nothing was crawled, because robots.txt forbids {small.url}/" in (
        printed.stderr
    )
    assert small.pages_hit() == set()


def test_scrape_of_an_http_error_prints_no_page_and_exits_with_1(
    windrow: Windrow, small: Site, tmp_path: Path
) -> None:
    small.page("/broken", status=500, text="An error page of the server.")
    urls = (f"{small.url}/broken", f"{small.url}/b")
    printed = windrow("scrape", *urls, **ALLOWED)

    assert printed.returncode == 1
    assert "# Page /b" in printed.stdout
    assert "An error page" not in printed.stdout
    assert printed.stderr.startswith(
        f"failed: {small.url}/broken: its server answered with status 500 (Internal Server Error)"
    )

    [broken, _] = json.loads(windrow("scrape", *urls, "--json", **ALLOWED).stdout)
    assert broken["error"] == "its server answered with status 500 (Internal Server Error)"
    assert "An error page" in broken["document"]["markdown"]

    out = tmp_path / "pages"
    assert windrow("scrape", *urls, "--out", str(out), **ALLOWED).returncode == 1
    assert [path.stem for path in out.rglob("*.md")] == ["b"]


def test_options_of_a_crawl_reach_it(read: Read, small: Site) -> None:
    words = ["--exclude-paths", "/a", "--sitemap", "skip", "--no-llms-txt", "--ignore-robots-txt"]
    done = read("crawl", small.url, *words, "--max-discovery-depth", "1", **ALLOWED)
    assert done["completed"] == 2
    assert set(small.hits) == {"/", "/b"}


@pytest.mark.parametrize(
    ("command", "options"), [(commands.crawl, CrawlOptions), (commands.map_, MapOptions)]
)
def test_every_option_has_a_flag(command: object, options: type[CrawlOptions]) -> None:
    assert callable(command)
    given = set(inspect.signature(command).parameters)
    assert set(options.__struct_fields__) - given == set()


def test_pages_that_failed_are_tried_again_alone(windrow: Windrow, read: Read, small: Site) -> None:
    small.redirect("/b", "http://10.255.255.1/")  # a private network
    printed = windrow("crawl", small.url, **ALLOWED)
    assert (printed.returncode, "3 pages, 1 failed" in printed.stdout) == (0, True)
    assert f"failed: {small.url}/b: " in printed.stderr

    small.page("/b")
    small.forget()
    done = read("crawl", "--retry-failed", printed.stdout.split()[0], **ALLOWED)
    assert (done["completed"], done["failed"], done["errors"]) == (4, 0, [])
    assert small.pages_hit() == {"/b"}


def test_batch_takes_its_urls_from_stdin(windrow: Windrow, small: Site) -> None:
    lines = f"{small.url}/a\n\n{small.url}/b\n{small.url}/a\n"
    printed = windrow("batch", "-", "--out", "pages", input=lines, **ALLOWED)
    assert (printed.returncode, "2 pages, 0 failed" in printed.stdout) == (0, True)
    assert len(list(Path("pages").rglob("*.md"))) == 2
    assert small.hits == {"/a": 1, "/b": 1}


def test_map_lists_addresses(windrow: Windrow, read: Read, small: Site) -> None:
    printed = windrow("map", small.url, **ALLOWED)
    assert printed.stdout.split() == [f"{small.url}/{path}" for path in ("", "a", "b")]
    assert read("map", small.url, "--limit", "1", **ALLOWED) == {"links": [f"{small.url}/"]}


def test_ctrl_c_leaves_a_crawl_that_goes_on_where_it_was(
    store_url: str,
    tmp_path: Path,
    site: Site,  # noqa: F811
) -> None:
    """A8: what was done is not done again."""
    start = site.generate(40, seconds=0.5)  # there is time to interrupt it
    options = ["--concurrency", "2", "--crawl-entire-domain", "--limit", "25", "--json"]
    first = start_process(store_url, tmp_path, "crawl", start, *options)
    try:
        while len(site.pages_hit()) < 5:
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"it ended with {first.wait(0.02)}")
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=60)
    finally:
        first.kill()
        first.wait()
    left = json.loads(out)
    assert (first.returncode, left["status"], left["is_interrupted"]) == (130, "scraping", True)
    assert f"windrow crawl --resume {left['id']}" in err
    had = {path_of(page["metadata"]["sourceURL"]) for page in left["data"]}
    assert 0 < len(had) < 25

    site.generate(40)
    second = start_process(store_url, tmp_path, "crawl", "--resume", left["id"], "--json")
    out, err = second.communicate(timeout=60)
    done = json.loads(out)
    assert (second.returncode, done["status"], done["completed"]) == (0, "completed", 25), err
    assert {site.hits[path] for path in had} == {1}
    assert len(site.pages_hit()) == 25


def start_process(store_url: str, folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "windrow", *words],
        cwd=folder,
        env={**os.environ, "WINDROW_DATABASE_URL": store_url, **ALLOWED},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_nobody_works_here_while_another_worker_does(store_url: str, small: Site) -> None:
    async with Queue.open(store_url) as queue, web_handlers(queue, guard=LOOPBACK) as handlers:
        other = Worker(queue, handlers, name="other")
        working = asyncio.create_task(other.run())
        async with asyncio.timeout(30):
            while not await queue.workers():
                await asyncio.sleep(0.01)
        async with attend(Settings(database_url=store_url)) as attendance:
            job = await start_scrape(attendance.queue, f"{small.url}/a")
            assert (await attendance.wait(job.id)).result is not None
            assert [one.name for one in await queue.workers()] == ["other"]
        other.stop()
        await working


async def test_a_worker_that_was_killed_is_not_waited_for(store_url: str, small: Site) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    async with Queue.open(store_url) as queue:
        host = socket.gethostname()
        killed = WorkerRow(new_id(), "killed", host, ended.pid, None, None, concurrency=10)
        await queue.store.register_worker(killed, 600)
    settings = Settings(database_url=store_url, allow_hosts="127.0.0.0/8")
    async with attend(settings) as attendance:
        job = await start_scrape(attendance.queue, f"{small.url}/a")
        assert (await attendance.wait(job.id)).result is not None


def test_progress_shows_pages_rate_failures_and_the_time_left() -> None:
    class Crawl:
        completed, failed, pending = 30, 2, 90

    pace = Pace()
    pace.note(100.0, 2)
    assert describe(Crawl, pace)["left"] == ""  # type: ignore[arg-type]
    pace.note(110.0, 32)
    shown = describe(Crawl, pace)  # type: ignore[arg-type]
    assert shown == {"rate": "3.0/s", "failed": "2 failed", "left": "0:30 left"}
    with ProgressLine(is_shown=False) as line:
        line.show(Crawl)  # type: ignore[arg-type]
