"""A tenant's quota: a credit for each page, counted once, and refused where nothing is left."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.faults import FaultyStore
from tests.ingest.enrich.chat import KEY, as_json, open_chat
from tests.web.crawling import LOOPBACK, work
from tests.web.site import Site
from windrow import Queue, Worker
from windrow.accounts import Accounts
from windrow.accounts.usage import QuotaRow, UsageRow
from windrow.errors import ConfigError, DuplicateJob, QuotaExceeded
from windrow.ingest.enrich.llm import Model
from windrow.pipelines.web.handlers import web_handlers
from windrow.pipelines.web.payloads import FINISH
from windrow.queue.job import JobState
from windrow.services import web
from windrow.services.quotas import parse_quotas, period_of, read_usage
from windrow.services.web.models import start_extract
from windrow.settings import Settings

ACME = QuotaRow("acme", 10, "month")
ZETA = QuotaRow("zeta", 3, "day")


async def test_n10_pages_cost_a_credit_each_and_tenants_are_apart(queue: Queue, site: Site) -> None:
    site.page("/", links=["/a", "/b"])
    await web.start_scrape(queue, f"{site.url}/a", tenant="acme", quota=ACME)
    await web.start_map(queue, site.url, tenant="acme", quota=ACME)
    await web.start_batch(queue, [f"{site.url}/a", f"{site.url}/b"], tenant="acme", quota=ACME)
    await web.start_crawl(queue, site.url, {"limit": 3}, tenant="acme", quota=ACME)
    await web.start_scrape(queue, f"{site.url}/b", tenant="zeta", quota=ZETA)
    await web.start_scrape(queue, "http://10.0.0.1/", tenant="zeta", quota=ZETA)  # forbidden
    await web.start_scrape(queue, f"{site.url}/b", tenant="acme")
    await work(queue)

    assert (await read_usage(queue, ACME)).used == 1 + 1 + 2 + 3
    assert (await read_usage(queue, ZETA)).used == 1


async def test_n10_crawl_is_cut_to_what_is_left_and_then_nothing_is_begun(
    queue: Queue, site: Site
) -> None:
    site.page("/", links=[f"/{number}" for number in range(8)])
    usage = await read_usage(queue, ZETA)
    asked: dict[str, Any] = {"tenant": "zeta", "quota": ZETA, "idempotency_key": "once"}
    with pytest.raises(QuotaExceeded, match="Insufficient credits"):
        await web.start_batch(queue, [f"{site.url}/{n}" for n in range(4)], **asked)
    crawl_id = await web.start_crawl(queue, site.url, **asked)
    await work(queue)

    assert (await web.get_crawl(queue, crawl_id)).completed == 3
    assert (await read_usage(queue, ZETA)).left == 0
    for start in (web.start_scrape, web.start_map, web.start_crawl):
        with pytest.raises(QuotaExceeded):
            await start(queue, site.url, tenant="zeta", quota=ZETA)
    # Who asks again for what was begun gets it, whatever is left.
    assert await web.start_crawl(queue, site.url, **asked) == crawl_id
    with pytest.raises(DuplicateJob):
        await web.start_crawl(queue, f"{site.url}/1", **asked)
    await work(queue)
    assert (await read_usage(queue, ZETA)).used == 3
    # The next day has credits of its own.
    assert await Accounts(queue.database).usage.get("zeta", usage.end) == 0


async def test_n10_crawl_whose_finish_runs_again_is_counted_once(queue: Queue, site: Site) -> None:
    site.page("/", links=["/a"])
    faulty = FaultyStore(queue.store)
    faulty.lose_reply("usage.settle_runs")
    await web.start_crawl(queue, site.url, tenant="acme", quota=ACME)
    await work(Queue(faulty), wait_for_retries=0)
    [finish] = await queue.list(kind=FINISH)
    assert finish.state is JobState.SCHEDULED, "it did not learn that it had come so far"
    assert (await read_usage(queue, ACME)).used == 2

    await queue.retry(finish.id)
    await work(queue)

    assert (await queue.get(finish.id)).state is JobState.COMPLETED
    assert (await read_usage(queue, ACME)).used == 2


async def test_n10_callers_at_the_edge_overshoot_by_no_more_than_ran_at_once(
    queue: Queue, site: Site
) -> None:
    start = (await read_usage(queue, ACME)).start
    await Accounts(queue.database).usage.add([UsageRow("acme", start, 9)])
    asked = [web.start_scrape(queue, site.url, tenant="acme", quota=ACME) for _ in range(10)]
    begun = await asyncio.gather(*asked, return_exceptions=True)
    await work(queue)

    taken = sum(not isinstance(one, QuotaExceeded) for one in begun)
    assert (await read_usage(queue, ACME)).used == 9 + taken
    with pytest.raises(QuotaExceeded):
        await web.start_scrape(queue, site.url, tenant="acme", quota=ACME)


def test_a_period_is_a_day_or_a_month_by_utc() -> None:
    now = datetime.fromisoformat("2026-12-31T23:30:00-02:00")
    assert period_of(ZETA, now) == (utc(2027, 1, 1), utc(2027, 1, 2))
    assert period_of(ACME, now) == (utc(2027, 1, 1), utc(2027, 2, 1))
    assert period_of(ACME, utc(2026, 12, 31)) == (utc(2026, 12, 1), utc(2027, 1, 1))


def test_quotas_of_the_settings_say_what_is_wrong_with_them() -> None:
    assert parse_quotas("acme=10, zeta=3/day") == {"acme": ACME, "zeta": ZETA}
    for text in ("acme", "acme=many", "=3", "acme=3/year", "acme=-1"):
        with pytest.raises(ConfigError):
            parse_quotas(text)


def utc(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


async def test_n10_an_extract_costs_a_credit_for_each_page_that_was_read(
    queue: Queue, site: Site
) -> None:
    site.page("/a", text="Hay lies in rows.")
    site.page("/b")
    urls = [f"{site.url}/a", f"{site.url}/b", "http://10.0.0.1/"]  # the last is forbidden
    async with open_chat() as chat, Model(chat.url, "barn-1", KEY) as model:
        settings = Settings(llm_url=chat.url, llm_key=KEY)
        chat.otherwise = lambda asked: as_json(crop="hay")
        for wanted in (urls, urls[:2]):
            await start_extract(queue, settings, wanted, prompt="crop", tenant="acme", quota=ACME)
        with pytest.raises(QuotaExceeded):
            await start_extract(
                queue, settings, [f"{site.url}/{n}" for n in range(4)], prompt="crop", quota=ZETA
            )
        async with web_handlers(queue, guard=LOOPBACK, model=model) as handlers:
            await Worker(queue, handlers).run(until_idle=True)

    assert (await read_usage(queue, ACME)).used == 2 + 2
    assert (await read_usage(queue, ZETA)).used == 0


async def test_n10_a_page_with_an_idempotency_key_is_scraped_and_paid_once(
    queue: Queue, site: Site
) -> None:
    site.page("/a")
    last = QuotaRow("acme", 1, "month")
    asked: dict[str, Any] = {"tenant": "acme", "quota": last, "idempotency_key": "once"}
    first = await web.start_scrape(queue, f"{site.url}/a", **asked)
    await work(queue)
    again = await web.start_scrape(queue, f"{site.url}/a", **asked)
    others = await web.start_scrape(queue, f"{site.url}/a", tenant="zeta", idempotency_key="once")

    assert (again.id, again.state) == (first.id, JobState.COMPLETED)
    assert others.id != first.id
    assert site.hits["/a"] == (await read_usage(queue, last)).used == 1
    for options in (None, {"formats": ["html"]}):
        with pytest.raises(DuplicateJob):
            await web.start_scrape(queue, f"{site.url}/{options and 'a'}", options, **asked)
