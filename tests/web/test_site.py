"""The test site keeps its own book truly."""

from __future__ import annotations

import asyncio
import gzip
import threading

from tests.web.site import Page, Site
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.guard import Guard


async def test_site_answers_as_it_was_told_and_counts(site: Site) -> None:
    site.page("/", links=["/a"], title="Home")
    site.redirect("/old", "/")
    site.sitemap("/map.xml.gz", [f"{site.url}/"], zip_=True)
    site.put("/busy", Page(b"ok", first=[500], content_type="text/plain"))
    all_came = threading.Event()
    site.page("/slow", until=all_came)
    last = site.generate(1000).replace("/p/0", "/p/999")

    async with Fetcher(guard=Guard(allow=["127.0.0.0/8"])) as fetcher:
        home = await fetcher.fetch(f"{site.url}/old")
        assert (home.status, home.final_url) == (200, f"{site.url}/")
        assert b'href="/a"' in home.body
        assert (await fetcher.fetch(f"{site.url}/none")).status == 404
        assert b"urlset" in gzip.decompress((await fetcher.fetch(f"{site.url}/map.xml.gz")).body)
        statuses = [(await fetcher.fetch(f"{site.url}/busy")).status for _ in range(2)]
        assert statuses == [500, 200]
        assert b"Page 999" in (await fetcher.fetch(last)).body
        slow = [asyncio.create_task(fetcher.fetch(f"{site.url}/slow")) for _ in range(3)]
        while site.in_flight < 3:
            await asyncio.sleep(0.01)
        all_came.set()
        await asyncio.gather(*slow)

    assert site.hits["/busy"] == 2
    assert site.hits["/slow"] == 3
    assert site.most_in_flight == 3
    assert site.in_flight == 0
