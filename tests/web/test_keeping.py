"""Pages of earlier scrapes: handed out again, asked for again, compared."""

from __future__ import annotations

import re
from typing import Any

from tests.ingest.enrich.chat import KEY, as_json, open_chat, page_of
from tests.web.crawling import LOOPBACK, crawl, work
from tests.web.site import Site
from windrow import Queue, Worker
from windrow.ingest.document import Document
from windrow.ingest.enrich.llm import Model
from windrow.pipelines.web.handlers import web_handlers
from windrow.queue.job import JobState
from windrow.services import web


async def scraped(queue: Queue, url: str, tenant: str | None = None, **options: Any) -> Document:
    job = await web.start_scrape(queue, url, options, tenant=tenant)
    await work(queue)
    return web.document_of(await queue.get(job.id))


async def failure(queue: Queue, url: str, **options: Any) -> str:
    job = await web.start_scrape(queue, url, options)
    await work(queue)
    failed = await queue.get(job.id)
    assert failed.state is JobState.FAILED
    assert failed.attempts == 1, "another try would find no more"
    return failed.error or ""


async def test_page_is_handed_out_again_while_it_is_young_enough(queue: Queue, site: Site) -> None:
    """N4: cacheState and cachedAt."""
    site.page("/", text="Hay", links=["/a"])
    url = f"{site.url}/"
    first = await scraped(queue, url, maxAge=60_000, formats=["markdown", "links"])
    assert first.metadata.cache_state == "miss"
    site.page("/", text="Straw")

    again = await scraped(queue, url, maxAge=60_000, formats=["links", "markdown"])
    assert site.hits["/"] == 1
    assert (again.markdown, again.links) == (first.markdown, first.links)
    assert again.metadata.cache_state == "hit"
    assert again.metadata.cached_at is not None
    assert again.metadata.scrape_id != first.metadata.scrape_id

    assert (await scraped(queue, url)).metadata.cache_state is None, "nobody asked for an old one"
    fresh = await scraped(queue, url, maxAge=0)
    assert "Straw" in (fresh.markdown or "")
    others = await scraped(queue, url, maxAge=60_000, tenant="acme")
    assert others.metadata.cache_state == "miss", "of another tenant"
    own = await scraped(queue, url, maxAge=60_000, headers={"X-Me": "1"})
    assert own.metadata.cache_state == "miss", "with headers of somebody's own"
    assert site.hits["/"] == 5


async def test_nothing_is_fetched_where_only_earlier_scrapes_are_allowed(
    queue: Queue, site: Site
) -> None:
    site.page("/", text="Hay")
    url = f"{site.url}/"
    assert "SCRAPE_NO_CACHED_DATA: " in await failure(queue, url, lockdown=True)
    assert site.hits["/"] == 0

    await scraped(queue, url, storeInCache=False)
    assert "SCRAPE_NO_CACHED_DATA: " in await failure(queue, url, minAge=1)
    await scraped(queue, url)
    assert "Hay" in ((await scraped(queue, url, lockdown=True)).markdown or "")
    assert "Hay" in ((await scraped(queue, url, minAge=1)).markdown or "")
    assert "SCRAPE_NO_CACHED_DATA: " in await failure(queue, url, minAge=3_600_000)
    assert site.hits["/"] == 2


async def test_server_is_asked_whether_an_old_page_is_still_the_same(
    queue: Queue, site: Site
) -> None:
    site.page("/", text="Hay", headers={"ETag": '"1"'})
    url = f"{site.url}/"
    first = await scraped(queue, url, maxAge=0)

    same = await scraped(queue, url, maxAge=0)
    assert site.headers["/"]["If-None-Match"] == '"1"'
    assert same.markdown == first.markdown
    assert same.metadata.cache_state == "hit"

    site.page("/", text="Straw", headers={"ETag": '"2"'})
    changed = await scraped(queue, url, maxAge=0)
    assert "Straw" in (changed.markdown or "")
    assert changed.metadata.cache_state == "miss"
    assert site.hits["/"] == 3


