"""Sites that are sources: what their crawls put there, and what they leave to each other."""

from __future__ import annotations

import msgspec
import pytest

from tests.web.crawling import LOOPBACK, path_of, work
from tests.web.site import Site
from windrow import Queue
from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentRow
from windrow.catalog.sources import SourceNote, SourceRow
from windrow.ids import new_id
from windrow.pipelines.knowledge.context import Knowledge
from windrow.pipelines.knowledge.handlers import knowledge_handlers
from windrow.pipelines.knowledge.sites import crawl_job
from windrow.pipelines.web.handlers import web_handlers
from windrow.pipelines.web.payloads import CRAWL, FINISH, SCRAPE
from windrow.queue.job import JobState
from windrow.services.knowledge import AddOptions, add, refresh_now, refresh_source
from windrow.testing import drain

pytestmark = pytest.mark.requires("documents")


async def paths(queue: Queue, source: SourceRow) -> set[str]:
    found = await Catalog(queue.database).documents.page(None, source.collection, source.id)
    return {path_of(one.uri) for one in found}


def small(site: Site) -> str:
    site.page("/", links=["/a", "/b"])
    site.page("/a")
    site.page("/b")
    return f"{site.url}/"


async def test_source_has_one_crawl_at_a_time(queue: Queue, site: Site) -> None:
    first = await add(queue, small(site))
    again = await add(queue, small(site))
    by_hand = await refresh_now(queue, first.source)

    assert (first.is_begun, again.is_begun) == (True, False)
    assert first.job_id == again.job_id == by_hand
    await work(queue)
    assert len(await queue.list(kind=CRAWL)) == 1
    assert await paths(queue, first.source) == {"/", "/a", "/b"}
    assert (await add(queue, small(site))).is_begun, "the first has ended"


async def test_refresh_beside_a_crawl_begins_no_other(queue: Queue, site: Site) -> None:
    added = await add(queue, small(site))
    refresh = await refresh_source(queue, added.source)

    await drain(queue, knowledge_handlers(Knowledge(queue)))

    assert (await queue.get(refresh)).result == {"running": added.job_id}
    assert [job.id for job in await queue.list(kind=CRAWL)] == [added.job_id]


async def test_end_of_a_crawl_spares_what_a_newer_one_wrote(queue: Queue, site: Site) -> None:
    """Its last word comes when another has begun, and written pages that it never met."""
    added = await add(queue, small(site))
    async with web_handlers(queue, guard=LOOPBACK) as handlers:
        without_finish = [one for one in handlers if one.kind != FINISH]
        await drain(queue, without_finish)
        site.page("/", links=["/a", "/b", "/new"])
        site.page("/new")
        newer = await add(queue, small_with_new(site))
        assert newer.is_begun
        await drain(queue, without_finish)
        assert await paths(queue, added.source) == {"/", "/a", "/b", "/new"}

        [first] = await finishing(queue, added.job_id)
        await queue.pause_job((await finishing(queue, newer.job_id))[0])
        await drain(queue, handlers)

        assert (await queue.get(first)).state is JobState.COMPLETED
        assert await paths(queue, added.source) == {"/", "/a", "/b", "/new"}


def small_with_new(site: Site) -> str:
    url = small(site)
    site.page("/", links=["/a", "/b", "/new"])
    return url


async def finishing(queue: Queue, crawl_id: str) -> list[str]:
    found = await queue.list(kind=FINISH)
    return [job.id for job in found if job.payload["crawl_id"] == crawl_id]


async def test_page_that_is_not_met_any_more_is_forgotten(queue: Queue, site: Site) -> None:
    added = await add(queue, small(site))
    await work(queue)
    site.page("/", links=["/a"])

    await refresh_now(queue, added.source)
    await work(queue)

    assert await paths(queue, added.source) == {"/", "/a"}


async def test_page_that_no_crawl_of_ours_put_there_is_forgotten_too(
    queue: Queue, site: Site
) -> None:
    added = await add(queue, small(site))
    for uri, metadata in (("x", {"crawl": "of another crawler"}), ("y", {})):
        row = DocumentRow(
            new_id(), None, added.source.collection, added.source.id, uri, metadata=metadata
        )
        await Catalog(queue.database).documents.put([row])

    await work(queue)

    assert await paths(queue, added.source) == {"/", "/a", "/b"}


async def test_crawls_that_were_begun_side_by_side_leave_all_pages(
    queue: Queue, site: Site
) -> None:
    """As those of a version that did not look for one that runs."""
    added = await add(queue, small(site))
    other = msgspec.structs.replace(crawl_job(added.source, {}), unique=None)
    await queue.enqueue_many([other])

    await work(queue)

    assert len(await queue.list(kind=CRAWL)) == 2
    assert len(await queue.list(kind=SCRAPE, state=JobState.COMPLETED)) == 6
    assert await paths(queue, added.source) == {"/", "/a", "/b"}


async def error_of(queue: Queue, source: SourceRow) -> str | None:
    [found] = await Catalog(queue.database).sources.get("", [source.id])
    return found.error


async def test_source_whose_crawl_had_no_page_says_why_until_one_goes_well(
    queue: Queue, site: Site
) -> None:
    site.robots("User-agent: *\nDisallow: /\n")
    added = await add(queue, small(site))
    await work(queue)
    assert await error_of(queue, added.source) == "No page could be had: robots.txt forbids it"

    options = AddOptions(crawl={"ignoreRobotsTxt": True})
    site.redirect("/", "/")
    await add(queue, f"{site.url}/", options)
    await work(queue)
    error = await error_of(queue, added.source) or ""
    assert error.startswith(f"No page could be had; {site.url}/: ")
    assert "redirect" in error

    await add(queue, small(site), options)
    await work(queue)
    assert await error_of(queue, added.source) is None


async def test_source_whose_crawl_could_not_begin_says_why(queue: Queue, site: Site) -> None:
    site.robots("", status=503)
    added = await add(queue, small(site))

    async with web_handlers(queue, guard=LOOPBACK) as handlers:
        await drain(queue, handlers, scheduled=True)

    assert (await queue.get(added.job_id)).state is JobState.FAILED
    assert "robots.txt is answered with an error" in (await error_of(queue, added.source) or "")


async def test_cancelled_crawl_leaves_the_note_of_its_source(queue: Queue, site: Site) -> None:
    added = await add(queue, small(site))
    await Catalog(queue.database).sources.put(
        [SourceNote(None, added.source.id, error="as before")]
    )
    async with web_handlers(queue, guard=LOOPBACK) as handlers:
        await drain(queue, [one for one in handlers if one.kind == CRAWL])
        await queue.cancel(added.job_id, reason="stopped")
        await drain(queue, handlers)

    assert await error_of(queue, added.source) == "as before"


@pytest.mark.parametrize("status", [200, 404, 500])
async def test_page_that_is_a_source_says_what_came_of_it(
    queue: Queue, site: Site, status: int
) -> None:
    site.page("/a", status=status)
    added = await add(queue, f"{site.url}/a", AddOptions(is_page=True))
    await Catalog(queue.database).sources.put(
        [SourceNote(None, added.source.id, error="as before")]
    )

    async with web_handlers(queue, guard=LOOPBACK) as handlers:
        await drain(queue, handlers, scheduled=True)

    error = await error_of(queue, added.source)
    assert error is None if status == 200 else str(status) in (error or "")
