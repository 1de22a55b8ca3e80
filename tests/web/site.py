"""Web sites for tests: pages as a test wants them, and a log of who asked for what.

    with SiteServer() as server:
        site = server.site()
        site.page("/", links=["/a", "/b"])
        site.url, site.hits["/a"], site.most_in_flight

One server has as many sites as wanted, each on a port of its own, in a thread with a loop of its
own. Pages of `generate` are made when they are asked for: a site of 100,000 costs no memory. As a
program (`python -m tests.web.site 100000`) it serves such a site and prints its URL; what was asked
for is told at `/_log`.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

TEXT = """hay row field baler meadow rake swath clover fork barn loft cart summer mower dry stack
bale tine windrow grass scythe morning dew tractor turn ridge fallow seed harvest acre"""
WORDS = re.findall(r"\w+", TEXT)
GENERATED = re.compile(r"^/p/(\d+)$")


@dataclass
class Page:
    """What is answered; `first` are statuses that are answered before, one after the other."""

    body: bytes = b""
    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0  # how long it takes
    until: threading.Event | None = None  # which it waits for
    first: list[int] = field(default_factory=list)
    first_headers: Mapping[str, str] = field(default_factory=dict)


class Site:
    """One web site. `hits` counts the requests for each path (with its query)."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.hits: Counter[str] = Counter()
        # Monotonic seconds and path of the last requests, and the headers of the last for a path.
        self.starts: deque[tuple[float, str]] = deque(maxlen=1000)
        self.headers: dict[str, dict[str, str]] = {}
        self.in_flight = 0
        self.most_in_flight = 0
        self._pages: dict[tuple[str, str], Page] = {}
        self._size = self._fan_out = 0
        self._seconds = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def page(
        self,
        path: str,
        links: Iterable[str] = (),
        *,
        title: str | None = None,
        text: str | None = None,
        head: str = "",
        host: str = "",
        **answer: Any,
    ) -> None:
        """A page of HTML with these links in it; `host` is the part before the site's own name."""
        body = html_page(title or f"Page {path}", links, text or sentence(path), head)
        self.put(path, Page(body.encode(), **answer), host=host)

    def put(self, path: str, page: Page, *, host: str = "") -> None:
        self._pages[host, path] = page

    def text(self, path: str, body: str, content_type: str = "text/plain", **answer: Any) -> None:
        self.put(path, Page(body.encode(), content_type=content_type, **answer))

    def redirect(self, path: str, to: str, status: int = 302) -> None:
        self.put(path, Page(status=status, headers={"Location": to}))

    def pdf(self, path: str, text: str) -> None:
        self.put(path, Page(minimal_pdf(text), content_type="application/pdf"))

    def robots(self, text: str, **answer: Any) -> None:
        self.text("/robots.txt", text, **answer)

    def sitemap(self, path: str, urls: Iterable[str], *, kind: str = "url", zip_: bool = False):
        """A sitemap of pages, or with kind="sitemap" an index of sitemaps."""
        root = {"url": "urlset", "sitemap": "sitemapindex"}[kind]
        inside = "".join(f"<{kind}><loc>{url}</loc></{kind}>" for url in urls)
        body = f'<?xml version="1.0"?><{root}>{inside}</{root}>'.encode()
        content_type = "application/gzip" if zip_ else "application/xml"
        body = gzip.compress(body) if zip_ else body
        self.put(path, Page(body, content_type=content_type))

    def generate(self, size: int, fan_out: int = 10, seconds: float = 0.0) -> str:
        """A site of so many pages, `/p/0` … , each leading to the next few below it and to its
        neighbours. Returns the URL of the first."""
        self._size, self._fan_out, self._seconds = size, fan_out, seconds
        return f"{self.url}/p/0"

    def pages_hit(self) -> set[str]:
        """What was asked for, apart from robots.txt and its kin."""
        asides = ("robots.txt", "sitemap.xml", "llms.txt", "llms-full.txt")
        return {path for path in list(self.hits) if not path.endswith(asides)}

    def forget(self) -> None:
        self.hits.clear()
        self.starts.clear()
        self.most_in_flight = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path_qs
        if path == "/_log":
            return web.json_response({"hits": self.hits, "most_in_flight": self.most_in_flight})
        self.hits[path] += 1
        self.starts.append((time.monotonic(), path))
        if not GENERATED.match(path):
            self.headers[request.path] = dict(request.headers)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._answer(request)
        finally:
            self.in_flight -= 1

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        page = self._find(request)
        if page.seconds:
            await asyncio.sleep(page.seconds)
        while page.until is not None and not page.until.is_set():
            await asyncio.sleep(0.01)
        status, headers = page.status, page.headers
        if page.first:
            status, headers = page.first.pop(0), {**page.headers, **page.first_headers}
        if "ETag" in headers and request.headers.get("If-None-Match") == headers["ETag"]:
            return web.Response(status=304, headers={"ETag": headers["ETag"]})
        return web.Response(
            body=page.body,
            status=status,
            headers={"Content-Type": page.content_type, **headers},
        )

    def _find(self, request: web.BaseRequest) -> Page:
        name = (request.host or "").partition(":")[0]
        labels = name.split(".")
        host = labels[0] if len(labels) > 2 and not labels[0].isdigit() else ""
        for path in (request.path_qs, request.path):
            if (page := self._pages.get((host, path))) is not None:
                return page
        found = GENERATED.match(request.path)
        if found and not host and int(found[1]) < self._size:
            return self._generated(int(found[1]))
        body = html_page("Not found", [], "There is no such page.", "")
        return Page(body.encode(), status=404)

    def _generated(self, number: int) -> Page:
        below = range(number * self._fan_out + 1, (number + 1) * self._fan_out + 1)
        beside = (number - 1, number + 1, number // self._fan_out, number * 7 % self._size)
        links = [f"/p/{one}" for one in (*below, *beside) if 0 <= one < self._size]
        text = "\n".join(f"<p>{sentence(f'{number}/{part}', 60)}</p>" for part in range(8))
        body = html_page(f"Page {number}", links, text, "")
        return Page(body.encode(), seconds=self._seconds)


class SiteServer:
    """A thread in which sites answer."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._servers: list[asyncio.AbstractServer] = []
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def site(self) -> Site:
        """A new and empty site."""
        site = Site()
        self._run(self._open(site))
        return site

    async def _open(self, site: Site) -> None:
        self._servers += await open_site(site)

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _run(self, work: Awaitable[Any]) -> Any:
        async def run() -> Any:
            return await work

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(30)


async def open_site(site: Site) -> list[asyncio.AbstractServer]:
    """Let a site answer, on a free port of this machine; also as 127.0.0.2, which is another."""
    answering = web.Server(site.answer, access_log=None)
    loop = asyncio.get_running_loop()
    first = await loop.create_server(answering, "127.0.0.1", site.port)
    site.port = first.sockets[0].getsockname()[1]
    return [first, await loop.create_server(answering, "127.0.0.2", site.port)]


def html_page(title: str, links: Iterable[str], text: str, head: str) -> str:
    items = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
    return (
        f'<!doctype html><html lang="en"><head><title>{title}</title>{head}</head><body>'
        '<nav class="menu"><a href="#top">Menu</a></nav>'
        f"<main><h1>{title}</h1><p>{text}</p><ul>{items}</ul></main>"
        "<footer>Imprint of the test site</footer></body></html>"
    )


def sentence(seed: str, words: int = 12) -> str:
    """The same words for the same seed."""
    number = zlib.crc32(seed.encode())
    chosen = (WORDS[(number >> (at % 24)) * (at + 3) % len(WORDS)] for at in range(words))
    return " ".join(chosen).capitalize() + "."


def minimal_pdf(text: str) -> bytes:
    """A PDF of one page with one line of text."""
    stream = f"BT /F1 18 Tf 72 720 Td ({text}) Tj ET".encode("latin-1")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources 6 0 R >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Font << /F1 5 0 R >> >>",
    ]
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\n"
        b"startxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table, len(objects) + 1, len(body))
    )


async def _serve(size: int, fan_out: int, seconds: float) -> None:
    site = Site()
    server, _ = await open_site(site)
    print(json.dumps({"url": site.generate(size, fan_out, seconds)}), flush=True)
    await server.serve_forever()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", type=int)
    parser.add_argument("--fan-out", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.0)
    asked = parser.parse_args(arguments)
    asyncio.run(_serve(asked.size, asked.fan_out, asked.seconds))


if __name__ == "__main__":
    main()
