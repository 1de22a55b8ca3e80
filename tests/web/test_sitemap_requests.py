"""Sitemaps are requested like pages: robots.txt, delay and maxConcurrency hold for them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.web.crawling import crawl, pages
from tests.web.site import Site
from windrow import Queue

QUIET: dict[str, Any] = {"llmsTxt": False}


async def test_sitemap_that_robots_txt_forbids_is_not_requested(queue: Queue, site: Site) -> None:
    site.robots("User-agent: *\nDisallow: /sitemap.xml\n")
    site.page("/")
    site.page("/listed")
    site.sitemap("/sitemap.xml", [f"{site.url}/listed"])
    crawl_id = await crawl(queue, site, **QUIET)

    assert site.hits["/sitemap.xml"] == 0
    assert await pages(queue, crawl_id) == {"/"}


async def test_sitemap_that_robots_txt_names_is_requested(queue: Queue, site: Site) -> None:
    site.robots(f"User-agent: *\nDisallow: /maps/\nSitemap: {site.url}/maps/all.xml\n")
    site.page("/")
    site.page("/listed")
    site.sitemap("/maps/all.xml", [f"{site.url}/listed"])
    crawl_id = await crawl(queue, site, **QUIET)

    assert await pages(queue, crawl_id) == {"/", "/listed"}


async def test_sitemap_that_another_one_names_is_requested_only_if_robots_txt_allows_it(
    queue: Queue, site: Site
) -> None:
    site.robots("User-agent: *\nDisallow: /maps/\n")
    for path in ("/", "/open", "/hidden"):
        site.page(path)
    parts = [f"{site.url}/part.xml", f"{site.url}/maps/part.xml"]
    site.sitemap("/sitemap.xml", parts, kind="sitemap")
    site.sitemap("/part.xml", [f"{site.url}/open"])
    site.sitemap("/maps/part.xml", [f"{site.url}/hidden"])
    crawl_id = await crawl(queue, site, **QUIET)

    assert site.hits["/maps/part.xml"] == 0
    assert await pages(queue, crawl_id) == {"/", "/open"}


async def test_parts_of_a_sitemap_that_robots_txt_names_are_requested(
    queue: Queue, site: Site
) -> None:
    site.robots(f"User-agent: *\nDisallow: /maps/\nSitemap: {site.url}/maps/all.xml\n")
    site.page("/")
    site.page("/listed")
    site.sitemap("/maps/all.xml", [f"{site.url}/maps/some.xml"], kind="sitemap")
    site.sitemap("/maps/some.xml", [f"{site.url}/maps/part.xml"], kind="sitemap")
    site.sitemap("/maps/part.xml", [f"{site.url}/listed"])
    crawl_id = await crawl(queue, site, **QUIET)

    assert await pages(queue, crawl_id) == {"/", "/listed"}


@pytest.mark.parametrize("most", [1, 2])
async def test_sitemap_is_one_of_the_requests_that_a_crawl_may_make_at_once(
    queue: Queue, site: Site, most: int
) -> None:
    paths = ["/a", "/b", "/c", "/d"]
    site.page("/", links=paths, seconds=0.1)
    for path in paths:
        site.page(path, seconds=0.1)
    body = f"<urlset><url><loc>{site.url}/a</loc></url></urlset>"
    site.text("/sitemap.xml", body, "application/xml", seconds=0.4)
    crawl_id = await crawl(queue, site, maxConcurrency=most, **QUIET)

    assert site.most_in_flight == most
    assert await pages(queue, crawl_id) == {"/", *paths}


async def test_delay_holds_between_sitemaps_and_pages(queue: Queue, site: Site) -> None:
    site.page("/")
    site.page("/listed")
    site.sitemap("/sitemap.xml", [f"{site.url}/more.xml"], kind="sitemap")
    site.sitemap("/more.xml", [f"{site.url}/listed"])
    await crawl(queue, site, delay=0.4, **QUIET)

    requests = [(at, path) for at, path in site.starts if path != "/robots.txt"]
    assert {path for _, path in requests} == {"/", "/listed", "/sitemap.xml", "/more.xml"}
    # By the database's clock the pause is kept; by the site's it may be a little shorter.
    assert all(later - at > 0.3 for (at, _), (later, _) in pairwise(requests)), requests
