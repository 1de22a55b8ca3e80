"""N14: webhooks of crawls and batches: told of in the transaction of what happened, signed, sent
until they are taken."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.processes import ROOT, Command
from tests.web.crawling import LOOPBACK
from tests.web.receiver import SECRET, Receiver
from tests.web.site import Site
from windrow import Queue, Worker
from windrow.errors import InvalidOptions
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.guard import Guard
from windrow.pipelines.web.handlers import web_handlers
from windrow.pipelines.webhooks import sending
from windrow.pipelines.webhooks.deliveries import KIND
from windrow.queue.job import LIVE, Job, JobState
from windrow.services import web
from windrow.services.web import check_webhook
from windrow.settings import Settings


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "WAITS", (0.0,))
    monkeypatch.setattr(sending, "LOOK_SECONDS", 0.0)


async def work(queue: Queue, *, guard: Guard = LOOPBACK, **options: Any) -> None:
    async with Fetcher(guard=guard) as fetcher, web_handlers(queue, fetcher=fetcher) as handlers:
        sent = sending.make_handlers(queue, fetcher, SECRET)
        while True:
            await Worker(queue, [*handlers, *sent], **options).run(until_idle=True)
            if not await queue.list(state=[*LIVE], limit=1):
                return


async def deliveries(queue: Queue) -> list[Job]:
    listed = await queue.list(kind=KIND)
    return list((await queue.get_many([job.id for job in listed])).values())


async def test_n14_a_crawl_tells_of_its_start_its_pages_and_its_end(
    queue: Queue, site: Site, receiver: Receiver
) -> None:
    site.page("/", links=["/a", "/broken"])
    site.page("/a")
    site.text("/broken", "%PDF-1.4 and nothing more", content_type="application/pdf")
    hook = {
        "url": f"{receiver.url}/hook",
        "headers": {"X-Own": "mine"},
        "metadata": {"customer": "7"},
    }

    crawl_id = await web.start_crawl(queue, site.url, webhook=hook)
    await work(queue)

    assert sorted(receiver.types) == ["crawl.completed", *["crawl.page"] * 3, "crawl.started"]
    assert receiver.types[-1] == "crawl.completed"
    for call in receiver.calls:
        assert call.is_signed
        assert (call.headers["x-own"], call.path) == ("mine", "/hook")
        assert (call.body["id"], call.body["metadata"]) == (crawl_id, {"customer": "7"})
    assert len({call.body["webhookId"] for call in receiver.calls}) == 5
    assert receiver.of_type("crawl.completed")[0].body["data"] == []
    pages = {
        call.body["data"][0]["metadata"]["sourceURL"]: call.body
        for call in receiver.of_type("crawl.page")
    }
    assert pages[f"{site.url}/a"]["success"] is True
    assert "/a" in pages[f"{site.url}/a"]["data"][0]["markdown"]
    assert pages[f"{site.url}/broken"]["success"] is False
    assert "pdf" in pages[f"{site.url}/broken"]["error"]
    assert not await queue.limits()


async def test_n14_a_delivery_is_tried_again_with_the_same_bytes(
    queue: Queue, site: Site, receiver: Receiver
) -> None:
    site.page("/a")
    receiver.answers["/hook"].extend([500, 429, 503])

    await web.start_batch(queue, [f"{site.url}/a"], webhook=f"{receiver.url}/hook")
    await work(queue, concurrency=1)

    assert len(receiver.calls) == 6
    assert len({call.raw for call in receiver.calls}) == 3
    assert receiver.types[-1] == "batch_scrape.completed"


@pytest.mark.parametrize("status", [404, 302])
async def test_n14_a_refusal_is_not_insisted_upon(
    queue: Queue, site: Site, receiver: Receiver, status: int
) -> None:
    site.page("/a")
    receiver.headers["Location"] = f"{receiver.url}/elsewhere"

    await web.start_batch(queue, [f"{site.url}/a"], webhook=f"{receiver.url}/hook?token=hidden")
    receiver.answers["/hook?token=hidden"].extend([status] * 9)
    await work(queue)

    assert len(receiver.calls) == 3
    assert {call.path for call in receiver.calls} == {"/hook?token=hidden"}
    jobs = await deliveries(queue)
    assert {job.state for job in jobs} == {JobState.FAILED}
    assert jobs[0].error is not None
    assert f"answered {status}" in jobs[0].error


async def test_n14_what_is_sent_and_where_to_is_nowhere_to_be_read(
    queue: Queue, site: Site, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    site.page("/a")
    hook = {"url": f"{receiver.url}/hidden", "headers": {"Authorization": "Bearer hidden"}}
    receiver.answers["/hidden"].extend([404] * 3)

    with caplog.at_level(logging.DEBUG):
        await web.start_batch(queue, [f"{site.url}/a"], webhook=hook)
        await work(queue)
        await web.start_batch(queue, [f"{site.url}/a"], webhook="http://127.0.0.1:9/hidden")
        await work(queue)

    jobs = await deliveries(queue)
    assert len(jobs) == 6
    assert {job.state for job in jobs} == {JobState.FAILED}
    for job in jobs:
        assert "hidden" not in f"{job.payload_json!r}{job.errors}"
    assert "hidden" not in caplog.text


async def test_n14_a_receiver_that_hangs_is_not_waited_for(
    queue: Queue, site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The others have no longer to answer, and one that is late is told again.
    monkeypatch.setattr(sending, "SECONDS", 3.0)
    site.page("/a")
    receiver.answers["/hook"].extend([0])

    await web.start_batch(queue, [f"{site.url}/a"], webhook=f"{receiver.url}/hook")
    await work(queue)

    assert len(receiver.calls) == 4
    assert receiver.types[-1] == "batch_scrape.completed"


async def test_n14_only_the_events_that_were_asked_for_are_sent(
    queue: Queue, site: Site, receiver: Receiver
) -> None:
    site.page("/a")

    for events in (["completed"], ["page"], ["started", "failed"]):
        hook = {"url": receiver.url, "events": events}
        await web.start_batch(queue, [f"{site.url}/a"], webhook=hook)
        await work(queue)

    assert receiver.types == ["batch_scrape.completed", "batch_scrape.page", "batch_scrape.started"]


async def test_n14_a_cancelled_crawl_tells_so_once(
    queue: Queue, site: Site, receiver: Receiver
) -> None:
    urls = [f"{site.url}/p/{number}" for number in range(50)]
    before = await web.start_batch(queue, urls, webhook=receiver.url)
    await web.cancel_crawl(queue, before.id)
    await work(queue)

    assert receiver.types == ["batch_scrape.cancelled"]
    assert receiver.calls[0].body["success"] is False

    receiver.calls.clear()
    started = await web.start_batch(queue, urls, webhook=receiver.url)
    await begin_batch(queue)
    await web.cancel_crawl(queue, started.id)
    await work(queue)

    assert sorted(receiver.types) == ["batch_scrape.cancelled", "batch_scrape.started"]


async def test_n14_a_crawl_that_cannot_begin_tells_so(
    queue: Queue, site: Site, receiver: Receiver
) -> None:
    site.text("/robots.txt", "gone", status=404)
    crawl_id = await web.start_crawl(queue, "http://10.0.0.1/", webhook=receiver.url)

    await work(queue)

    [call] = receiver.calls
    assert (call.body["type"], call.body["success"], call.body["id"]) == (
        "crawl.failed",
        False,
        crawl_id,
    )
    assert "private network" in call.body["error"]


async def test_n14_a_page_whose_workers_died_is_told_of_too(
    queue: Queue, site: Site, receiver: Receiver
) -> None:
    urls = [f"{site.url}/a", f"{site.url}/b"]
    batch = await web.start_batch(queue, urls, webhook={"url": receiver.url, "events": ["page"]})
    await begin_batch(queue)
    [page, *_] = await queue.list(group=batch.id)
    await queue.edit(page.id, max_crashes=1)
    await queue.claim(["web"], limit=2, seconds=1)
    while not await queue.store.rescue_jobs():
        await asyncio.sleep(0.1)

    await work(queue)

    told = {call.body["data"][0]["metadata"]["sourceURL"]: call.body for call in receiver.calls}
    assert set(told) == {*urls}
    assert told[page.payload["url"]]["success"] is False
    assert (await web.get_crawl(queue, batch.id)).failed == 1


async def begin_batch(queue: Queue) -> None:
    """Run what makes the pages of a batch, and nothing else."""
    async with web_handlers(queue, guard=LOOPBACK) as handlers:
        [begin] = [one for one in handlers if one.kind == "web.batch"]
        await Worker(queue, [begin]).run(until_idle=True)


async def test_n14_private_addresses_are_not_told_anything(queue: Queue, site: Site) -> None:
    site.page("/a")
    for url in ("http://127.0.0.1/x", "http://localhost", "http://[::1]/", "http://10.1.2.3"):
        with pytest.raises(InvalidOptions, match="private network"):
            check_webhook(Settings(), url)
        check_webhook(Settings(allow_private_networks=True), url)


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("nonsense", "no address"),
        ({"headers": {}}, "url"),
        ({"url": "http://e.org", "colour": 1}, "colour"),
        ({"url": "http://e.org", "events": ["exploded"]}, "events"),
        ({"url": "http://e.org", "headers": {"x-firecrawl-signature": "x"}}, "cannot be set"),
        ({"url": "http://e.org", "headers": {"A": "b\r\nC: d"}}, "no header"),
        ({"url": "http://e.org", "metadata": {"a": "b" * 40_000}}, "at most"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused(hook: Any, said: str) -> None:
    with pytest.raises(InvalidOptions, match=said):
        check_webhook(Settings(), hook)


@pytest.mark.chaos  # the lease of a killed worker has to end
async def test_n14_a_delivery_whose_worker_is_killed_comes_again(
    store_url: str, queue: Queue, site: Site, receiver: Receiver
) -> None:
    site.page("/a")
    receiver.answers["/hook"].append(0)
    hook = {"url": f"{receiver.url}/hook", "events": ["page", "completed"]}
    await web.start_batch(queue, [f"{site.url}/a"], webhook=hook)

    with worker_process(store_url):
        await asyncio.to_thread(receiver.wait_for, lambda: receiver.calls)
    with worker_process(store_url):
        await asyncio.to_thread(receiver.wait_for, lambda: len(receiver.calls) == 3)

    first, second, end = receiver.calls
    assert first.raw == second.raw
    assert end.body["type"] == "batch_scrape.completed"


@contextmanager
def worker_process(store_url: str) -> Iterator[None]:
    """`windrow worker`, killed at the end."""
    process = Command(
        *("worker", "--lease", "1s"),
        cwd=ROOT,
        environment={
            **os.environ,
            "WINDROW_DATABASE_URL": store_url,
            "WINDROW_ALLOW_HOSTS": "127.0.0.0/8",
            "WINDROW_WEBHOOK_SECRET": SECRET,
        },
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()
