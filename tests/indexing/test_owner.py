"""The owner of the index: one process writes, others ask it, and another takes its place."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.indexing.helpers import Library
from windrow.catalog import Catalog
from windrow.catalog.contents import Refused
from windrow.catalog.sources import SourceRow
from windrow.errors import IndexUnavailable, InvalidSearch, StoreUnavailable
from windrow.index.edge import EdgeIndex
from windrow.index.home import Query, Space
from windrow.pipelines.index.awaiting import write_awaited
from windrow.pipelines.knowledge.handing import Handed, hand_in
from windrow.queue.job import LIVE
from windrow.queue.queue import Queue
from windrow.search.request import SearchRequest
from windrow.services import searching
from windrow.services.indexing import index_folder, open_index, owning, socket_path
from windrow.services.owning import Keeper, check_index, open_index_handlers
from windrow.services.searching import Searching, ask_owner, search
from windrow.settings import Settings
from windrow.worker.worker import Worker


@pytest.fixture
def settings(sqlite_template: Path, tmp_path: Path) -> Settings:
    """On one store: locks and sockets are the same on all."""
    path = tmp_path / "jobs.db"
    shutil.copyfile(sqlite_template, path)
    return Settings(database_url=f"sqlite:///{path}", data_dir=str(tmp_path / "data"))


@pytest.fixture
async def queue(settings: Settings) -> AsyncIterator[Queue]:
    async with Queue.open(settings.database_url) as opened:
        yield opened


async def put(queue: Queue, uri: str, text: str) -> None:
    library = Library(queue, None)  # type: ignore[arg-type]
    await library.put(uri, text)


@asynccontextmanager
async def owner(settings: Settings, queue: Queue) -> AsyncIterator[bool]:
    """An owner that does its jobs until they are done."""
    async with open_index_handlers(settings, queue) as handlers:
        if handlers:
            await Worker(queue, handlers, maintain=False).run(until_idle=True)
        yield bool(handlers)


async def found(settings: Settings, query: str) -> list[str]:
    answer = await search(settings, SearchRequest(query=query))
    return [one.uri for one in answer.results]


async def test_others_search_through_the_owner_and_without_one_by_themselves(
    settings: Settings, queue: Queue
) -> None:
    assert await found(settings, "hay") == []
    await put(queue, "hay.md", "# Hay\n\nA windrow is a row of cut hay.")
    await put(queue, "cat.md", "Cats sleep most of the day.")

    async with owner(settings, queue) as is_owner:
        assert is_owner
        socket = socket_path(index_folder(settings))
        assert socket.stat().st_mode & 0o777 == 0o600
        answer = await ask_owner(socket, SearchRequest(query="cut hay", limit=1))
        assert answer is not None
        assert [one.uri for one in answer.results] == ["hay.md"]
        assert answer.results[0].headings == ("Hay",)
        assert (await found(settings, "sleeping cats"))[0] == "cat.md"
        async with Searching(settings, queue) as many:
            assert (await many.search(SearchRequest(query="hay"))).results[0].uri == "hay.md"
            with pytest.raises(InvalidSearch):
                await many.search(SearchRequest(query=" "))
    assert not socket.exists()
    assert (await found(settings, "cut hay"))[0] == "hay.md"


async def test_second_worker_takes_the_place_of_an_owner_that_is_gone(
    settings: Settings, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.services.owning.TAKEOVER_SECONDS", 0.01)
    with owning(index_folder(settings)) as is_owner:
        assert is_owner
        async with open_index_handlers(settings, queue) as handlers:
            assert handlers == []
            await put(queue, "hay.md", "A row of cut hay.")
            with owning(index_folder(settings)) as is_second:
                assert not is_second
    async with open_index_handlers(settings, queue) as handlers:
        assert handlers, "it is free again"
    with owning(index_folder(settings)):
        waiting = open_index_handlers(settings, queue)
        assert await waiting.__aenter__() == []
    [job] = await queue.list(kind="index.write")
    await queue.wait(job.id, timeout=20)
    assert await found(settings, "hay") == ["hay.md"]
    await waiting.__aexit__(None, None, None)


async def test_lost_index_is_built_again_from_the_documents(
    settings: Settings, queue: Queue
) -> None:
    await put(queue, "hay.md", "A row of cut hay.")
    async with owner(settings, queue):
        pass
    index = open_index(settings, "edge")
    for space in await index.spaces():
        await asyncio.to_thread(shutil.rmtree, index_folder(settings) / "spaces" / space)
    await index.close()
    assert await found(settings, "hay") == []

    async with owner(settings, queue):
        assert await found(settings, "hay") == ["hay.md"]


async def test_index_is_optimized_when_much_is_new_and_tidied_when_something_is_dropped(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.services.owning.WORTH_OPTIMIZING", 10)
    optimized: list[int] = []

    async def optimize(space: Space) -> None:
        optimized.append(await library.index.count(space))

    monkeypatch.setattr(library.index, "optimize", optimize)
    keeper = Keeper(library.indexing)
    doc_id, _ = await library.put("a.md", "\n".join(f"row {n}" for n in range(12)))
    await library.work()
    await keeper.optimize()
    await keeper.optimize()
    assert optimized == [12]

    await keeper.tidy()
    assert await library.queue.list(kind="index.tidy") == []
    await Catalog(library.queue.database).documents.delete([doc_id])
    await keeper.tidy()
    await keeper.tidy()
    assert len(await library.queue.list(kind="index.tidy")) <= 2, "one that waits is enough"
    await library.work()
    await keeper.optimize()
    assert optimized == [12, 0]


async def test_search_gives_up_on_an_owner_that_does_not_answer(
    settings: Settings, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "PATIENCE_SECONDS", 0.05)
    with owning(index_folder(settings)), pytest.raises(Exception, match="does not answer"):
        await found(settings, "hay")


async def test_what_waits_without_a_job_is_given_to_the_index_again_and_the_refused_is_not(
    library: Library,
) -> None:
    await library.put("lost.md", "apple", enqueue=False)
    await library.put("other.md", "apple", enqueue=False, source="s2")
    await library.put("waits.md", "apple")
    _, refused = await library.put("refused.md", "apple", enqueue=False)
    await Catalog(library.queue.database).contents.refuse([Refused(refused, "too long")])

    source = SourceRow(None, "s1", "docs", "folder", "/docs")
    assert [await write_awaited(library.queue, source) for _ in range(2)] == [1, 0]
    assert len(await library.queue.list(kind="index.write", state=list(LIVE))) == 2
    await check_index(library.indexing)
    assert len(await library.queue.list(kind="index.write", state=list(LIVE))) == 3
    await library.work()

    assert sorted(await library.found("apple")) == ["lost.md", "other.md", "waits.md"]
    await check_index(library.indexing)
    assert await library.queue.list(kind="index.write", state=list(LIVE)) == []


async def test_errors_of_the_engine_say_which_index_it_is(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's own are bare exceptions: those of a full disk, as those of a wrong length."""
    await library.put("a.md", "apple")
    await library.work()
    [name] = await library.index.spaces()
    space = Space(name, library.embedders["words"].dimension)
    assert isinstance(library.index, EdgeIndex)

    with pytest.raises(IndexUnavailable, match=r"cannot be searched: .*dim"):
        await library.index.search(space, Query("apple", [1.0, 0.0], "semantic"))

    whole = library.index._shards[name]

    class Full:
        info = whole.info

        def update(self, _: object) -> None:
            raise Exception("No space left on device")

    with monkeypatch.context() as patched:
        patched.setitem(library.index._shards, name, Full())
        with pytest.raises(IndexUnavailable, match=r"cannot be changed: No space left"):
            await library.index.remove(space, [name])


