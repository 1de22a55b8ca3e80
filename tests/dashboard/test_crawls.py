"""Crawls on the dashboard: what answered with an error is no page, and is shown so."""

from __future__ import annotations

import asyncio
import re

import httpx

from tests.api.server import Server
from tests.dashboard.test_pages import admin, token_of
from tests.web.site import Site, SiteServer
from windrow import Queue
from windrow.services import web

__all__ = ["admin"]


def crawled(server: Server, site: Site) -> str:
    """A crawl that the server's workers have seen through."""

    async def see_through() -> str:
        async with Queue.open(server.database) as queue:
            crawl_id = await web.start_crawl(queue, site.url)
            await queue.wait(crawl_id, timeout=60)
            while (await web.get_crawl(queue, crawl_id)).status == "scraping":
                await asyncio.sleep(0.05)
            return crawl_id

    return asyncio.run(see_through())


def test_pages_that_answer_with_an_error_are_told_from_others_and_fetched_again(
    server: Server, admin: httpx.Client, site_server: SiteServer
) -> None:
    site = site_server.site()
    site.page("/", links=["/missing", "/broken", "/fine"])
    site.page("/fine")
    site.page("/broken", first=[500])
    here = f"/ui/runs/{crawled(server, site)}"
    page = admin.get(here).text
    assert re.search(r"HTTP errors<b[^>]*>2</b>", page)
    assert "2 with errors" in page
    rows = dict(re.findall(r'>\S+(/\w*)</a></th><td>(?:<span class="state failed">)?(\d*)', page))
    assert rows == {"/": "", "/fine": "", "/missing": "404", "/broken": "500"}
    [job] = re.findall(r'href="(/ui/jobs/[^"]+)">\S+/missing</a></th>', page)
    assert "HTTP 404" in admin.get(job).text

    assert 'value="again"' in page
    form = {"do": "again", "token": token_of(admin)}
    answer = admin.post(here, data=form)
    assert "The pages are fetched again" in answer.text
    assert str(answer.url) != here
