"""keep_page and its kin: earlier versions of web pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from windrow.catalog import Catalog
from windrow.catalog.pages import PageRow, page_key, page_site
from windrow.queue.job import NewJob
from windrow.queue.queue import Queue
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("documents")

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def page(url: str = "https://example.org/", **fields: Any) -> PageRow:
    given: dict[str, Any] = {"tenant": None, "variant": "v", "fetched_at": NOON, "body": b"one"}
    return PageRow(url=url, **(given | fields))


async def test_page_is_found_by_tenant_address_and_variant(store: Store) -> None:
    kept = page(tenant="acme", etag='"1"', last_modified="Fri, 02 Jan 2026 12:00:00 GMT")
    catalog = Catalog(store.database)
    await catalog.pages.keep(kept)

    assert await catalog.pages.get(kept.key) == kept
    assert await catalog.pages.get(page_key(None, kept.url, "v")) is None
    assert await catalog.pages.get(page_key("globex", kept.url, "v")) is None
    assert await catalog.pages.get(page_key("acme", kept.url, "w")) is None


async def test_newer_version_replaces_an_older_one_and_never_the_other_way(store: Store) -> None:
    later = NOON + timedelta(hours=1)
    catalog = Catalog(store.database)
    await catalog.pages.keep(page(body=b"two", fetched_at=later))
    await catalog.pages.keep(page(body=b"one"))
    found = await catalog.pages.get(page().key)
    assert found is not None
    assert (found.body, found.fetched_at) == (b"two", later)

    await catalog.pages.touch(page().key, NOON)
    await catalog.pages.touch(page().key, later + timedelta(hours=1))
    found = await catalog.pages.get(page().key)
    assert found is not None
    assert (found.body, found.fetched_at) == (b"two", later + timedelta(hours=1))


async def test_oldest_pages_go_first_and_only_as_many_as_needed(store: Store) -> None:
    rows = [
        page(f"https://example.org/{hour}", fetched_at=NOON + timedelta(hours=hour))
        for hour in (3, 1, 2, 0)
    ]
    catalog = Catalog(store.database)
    for row in rows:
        await catalog.pages.keep(row)

    assert await catalog.pages.prune(2 * rows[0].bytes, limit=1) == rows[0].bytes
    assert await catalog.pages.get(rows[3].key) is None, "the oldest"
    assert await catalog.pages.prune(2 * rows[0].bytes) == rows[0].bytes
    assert await catalog.pages.prune(2 * rows[0].bytes) == 0

    left = [row.url[-1] for row in rows if await catalog.pages.get(row.key) is not None]
    assert left == ["3", "2"]


async def test_page_of_a_job_is_kept_when_the_job_is_completed_and_not_before(store: Store) -> None:
    queue = Queue(store)
    first, second = page("https://example.org/1"), page("https://example.org/2")
    await queue.enqueue_many([NewJob("scrape", {}), NewJob("scrape", {})])
    lease = await queue.claim(limit=2)
    failed, completed = lease.jobs
    catalog = Catalog(store.database)
    await catalog.pages.keep(first, tx=failed.tx)
    await lease.fail(failed, "no such luck")
    assert await catalog.pages.get(first.key) is None

    await catalog.pages.keep(second, tx=completed.tx)
    assert await catalog.pages.get(second.key) is None
    await lease.complete(completed)
    assert await catalog.pages.get(second.key) == second


async def test_pages_of_a_site_and_its_subdomains_are_listed_for_their_tenant(store: Store) -> None:
    own = ["http://example.org/b", "https://docs.example.org/", "https://example.org/a"]
    others = ["https://example.org.evil.test/", "https://my-example.org/", "https://org/"]
    catalog = Catalog(store.database)
    for url in (*own, *others):
        await catalog.pages.keep(page(url, tenant="acme"))
    await catalog.pages.keep(page(own[0], tenant="acme", variant="w"))
    await catalog.pages.keep(page("https://example.org/nobodys"))
    site = page_site("https://example.org/anything") or ""

    assert site == "org.example."
    assert await catalog.pages.list_urls("acme", site, limit=10) == own
    assert await catalog.pages.list_urls("acme", site, limit=2) == own[:2]
    assert await catalog.pages.list_urls(None, site, limit=10) == ["https://example.org/nobodys"]
    assert await catalog.pages.list_urls("globex", site, limit=10) == []