async def test_what_was_handed_in_by_a_process_that_died_before_its_job_is_found_all_the_same(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SourceRow(None, "up", "docs", "upload", "upload:a.md")
    await Catalog(library.queue.database).sources.put([source])

    async def die(*_: object, **__: object) -> None:
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(library.queue, "enqueue_many", die)
        with pytest.raises(StoreUnavailable):
            await hand_in(library.queue, None, [Handed(source, "a.md", "apple")], title="a.md")

    await Keeper(library.indexing).write_overlooked()
    await library.work()

    assert await library.found("apple") == ["a.md"]


async def test_what_failed_or_was_cancelled_is_not_taken_for_overlooked(library: Library) -> None:
    _, failed = await library.put("failed.md", "apple")
    lease = await library.queue.claim(["index"])
    await lease.fail(lease.jobs[0], "broken", retry=False)
    _, cancelled = await library.put("cancelled.md", "pear")
    [waiting] = await library.queue.list(state="ready")
    await library.queue.cancel(waiting.id)
    keeper = Keeper(library.indexing)

    await keeper.write_overlooked()
    assert await library.queue.list(state=list(LIVE)) == []

    await library.put("busy.md", "plum")
    await library.put("lost.md", "fig", enqueue=False)
    await keeper.write_overlooked()
    assert len(await library.queue.list(state=list(LIVE))) == 1
    await library.work()
    await keeper.write_overlooked()
    await library.work()

    assert (await library.found("fig"))[0] == "lost.md"
    waiting_still = {
        one.id for one in await Catalog(library.queue.database).contents.list_awaited()
    }
    assert waiting_still == {failed, cancelled}
