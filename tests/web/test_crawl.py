"""A crawl from its start to its end, on every store."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.crawling import crawl, pages, path_of, work
from tests.web.site import Site
from windrow import Queue
from windrow.errors import InvalidOptions, JobNotFound
from windrow.ids import new_id
from windrow.pipelines.web import kickoff
from windrow.pipelines.web.answers import list_bad_answers
from windrow.queue.job import JobState
from windrow.services import web


async def test_every_page_is_fetched_once_and_becomes_a_document(queue: Queue, site: Site) -> None:
    site.page("/", links=["/a", "/b", "/a#part"])
    site.page("/a", links=["/", "/b", "/c"], title="Page A", text="Hay in rows")
    site.page("/b", links=["/a"])
    site.page("/c")

    crawl_id = await crawl(queue, site)

    assert await pages(queue, crawl_id) == {"/", "/a", "/b", "/c"}
    assert {path: site.hits[path] for path in ("/", "/a", "/b", "/c")} == dict.fromkeys(
        ("/", "/a", "/b", "/c"), 1
    )
    found = await web.get_crawl(queue, crawl_id)
    assert (found.status, found.completed, found.failed, found.total) == ("completed", 4, 0, 4)
    root = await queue.get(crawl_id)
    assert root.state is JobState.COMPLETED
    assert root.result is None
    assert root.progress is not None
    assert root.progress.percent == 100
    jobs = [job async for job in web.iterate_pages(queue, crawl_id)]
    [a] = [job for job in jobs if job.payload["url"].endswith("/a")]
    document = web.document_of(a)
    assert document.markdown is not None
    assert "Hay in rows" in document.markdown
    assert document.metadata.title == "Page A"
    assert document.metadata.scrape_id == a.id
    assert document.links is None, "nobody asked for them"


async def test_payloads_carry_what_queries_for_crawls_ask_for(queue: Queue, site: Site) -> None:
    """N10."""
    site.page("/", links=["/a"])
    site.page("/a")
    crawl_id = await crawl(queue, site, limit=5)

    kickoff = (await queue.get(crawl_id)).payload
    assert kickoff["mode"] == "kickoff"
    assert kickoff["crawl_id"] == crawl_id
    for job in await queue.list(group=crawl_id):
        assert job.payload["mode"] == "single_urls"
        assert job.payload["crawl_id"] == crawl_id
        assert job.payload["team_id"] == "bypass"
        assert job.payload["crawlerOptions"] == {"limit": 5}
        assert job.payload["url"].startswith(site.url)


async def test_crawl_whose_start_redirects_to_what_robots_txt_forbids_has_a_warning(
    queue: Queue, site: Site
) -> None:
    site.robots("User-agent: *\nDisallow: /private\n")
    site.redirect("/", "/private/start")
    site.page("/private/start")

    crawl_id = await crawl(queue, site, llmsTxt=False, sitemap="skip")

    found = await web.get_crawl(queue, crawl_id)
    assert (found.status, found.completed, found.failed) == ("completed", 0, 1)
    errors = await web.get_errors(queue, crawl_id)
    assert [error.code for error in errors.errors] == ["SCRAPE_BLOCKED_BY_ROBOTS"]
    assert errors.robots_blocked == [f"{site.url}/private/start"]
    warning = await web.warning_of(queue, found)
    assert warning is not None
    assert f"robots.txt forbids {site.url}/private/start" in warning


async def test_what_robots_txt_forbids_is_noted_and_goes_with_the_crawl(
    queue: Queue, site: Site
) -> None:
    site.robots("User-agent: *\nDisallow: /private\nDisallow: /listed\n")
    site.page("/", links=["/private/b", "/private/a", "/open"])
    site.page("/open", links=["/private/a", "/private/c"])
    site.sitemap("/sitemap.xml", ["/listed", "/open"])
    crawl_id = await crawl(queue, site)

    assert await pages(queue, crawl_id) == {"/", "/open"}
    blocked = (await web.get_errors(queue, crawl_id)).robots_blocked
    paths = ["/listed", "/private/a", "/private/b", "/private/c"]
    assert sorted(blocked) == [f"{site.url}{path}" for path in paths]
    assert not any(path.startswith("/private") for path in site.hits)


async def test_group_of_a_crawl_whose_beginning_is_given_up_ends_all_the_same(
    queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_down(*_: Any) -> None:
        raise RuntimeError("the sitemap cannot be read")

    monkeypatch.setattr(kickoff, "_add_named", break_down)
    crawl_id = new_id()
    payload = {"url": site.url, "crawl_id": crawl_id}
    await queue.enqueue("web.crawl", payload, queue="web", id=crawl_id, max_attempts=1)
    await work(queue)

    found = await web.get_crawl(queue, crawl_id)
    assert (found.status, found.error) == ("failed", "RuntimeError: the sitemap cannot be read")
    assert (await queue.group(crawl_id)).ended_at is not None


async def test_pages_that_answer_with_an_error_are_noted_each_once(
    queue: Queue, site: Site
) -> None:
    site.page("/", links=["/gone", "/broken", *(f"/lost/{n}" for n in range(20))])
    site.page("/broken", status=500, text="boom")
    crawl_id = await crawl(queue, site)

    found = await list_bad_answers(queue, crawl_id)
    assert sorted((path_of(one.url), one.status, one.may_pass) for one in found) == [
        ("/broken", 500, True),
        ("/gone", 404, False),
        *sorted((f"/lost/{n}", 404, False) for n in range(20)),
    ]
    assert [one.job for one in found] == sorted(one.job for one in found)
    last = found[-1]
    assert await list_bad_answers(queue, crawl_id, since=last.job) == [last]
    assert (await web.get_crawl(queue, crawl_id)).completed == 23


async def test_pages_whose_server_failed_are_fetched_again_once_as_a_batch(
    queue: Queue, site: Site
) -> None:
    site.page("/", links=["/gone", "/broken"])
    site.page("/broken", first=[500])
    crawl_id = await crawl(queue, site, scrape_options={"formats": ["markdown", "links"]})
    with pytest.raises(JobNotFound):
        await web.fetch_again(queue, crawl_id, tenant="other")

    again = await web.fetch_again(queue, crawl_id)
    assert (await web.fetch_again(queue, crawl_id)).id == again.id
    await work(queue)

    assert await pages(queue, again.id) == {"/broken"}
    assert await list_bad_answers(queue, again.id) == []
    [page] = await queue.list(group=again.id)
    assert (
        page.payload["scrapeOptions"]["formats"]
        == (await queue.get(crawl_id)).payload["scrapeOptions"]["formats"]
    )
    assert (site.hits["/broken"], site.hits["/gone"]) == (2, 1)
    with pytest.raises(InvalidOptions):
        await web.fetch_again(queue, again.id)
