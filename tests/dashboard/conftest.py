"""One server for all tests here, with a dashboard that has something to show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.api.server import Server
from tests.dashboard.browser import ADMIN, READER, TENANT, artifacts, chrome, tab
from tests.ingest.browser.conftest import chromium
from tests.web.site import SiteServer
from windrow import Fail, Job, Queue, Worker, handler

__all__ = ["ADMIN", "READER", "TENANT", "artifacts", "chrome", "chromium", "tab"]

Done = TypeVar("Done")
KEYS = f"{ADMIN} {READER}=*:read {TENANT}=acme:write"
HOSTILE = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"


@dataclass(frozen=True)
class Shown:
    """Jobs that the pages show."""

    failed: list[str]
    page: str
    foreign: str  # of no tenant
    broken: list[str]  # two that failed alike, and one that says a little more
    secret: str  # its payload has a token


@handler("thumbnail", queue="images", max_attempts=1)
async def thumbnail(job: object, payload: dict[str, int]) -> dict[str, str]:
    if payload["n"] % 4 == 0:
        raise ValueError(f"no such image {HOSTILE}")
    return {"markdown": f"# A page\n\n{HOSTILE}\n\n[bad](javascript:alert(1)) **bold**"}


@handler("print", queue="printer", max_attempts=1)
async def print_(job: object, payload: dict[str, str]) -> Fail:
    return Fail(payload["error"])


BROKEN = "the printer burns"


async def fill(url: str) -> Shown:
    async with Queue.open(url) as queue:
        jobs = [await queue.enqueue("thumbnail", {"n": n}) for n in range(12)]
        errors = [BROKEN, BROKEN, f"{BROKEN} and smokes"]
        broken = [await queue.enqueue("print", {"error": one}, queue="printer") for one in errors]
        for _ in range(2):
            await queue.enqueue("print", {"error": "no paper"}, queue="printer", tenant="acme")
        await Worker(queue, [thumbnail, print_]).run(until_idle=True)
        payload = {"place": "Long Meadow", "token": "hush-4711"}
        secret = await queue.enqueue("odd", payload, queue="odd", delay=3600, unique="meadow-1")
        waiting = await queue.enqueue("unknown.kind", {"text": HOSTILE}, queue="odd", delay=3600)
        await queue.enqueue("mine", {}, queue="odd", tenant="acme", delay=3600)
        await queue.schedule("nightly", "thumbnail", {"n": 1}, cron="0 3 * * *")
        return Shown(
            failed=[jobs[0].id, jobs[4].id, jobs[8].id],
            page=jobs[1].id,
            foreign=waiting.id,
            broken=[job.id for job in broken],
            secret=secret.id,
        )


@pytest.fixture(scope="module")
def site_server() -> Iterator[SiteServer]:
    with SiteServer() as server:
        yield server


def run_aside(work: Coroutine[Any, Any, Done]) -> Done:
    """In a thread of its own: a browser's loop may be running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


class Elsewhere:
    """What happens to the queue, and not by the browser of a test."""

    def __init__(self, url: str) -> None:
        self._url = url

    def do(self, work: Callable[[Queue], Coroutine[Any, Any, Done]]) -> Done:
        async def run() -> Done:
            async with Queue.open(self._url) as queue:
                return await work(queue)

        return run_aside(run())

    def enqueue(self, kind: str, payload: Any = None, **more: Any) -> Job:
        return self.do(lambda queue: queue.enqueue(kind, payload or {}, **more))


@pytest.fixture(scope="module")
def elsewhere(server: Server) -> Elsewhere:
    return Elsewhere(server.database)


@pytest.fixture(scope="module")
def shown(server: Server) -> Shown:
    return run_aside(fill(server.database))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("dashboard")
    data = str(folder / "data")
    with Server(folder, WINDROW_API_KEYS=KEYS, WINDROW_DATA_DIR=data) as server:
        yield server
