"""The HTTP API: how much one core answers, and how long 500 clients wait.

    .venv/bin/python -m bench.api [--requests 3000]

`windrow serve` runs as it does for people, one process with its worker, on SQLite. What counts is
requests for each CPU second of that process, the whole of it: on a busy machine the clock on the
wall says little. Clients are plain sockets that are kept open, so they cost little beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from bench.usage import cpu_seconds

PAGES = 10  # of the batch whose status is read
CLIENTS = 500
FEW = 20  # clients at once, where it is about what one core can do
GOALS = {"status": 1500.0, "cached scrape": 300.0}
ADDRESS = re.compile(r"http://[^:]+:(\d+)")
PAGE = "<html><title>Row {0}</title><body><p>{1}</p><a href='/{0}/a'>more</a></body></html>"
TEXT = "Hay lies in rows until the baler picks it up. " * 40


@dataclass(frozen=True, slots=True)
class Measure:
    """`seconds` are those that each request took, by the clock on the wall."""

    name: str
    per_cpu_second: float
    seconds: list[float]

    def quantile(self, share: float) -> float:
        return statistics.quantiles(self.seconds, n=1000)[round(share * 1000) - 1]


class Api:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request, and the JSON that is answered."""
        return json.loads(await self.read(method, path, body))

    async def read(self, method: str, path: str, body: Any = None) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request(method, path, body))
        answer = await read_answer(reader)
        writer.close()
        return answer

    async def measure(self, name: str, sent: bytes, requests: int, clients: int) -> Measure:
        """Clients that send the same again and again, all at once."""
        seconds: list[float] = []

        async def client() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            for _ in range(requests // clients):
                began = time.perf_counter()
                writer.write(sent)
                await read_answer(reader)
                seconds.append(time.perf_counter() - began)
            writer.close()

        before = cpu_seconds(self.process.pid)
        await asyncio.gather(*(client() for _ in range(clients)))
        used = cpu_seconds(self.process.pid) - before
        return Measure(name, len(seconds) / used, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.api", description=__doc__)
    parser.add_argument("--requests", type=int, default=3000, help="of each kind")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder), given.requests))


async def run(folder: Path, requests: int) -> None:
    async with serve_pages() as site, serve(folder) as (api, start_seconds):
        used = cpu_seconds(api.process.pid)
        print(f"answers {start_seconds:.2f} s after its start, {used:.2f} CPU seconds (goal: 2 s)")
        urls = [f"{site}/{number}" for number in range(PAGES)]
        batch = await api.ask("POST", "/v2/batch/scrape", {"urls": urls})
        status = f"/v2/batch/scrape/{batch['id']}"
        await api.ask("GET", f"/queue/jobs/{batch['id']}?wait=60")
        cached = {"url": urls[0], "maxAge": 3_600_000}
        await api.ask("POST", "/v2/scrape", cached)
        kinds = {
            "status": request("GET", f"{status}?limit=1"),
            f"status, {PAGES} documents": request("GET", status),
            "job": request("GET", f"/queue/jobs/{batch['id']}"),
            "cached scrape": request("POST", "/v2/scrape", cached),
        }
        measures = [await api.measure(name, sent, requests, FEW) for name, sent in kinds.items()]
        many = f"status, {CLIENTS} clients"
        measures.append(await api.measure(many, kinds["status"], requests, CLIENTS))
    for one in measures:
        print(as_line(one))


def as_line(one: Measure) -> str:
    goal = GOALS.get(one.name)
    judged = "" if goal is None else f"  (goal: {goal:g}; {one.per_cpu_second / goal:.2f} of it)"
    p50, p99 = one.quantile(0.5) * 1000, one.quantile(0.99) * 1000
    return (
        f"{one.name:<22} {one.per_cpu_second:>7.0f} a CPU second   p50 {p50:>7.1f} ms   "
        f"p99 {p99:>7.1f} ms{judged}"
    )


def request(method: str, path: str, body: Any = None, **headers: str) -> bytes:
    content = (
        body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    )
    given = {"Host": "127.0.0.1", "Content-Length": len(content), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise RuntimeError(head.decode())
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return await reader.readexactly(length)


@asynccontextmanager
async def serve(
    folder: Path, url: str | None = None, *arguments: str, **variables: str
) -> AsyncIterator[tuple[Api, float]]:
    """A server, on a database of its own or on this one, and how many seconds after its start it
    answered for the first time."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "windrow", "serve", "--port", "0", *arguments),
        cwd=folder,
        env={
            **os.environ,
            "WINDROW_DATABASE_URL": url or f"sqlite:///{folder / 'jobs.db'}",
            "WINDROW_DATA_DIR": str(folder),
            "WINDROW_ALLOW_PRIVATE_NETWORKS": "1",
            **variables,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        if process.stdout is None:
            raise RuntimeError("the process was started without a pipe")
        found = ADDRESS.search((await process.stdout.readline()).decode())
        if found is None:
            raise RuntimeError("the server did not start")
        api = Api(process, int(found[1]))
        await api.read("GET", "/ui/static/icon.svg")  # without a worker it is not in good health
        yield api, time.perf_counter() - began
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def serve_pages() -> AsyncIterator[str]:
    async def page(request: web.Request) -> web.Response:
        number = request.match_info["number"]
        return web.Response(text=PAGE.format(number, TEXT), content_type="text/html")

    app = web.Application()
    app.router.add_get("/{number}", page)
    runner = web.AppRunner(app)
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


if __name__ == "__main__":
    main()
