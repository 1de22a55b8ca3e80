"""A page of jobs for somebody who will not wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from windrow.catalog import Catalog
from windrow.catalog.sources import SourceRow
from windrow.queue.job import FINAL, LIVE, NewJob
from windrow.queue.queue import Queue
from windrow.queue.records import JobFilter
from windrow.queue.store import Store
from windrow.services import listing
from windrow.services.knowledge import get_info
from windrow.services.listing import Page, list_page, next_window
from windrow.services.tenant_queue import TenantQueue


@pytest.fixture
async def jobs(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[TenantQueue]:
    """Forty jobs; each tenth is rare."""
    path = tmp_path / "jobs.db"
    path.write_bytes(sqlite_template.read_bytes())
    async with Queue.open(f"sqlite:///{path}") as queue:
        await queue.enqueue_many([NewJob("rare" if n % 10 == 0 else "usual") for n in range(40)])
        yield TenantQueue(queue, None)


async def test_pages_of_a_filter_leave_nothing_out(
    jobs: TenantQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "FIRST", 7)
    monkeypatch.setattr(listing, "MOST", 7)
    monkeypatch.setattr(listing, "FEWEST", 1)
    monkeypatch.setattr(listing, "PATIENCE_SECONDS", 3600.0)
    wanted = [job.id for job in await jobs.list(kind="rare")]
    first = await list_page(jobs, {"kind": "rare"}, after=None, limit=3)
    assert not first.is_cut_short
    rest = await list_page(jobs, {"kind": "rare"}, after=first.after, limit=3)
    assert [job.id for job in first.jobs + rest.jobs] == wanted
    assert rest.after is None


async def test_who_has_no_patience_is_told_where_to_go_on(
    jobs: TenantQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "FIRST", 7)
    monkeypatch.setattr(listing, "PATIENCE_SECONDS", -1.0)
    found, after, pages = [], None, 0
    while True:
        page = await list_page(jobs, {"kind": "rare"}, after=after, limit=50)
        found += page.jobs
        after, pages = page.after, pages + 1
        if after is None:
            break
        assert page.is_cut_short
    assert [job.id for job in found] == [job.id for job in await jobs.list(kind="rare")]
    assert pages == 6  # the last of them is empty: that it was the end is seen there


async def test_what_an_index_serves_is_read_at_once(jobs: TenantQueue) -> None:
    page = await list_page(jobs, {}, after=None, limit=50)
    assert len(page.jobs) == 40
    assert page.after is None
    failed = await list_page(jobs, {"state": "failed"}, after=None, limit=50)
    assert failed == listing.Page([], None)


def test_a_look_takes_no_more_jobs_than_there_is_time_for() -> None:
    assert next_window(250, took=0.001, left=0.029) == 1000, "not many more at once"
    assert next_window(1000, took=0.010, left=0.019) == 1900
    assert next_window(250, took=0.020, left=0.001) < listing.FEWEST
    assert next_window(250, took=0.020, left=-0.001) < listing.FEWEST
    assert next_window(250, took=0.0, left=0.03) == 1000


class Counting:
    """A store that says how many jobs were looked through."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.windows: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def find_earlier(
        self, wanted: JobFilter, count: int, *, after: str | None = None
    ) -> str | None:
        self.windows.append(count)
        return await self._store.find_earlier(wanted, count, after=after)


async def test_what_an_index_narrows_is_walked_along_it(
    jobs: TenantQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few jobs of a tenant lie behind many of others, and are found at the first look."""
    [own, *_] = await jobs.queue.enqueue_many(
        [NewJob("rare", tenant="acme"), *(NewJob("usual", tenant="globex") for _ in range(40))]
    )
    store = Counting(jobs.queue.store)
    monkeypatch.setattr(jobs.queue, "store", store)
    monkeypatch.setattr(listing, "FIRST_APART", 7)
    monkeypatch.setattr(listing, "PATIENCE_SECONDS", -1.0)

    page = await list_page(jobs, {"tenant": "acme", "kind": "rare"}, after=None, limit=50)
    assert ([job.id for job in page.jobs], page.after) == ([own.id], None)
    assert store.windows == [7]
    ready = await list_page(jobs, {"tenant": "acme", "state": "ready"}, after=None, limit=50)
    assert [job.id for job in ready.jobs] == [own.id]
    assert store.windows == [7, 7]


async def test_running_jobs_are_read_at_once_whatever_else_is_wanted(
    jobs: TenantQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Counting(jobs.queue.store)
    monkeypatch.setattr(jobs.queue, "store", store)
    page = await list_page(jobs, {"state": "active", "kind": "rare"}, after=None, limit=50)
    assert page == Page([], None)
    assert store.windows == []


async def test_jobs_of_several_states_are_looked_for_among_those_that_can_be_in_one(
    jobs: TenantQueue,
) -> None:
    page = await list_page(jobs, {"kind": "rare", "state": [*LIVE]}, after=None, limit=50)
    assert len(page.jobs) == 4
    assert await list_page(jobs, {"kind": "rare", "state": [*FINAL]}, after=None, limit=50) == (
        Page([], None)
    )


async def test_jobs_of_a_source_are_looked_for_no_longer_than_a_moment(
    jobs: TenantQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Catalog(jobs.queue.database).sources.put(
        [SourceRow(None, "s1", "docs", "note", "note:1")]
    )
    await jobs.queue.enqueue_many([NewJob("usual", tags=["source:s1"]) for _ in range(2)])
    monkeypatch.setattr(listing, "FIRST", 7)
    monkeypatch.setattr(listing, "PATIENCE_SECONDS", -1.0)

    looked = await get_info(jobs.queue, None, "s1", most=10)
    assert (looked.jobs, looked.has_more_jobs) == (2, True)
    waited = await get_info(jobs.queue, None, "s1")
    assert (waited.jobs, waited.has_more_jobs) == (2, False)
