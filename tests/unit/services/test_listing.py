"""A page of jobs for somebody who will not wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from windrow.queue.job import NewJob
from windrow.queue.queue import Queue
from windrow.services import listing
from windrow.services.listing import list_page
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
    monkeypatch.setattr(listing, "WINDOW", 7)
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
    monkeypatch.setattr(listing, "WINDOW", 7)
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
