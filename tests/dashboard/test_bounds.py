"""Pages read no more than they say, and each thing once: what is bounded says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from windrow import Fail, NewJob, Queue
from windrow.catalog import Catalog
from windrow.catalog.contents import ContentRow, Written, content_id
from windrow.catalog.documents import DocumentRow
from windrow.catalog.sources import SourceRow
from windrow.ids import new_id
from windrow.services import knowledge, listing
from windrow.settings import Settings
from windrow.web import overview
from windrow.web.site import create_site

ADMIN, TENANT = "the-admin-of-all", "a-key-of-acme"


@pytest.fixture
async def queue(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[Queue]:
    path = tmp_path / "jobs.db"
    path.write_bytes(sqlite_template.read_bytes())
    async with Queue.open(f"sqlite:///{path}") as queue:
        yield queue


@pytest.fixture
async def log_in(queue: Queue, tmp_path: Path) -> AsyncIterator[Callable[[str], Any]]:
    settings = Settings(api_keys=f"{ADMIN} {TENANT}=acme:write", data_dir=str(tmp_path))
    transport = httpx.ASGITransport(create_site(queue, settings), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def log_in(key: str) -> httpx.AsyncClient:
            assert (await client.post("/ui/login", data={"key": key})).status_code == 303
            return client

        yield log_in


def count_calls(store: Any, monkeypatch: pytest.MonkeyPatch, *names: str) -> Counter[str]:
    calls: Counter[str] = Counter()

    def counted(name: str) -> Callable[..., Any]:
        verb = getattr(store, name)

        def call(*args: Any, **options: Any) -> Any:
            calls[name] += 1
            return verb(*args, **options)

        return call

    for name in names:
        monkeypatch.setattr(store, name, counted(name))
    return calls


def count_statements(database: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The statements that a database runs by themselves, by their names."""
    calls: Counter[str] = Counter()
    for verb in ("rows", "rows_each"):
        run = getattr(database, verb)

        def counted(name: str, *args: Any, run: Any = run, **values: Any) -> Any:
            calls[name] += 1
            return run(name, *args, **values)

        monkeypatch.setattr(database, verb, counted)
    return calls


async def test_the_overview_reads_each_thing_once(
    queue: Queue, log_in: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.enqueue_many([NewJob("work") for _ in range(5)])
    client = await log_in(ADMIN)
    await client.get("/")
    names = (
        "list_queues",
        "list_workers",
        "list_limits",
        "list_jobs",
        "list_groups",
        "list_errors",
    )
    calls = count_calls(queue.store, monkeypatch, *names)

    assert (await client.get("/")).status_code == 200
    # Jobs: those that ended last, and those that run.
    once = dict.fromkeys(("list_queues", "list_workers", "list_limits", "list_groups"), 1)
    assert calls == {**once, "list_jobs": 2}


async def test_totals_of_a_tenant_say_of_how_many_jobs_they_are(
    queue: Queue, log_in: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.enqueue_many([NewJob("work", tenant="acme") for _ in range(5)])
    client = await log_in(TENANT)
    calls = count_calls(queue.store, monkeypatch, "count_tenant")
    whole = (await client.get("/")).text
    assert "Of the newest" not in whole
    assert '<b class="ready">5</b>' in whole

    monkeypatch.setattr(overview, "MOST_OF_TENANT", 3)
    part = (await client.get("/")).text
    assert "Of the newest 3 jobs; older ones are not counted." in part
    assert '<b class="ready">3</b>' in part
    assert calls == {"count_tenant": 2}


async def test_errors_of_a_tenant_say_how_far_back_they_were_looked_for(
    queue: Queue, log_in: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.enqueue_many([NewJob("work", tenant="acme", max_attempts=1) for _ in range(5)])
    lease = await queue.claim(None, limit=5, seconds=60)
    await lease.finish_many([(job, Fail("no paper")) for job in lease.jobs])
    client = await log_in(TENANT)
    assert "newest 1 000 failed jobs" in (await client.get("/ui/failed")).text

    monkeypatch.setattr(listing, "FIRST_APART", 2)
    monkeypatch.setattr(listing, "PATIENCE_SECONDS", -1.0)
    part = (await client.get("/ui/failed")).text
    assert "Counted among what was made since" in part
    assert "no paper" in part


async def test_chunks_of_a_large_source_say_of_how_many_documents_they_are(
    queue: Queue, log_in: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(queue.database)
    await catalog.sources.put([SourceRow(None, "s1", "docs", "note", "note:1")])
    ids = [new_id() for _ in range(3)]
    texts = [ContentRow(content_id(id, "1"), None, "docs", "hay") for id in ids]
    await catalog.documents.put(
        [
            DocumentRow(id, None, "docs", "s1", f"note:{n}", pending=text.id)
            for n, (id, text) in enumerate(zip(ids, texts, strict=True))
        ],
        texts,
    )
    await catalog.contents.switch([Written(one.id, 4, "docs") for one in texts])
    client = await log_in(ADMIN)
    assert "12 chunks</dd>" in (await client.get("/ui/sources/s1")).text

    monkeypatch.setattr(knowledge, "MOST_CUT", 2)
    part = (await client.get("/ui/sources/s1")).text
    assert "8 chunks in the first 2 documents</dd>" in part
    assert "<dd>3</dd>" in part


async def test_a_page_of_sources_is_counted_at_once(
    queue: Queue, log_in: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [SourceRow(None, f"s{n}", "docs", "note", f"note:{n}") for n in range(20)]
    await Catalog(queue.database).sources.put(rows)
    client = await log_in(ADMIN)
    calls = count_statements(queue.database, monkeypatch)

    assert (await client.get("/ui/sources")).text.count('href="/ui/sources/s') == 20
    assert calls == {"count_sources": 1, "list_sources": 1}
