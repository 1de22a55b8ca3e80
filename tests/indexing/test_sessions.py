"""What crawls elsewhere bring into the index, on each store (N13): counted once, however often it
is told, and with the seconds of each step."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.indexing.helpers import Library
from windrow.errors import EmbeddingRefused, JobNotFound
from windrow.pipelines.knowledge.context import Knowledge
from windrow.pipelines.knowledge.handing import FEED, SESSION
from windrow.pipelines.knowledge.handlers import knowledge_handlers
from windrow.services.handing_in import TextOptions, take_event
from windrow.services.sessions import Session, get_session, list_sessions
from windrow.worker.worker import Worker

STEPS = {"read", "chunk", "embed", "write", "switch"}


class Elsewhere:
    """A crawl that goes on elsewhere."""

    def __init__(self, library: Library, tenant: str | None = "acme") -> None:
        self.library = library
        self.tenant = tenant
        self.id = str(uuid.uuid4())

    async def tell(self, what: str, *pages: dict[str, Any], **more: Any) -> None:
        event = {"type": f"crawl.{what}", "id": self.id, "success": True, "data": list(pages)}
        event |= {"webhookId": str(uuid.uuid4()), **more}
        body = msgspec.json.encode(event)
        await take_event(self.library.queue, event, body, TextOptions(tenant=self.tenant))

    async def work(self) -> None:
        """As a worker does, feeding first and indexing then."""
        queue = self.library.queue
        handlers = knowledge_handlers(Knowledge(queue))
        await Worker(queue, handlers, queues=["unified_queue"]).run(until_idle=True)
        await self.library.work()

    async def session(self) -> Session:
        return await get_session(self.library.queue, self.id, tenant=self.tenant)


def page(name: str, text: str = "", **said: Any) -> dict[str, Any]:
    metadata = {"sourceURL": f"https://site.test/{name}", "statusCode": 200, **said}
    return {"markdown": text or f"Words of {name}.", "metadata": metadata}


async def test_n13_session_says_what_came_of_each_page_and_what_took_how_long(
    library: Library,
) -> None:
    crawl = Elsewhere(library)
    await crawl.tell("started")
    begun = await crawl.session()
    assert (begun.status, begun.pages, begun.ended_at, begun.crawl) == (
        "crawling",
        0,
        None,
        crawl.id,
    )
    for name in ("a", "b", "c"):
        await crawl.tell("page", page(name))
    await crawl.tell("page", page("gone", statusCode=404), page("empty", " "))
    await crawl.tell("completed")
    assert (await crawl.session()).status == "indexing"

    await crawl.work()

    ended = await crawl.session()
    assert (ended.status, ended.pages, ended.indexed, ended.failed) == ("completed", 5, 3, 2)
    assert set(ended.seconds) >= {"fetch", *STEPS}
    assert all(seconds >= 0 for seconds in ended.seconds.values())
    assert ended.ended_at is not None
    assert ended.ended_at > ended.started_at
    assert [one.id for one in await list_sessions(library.queue, tenant="acme")] == [ended.id]


async def test_n13_page_that_comes_again_counts_once(library: Library) -> None:
    crawl = Elsewhere(library)
    delivery = str(uuid.uuid4())
    await crawl.tell("started")
    for _ in range(2):
        await crawl.tell("started")
        await crawl.tell("page", page("a"), webhookId=delivery)
        await crawl.tell("page", page("a"))
        await crawl.tell("page", page("late", statusCode=500))
        await crawl.work()
    await crawl.tell("page", page("late"), page("a", "Other words of a."))
    await crawl.work()
    await crawl.tell("completed")
    await crawl.tell("completed")

    ended = await crawl.session()

    assert (ended.status, ended.pages, ended.indexed, ended.failed) == ("completed", 2, 2, 0)
    [record] = await library.queue.list(kind=SESSION)
    assert record.id == ended.id


async def test_n13_unchanged_pages_of_another_crawl_count_for_it_too(library: Library) -> None:
    first, second = Elsewhere(library), Elsewhere(library)
    for crawl in (first, second):
        await crawl.tell("page", page("a"))
        await crawl.work()
        await crawl.tell("completed")

    sessions = [await first.session(), await second.session()]

    assert [(one.pages, one.indexed) for one in sessions] == [(1, 1), (1, 1)]
    assert "embed" in sessions[0].seconds
    assert "embed" not in sessions[1].seconds, "nothing was embedded for it"


async def test_n13_two_that_tell_of_one_crawl_at_once_open_one_session(library: Library) -> None:
    crawl = Elsewhere(library)

    await asyncio.gather(*(crawl.tell("page", page(f"p{n}")) for n in range(8)))
    await crawl.work()

    assert ((await crawl.session()).pages, (await crawl.session()).indexed) == (8, 8)
    assert len(await library.queue.list(kind=SESSION)) == 1


async def test_n13_run_that_dies_before_it_notes_is_noted_by_the_next(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = Elsewhere(library)
    await crawl.tell("page", page("a"))
    await crawl.tell("completed")
    noted = library.queue.add_group_notes
    failures = 1

    async def fail_once(*arguments: Any, **more: Any) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise RuntimeError("the end of this run")
        await noted(*arguments, **more)

    monkeypatch.setattr(library.queue, "add_group_notes", fail_once)
    await crawl.work()
    assert (await crawl.session()).indexed == 0
    [job] = await library.queue.list(kind="index.write", state="scheduled")
    await library.queue.edit(job.id, run_at=datetime.now(UTC))
    await crawl.work()

    assert ((await crawl.session()).status, (await crawl.session()).indexed) == ("completed", 1)


async def test_n13_page_that_the_index_does_not_take_has_failed(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = library.embedders["words"]

    async def refuse(*_: Any, **__: Any) -> Any:
        raise EmbeddingRefused([0], "it is too long")

    monkeypatch.setattr(embedder, "embed", refuse)
    crawl = Elsewhere(library)
    await crawl.tell("page", page("a"))
    await crawl.tell("failed")
    await crawl.work()

    ended = await crawl.session()

    assert (ended.status, ended.pages, ended.indexed, ended.failed) == ("failed", 1, 0, 1)


async def test_n13_sessions_of_another_tenant_are_not_there(library: Library) -> None:
    mine, theirs = Elsewhere(library), Elsewhere(library, "other")
    theirs.id = mine.id
    await mine.tell("page", page("a"))
    await theirs.tell("page", page("a"), page("b"))

    assert [(await one.session()).pages for one in (mine, theirs)] == [1, 2]
    hidden = (await theirs.session()).id
    with pytest.raises(JobNotFound):
        await get_session(library.queue, hidden, tenant="acme")
    with pytest.raises(JobNotFound):
        await get_session(library.queue, "nowhere", tenant="acme")
    [feed, _] = await library.queue.list(kind=FEED)
    with pytest.raises(JobNotFound):
        await get_session(library.queue, feed.id)


async def test_n13_addresses_of_any_length_are_counted(library: Library) -> None:
    crawl = Elsewhere(library)
    await crawl.tell("page", page("x" * 1900), page("y" * 9000))
    await crawl.work()

    session = await crawl.session()

    assert (session.pages, session.indexed, session.failed) == (2, 1, 1)
