"""llms.txt is requested like a page: robots.txt, limit, delay and maxConcurrency hold for it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.web.crawling import crawl, pages
from tests.web.site import Page, Site
from windrow import Queue

LLMS = ("/llms.txt", "/llms-full.txt")


async def test_llms_txt_that_robots_txt_forbids_is_not_requested(queue: Queue, site: Site) -> None:
    site.robots("User-agent: *\nDisallow: /llms.txt\n")
    site.page("/")
    site.text("/llms.txt", "# Site\n- [Hidden](/hidden)\n")
    site.text("/llms-full.txt", "# Site\n- [Listed](/listed)\n")
    site.page("/listed")
    crawl_id = await crawl(queue, site, sitemap="skip")

    assert site.hits["/llms.txt"] == 0
    assert await pages(queue, crawl_id) == {"/", "/llms-full.txt", "/listed"}


async def test_crawl_with_no_room_requests_neither_llms_txt_nor_sitemaps(
    queue: Queue, site: Site
) -> None:
    site.page("/", links=["/a"])
    await crawl(queue, site, limit=1)

    assert set(site.hits) == {"/robots.txt", "/"}


async def test_pages_of_llms_txt_count_towards_the_limit(queue: Queue, site: Site) -> None:
    site.page("/")
    site.text("/llms.txt", "# Site\n" + "".join(f"- [Page](/p{n})\n" for n in range(9)))
    crawl_id = await crawl(queue, site, limit=3, sitemap="skip")

    assert len(await pages(queue, crawl_id)) == 3
    assert len(site.pages_hit()) <= 3


@pytest.mark.parametrize("most", [1, 2])
async def test_llms_txt_is_one_of_the_requests_that_a_crawl_may_make_at_once(
    queue: Queue, site: Site, most: int
) -> None:
    site.page("/", links=["/a", "/b", "/c", "/d"], seconds=0.1)
    for path in ("/a", "/b", "/c", "/d"):
        site.page(path, seconds=0.1)
    for path in LLMS:
        site.put(path, Page(b"# Site\n", content_type="text/plain", seconds=0.3))
    crawl_id = await crawl(queue, site, maxConcurrency=most, sitemap="skip")

    assert site.most_in_flight == most
    assert await pages(queue, crawl_id) >= {"/", "/a", "/b", "/c", "/d"}


async def test_delay_holds_between_llms_txt_and_the_pages(queue: Queue, site: Site) -> None:
    site.page("/", links=["/a"])
    site.page("/a")
    await crawl(queue, site, delay=0.4, sitemap="skip")

    requests = [(at, path) for at, path in site.starts if path != "/robots.txt"]
    assert {path for _, path in requests} == {"/", "/a", *LLMS}
    # By the database's clock the pause is kept; by the site's it may be a little shorter.
    assert all(later - at > 0.3 for (at, _), (later, _) in pairwise(requests)), requests