async def test_changes_are_told_from_the_version_before(queue: Queue, site: Site) -> None:
    """N4: changeTracking, by tag."""
    asked = ["markdown", {"type": "changeTracking", "modes": ["git-diff"]}]
    url = f"{site.url}/"
    seen: list[str] = []
    for text, status in (("Hay", 200), ("Hay", 200), ("Oops", 500), ("Straw", 200), ("No", 404)):
        site.page("/", text=text, status=status)
        document = await scraped(queue, url, formats=asked)
        tracking = document.change_tracking
        seen.append("" if tracking is None else tracking.change_status)
        if tracking is None:
            assert "status 500" in (document.warning or "")
        elif tracking.change_status == "changed":
            assert tracking.diff is not None
            assert "-Hay\n+Straw" in tracking.diff.text
            assert tracking.previous_scrape_at is not None
            assert tracking.visibility == "visible"
    assert seen == ["new", "same", "", "changed", "removed"]

    site.page("/", text="Straw")
    tagged = ["markdown", {"type": "changeTracking", "tag": "weekly"}]
    other = (await scraped(queue, url, formats=tagged)).change_tracking
    assert other is not None
    assert (other.change_status, other.previous_scrape_at) == ("new", None)


async def test_page_that_no_crawl_finds_any_more_is_hidden(queue: Queue, site: Site) -> None:
    """N4: changeTracking's visibility."""
    asked: dict[str, Any] = {"formats": ["markdown", "changeTracking"]}
    site.page("/", links=["/a", "/b"])
    site.page("/a")
    site.page("/b")
    await crawl(queue, site, scrape_options=asked)
    site.page("/", links=["/a"])
    seen = await scraped(queue, f"{site.url}/b", **asked)
    assert seen.change_tracking is not None
    assert seen.change_tracking.visibility == "visible", "no crawl has passed it by yet"

    await crawl(queue, site, scrape_options=asked)
    for path, wanted in (("/a", "visible"), ("/b", "hidden")):
        document = await scraped(queue, f"{site.url}{path}", **asked)
        assert document.change_tracking is not None
        assert (path, document.change_tracking.visibility) == (path, wanted)
        assert document.change_tracking.change_status == "same"


async def test_crawl_takes_pages_that_were_kept_and_finds_their_links(
    queue: Queue, site: Site
) -> None:
    site.page("/", links=["/a"])
    site.page("/a", text="Hay")
    options = {"maxAge": 60_000}
    await crawl(queue, site, scrape_options=options)
    crawl_id = await crawl(queue, site, scrape_options=options)

    assert (site.hits["/"], site.hits["/a"]) == (1, 1)
    found = [web.document_of(job) async for job in web.iterate_pages(queue, crawl_id)]
    assert [document.metadata.cache_state for document in found] == ["hit", "hit"]


async def test_fields_are_compared_by_a_model_where_one_is_set(queue: Queue, site: Site) -> None:
    """N4: changeTracking in the mode json, and summary."""
    tracked = {"type": "changeTracking", "modes": ["json"], "prompt": "The price"}
    asked: dict[str, Any] = {"formats": ["markdown", "summary", tracked]}

    def answer(request: dict[str, Any]) -> str:
        if "response_format" not in request:
            return "About hay."
        return as_json(price=int(re.findall(r"costs (\d+)", page_of(request))[0]))

    documents = []
    async with open_chat() as chat, Model(chat.url, "barn-1", KEY) as model:
        chat.otherwise = answer
        for price in (7, 8):
            site.page("/", text=f"Hay costs {price}")
            job = await web.start_scrape(queue, f"{site.url}/", asked)
            async with web_handlers(queue, guard=LOOPBACK, model=model) as handlers:
                await Worker(queue, handlers).run(until_idle=True)
            documents.append(web.document_of(await queue.get(job.id)))
    first, second = documents

    assert first.summary == "About hay."
    assert second.change_tracking is not None
    assert second.change_tracking.change_status == "changed"
    assert second.change_tracking.diff is None, "nobody asked for it"
    assert second.change_tracking.json == {"price": {"previous": 7, "current": 8}}

    site.page("/", text="Hay costs 9")
    without = await scraped(queue, f"{site.url}/", **asked)
    assert without.change_tracking is not None
    assert without.change_tracking.change_status == "changed"
    assert "No language model is set" in (without.warning or "")
