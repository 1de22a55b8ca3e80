"""Another model: a generation is built in the background, and the old one serves until then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.indexing.helpers import Library, Words
from windrow.catalog import Catalog
from windrow.catalog.sources import Collection
from windrow.errors import EmbeddingRefused, IndexUnavailable, StoreUnavailable
from windrow.index.home import Space
from windrow.pipelines.index import building
from windrow.pipelines.index.building import begin_build
from windrow.pipelines.index.context import space_of
from windrow.queue.job import LIVE, JobState
from windrow.services.owning import check_index


async def only(library: Library) -> Collection:
    [collection] = await Catalog(library.queue.database).collections.find()
    return collection


async def begin(library: Library, model: str = "better") -> Space:
    """Begin to embed with another model; where it was embedded before."""
    collection = await only(library)
    library.embedders[model] = Words(model, dimension=32)
    group = await begin_build(library.queue, collection, library.embedders[model])
    assert group is not None
    return space_of(collection)


class Picky(Words):
    """Does not take what is poison to it."""

    poison = "poison"

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Any:
        if bad := [place for place, text in enumerate(texts) if self.poison in text]:
            raise EmbeddingRefused(bad, "too long")
        return await super().embed(texts, query=query)


async def choose(library: Library, embedder: Words) -> None:
    """Another model in the settings, and the owner of the index begins with it."""
    library.embedders[embedder.model] = embedder
    library.default = embedder.model
    await check_index(library.indexing)


async def test_collection_is_embedded_anew_and_switched_as_one(library: Library) -> None:
    for number in range(5):
        await library.put(f"{number}.md", f"apple number {number}")
    await library.work()
    old = await begin(library)
    assert len(await library.found("apple")) == 5, "the old generation serves"
    assert (await only(library)).embedder == "words"

    await library.work()

    now = await only(library)
    assert (now.embedder, now.dimension, now.generation, now.next_generation) == (
        "better",
        32,
        2,
        None,
    )
    assert len(library.embedders["better"].texts) == 5
    assert len(await library.found("apple")) == 5
    assert await library.index.spaces() == [space_of(now).name]
    assert old.name not in await library.index.spaces()
    await library.put("0.md", "apple number 0")
    await library.work()
    assert len(library.embedders["better"].texts) == 5, "unchanged, so not embedded again"


async def test_what_comes_while_it_is_built_is_found_before_and_after(library: Library) -> None:
    await library.put("old.md", "apple of old")
    await library.work()
    await begin(library)
    await library.put("new.md", "apple of late")
    _, changed = await library.put("old.md", "apple that has changed")

    await library.work()
    await library.tidy()

    assert sorted(await library.found("apple")) == ["new.md", "old.md"]
    assert await library.found("changed", mode="keyword") == ["old.md"]
    assert await library.index.count(space_of(await only(library))) == 2
    [content] = await Catalog(library.queue.database).contents.get([changed])
    assert content.space == space_of(await only(library)).name


async def test_only_the_sink_that_failed_is_done_again(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written to the space that is searched, not to the one that is being built."""
    await library.put("old.md", "apple of old")
    await library.work()
    old = await begin(library)
    await library.queue.pause("index")
    await library.put("new.md", "apple of late")
    write = library.index.write

    async def failing(space: Space, points: object) -> None:
        if space.name != old.name:
            raise IndexUnavailable
        await write(space, points)  # type: ignore[arg-type]

    await library.queue.resume("index")
    with monkeypatch.context() as patched:
        patched.setattr(library.index, "write", failing)
        await library.work()
    assert sorted(await library.found("apple")) == ["new.md", "old.md"]
    assert len(library.embedders["words"].texts) == 2

    for job in await library.queue.list(state=[JobState.SCHEDULED, JobState.READY]):
        await library.queue.retry(job.id)
    await library.work()

    assert (await only(library)).embedder == "better"
    assert sorted(await library.found("apple")) == ["new.md", "old.md"]
    assert len(library.embedders["words"].texts) == 2, "the other sink was not done again"


async def test_without_the_old_model_words_are_still_looked_for(library: Library) -> None:
    await library.put("old.md", "apple of old")
    await library.work()
    await begin(library)
    del library.embedders["words"]
    answer = await library.search("apple")
    assert [one.uri for one in answer.results] == ["old.md"]
    assert answer.warning is not None
    await library.put("late.md", "apple of late")

    await library.work()

    answer = await library.search("apple")
    assert sorted(one.uri for one in answer.results) == ["late.md", "old.md"]
    assert answer.warning is None


async def test_generation_that_is_begun_anew_replaces_the_one_before(library: Library) -> None:
    await library.put("a.md", "apple")
    await library.work()
    await begin(library, "better")
    await begin(library, "best")

    await library.work()

    assert (await only(library)).embedder == "best"
    assert await library.found("apple") == ["a.md"]


async def test_text_that_the_new_model_refuses_does_not_keep_the_others_from_it(
    library: Library,
) -> None:
    for number in range(7):
        await library.put(f"{number}.md", f"apple {'poison' if number == 3 else number}")
    await library.work()
    await choose(library, Picky("picky", dimension=32))
    assert "3.md" in await library.found("poison"), "the old model serves what it took"

    await library.work()

    assert (await only(library)).embedder == "picky"
    assert sorted(await library.found("apple")) == [f"{n}.md" for n in (0, 1, 2, 4, 5, 6)]
    assert {job.state for job in await library.queue.list()} == {JobState.COMPLETED}
    catalog = Catalog(library.queue.database)
    [refused] = await catalog.documents.find(None, "docs", "s1", ["3.md"])
    assert refused.skipped is not None
    assert "too long" in refused.skipped
    assert not refused.is_searchable
    [counts] = await catalog.documents.count()
    assert (counts.documents, counts.searchable, counts.pending, counts.skipped) == (7, 6, 0, 1)

    await choose(library, Words("tolerant"))
    await library.work()
    assert "3.md" in await library.found("poison"), "another model takes it"
    [taken] = await catalog.documents.find(None, "docs", "s1", ["3.md"])
    assert (taken.skipped, taken.is_searchable) == (None, True)


async def test_what_comes_and_only_the_new_model_refuses_is_found_until_the_switch(
    library: Library,
) -> None:
    await library.put("old.md", "apple of old")
    await library.work()
    await choose(library, Picky("picky", dimension=32))
    await library.put("late.md", "apple and poison")
    await library.work("index.write")
    assert sorted(await library.found("apple")) == ["late.md", "old.md"]
    await library.work()

    assert await library.found("apple") == ["old.md"]
    assert {job.state for job in await library.queue.list()} == {JobState.COMPLETED}


@pytest.mark.parametrize("verb", ["create_group", "enqueue_many", "close_group"])
async def test_build_that_died_while_it_began_is_gone_on_with(
    library: Library, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    await library.put("a.md", "apple")
    await library.work()

    async def die(*_: object, **__: object) -> None:
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(library.queue, verb, die)
        with pytest.raises(StoreUnavailable):
            await choose(library, Words("better", dimension=32))
    await library.work()
    assert (await only(library)).embedder == "words"

    await check_index(library.indexing)
    await library.work()

    assert (await only(library)).embedder == "better"
    assert await library.found("apple") == ["a.md"]
    assert len(library.embedders["better"].texts) == 1


async def test_build_that_is_under_way_is_not_begun_again(library: Library) -> None:
    await library.put("a.md", "apple")
    await library.work()
    await choose(library, Words("better", dimension=32))
    await check_index(library.indexing)

    assert len(await library.queue.list(kind="index.build", state=list(LIVE))) == 1
    assert (await only(library)).next_generation == 2


async def test_switch_that_was_given_up_is_done_when_the_owner_begins_again(
    library: Library,
) -> None:
    await library.put("a.md", "apple")
    await library.work()
    await choose(library, Words("better", dimension=32))
    await library.queue.pause("index")
    [built] = await library.queue.list(kind="index.build")
    await library.queue.cancel(built.id)
    [switch] = await library.queue.list(kind="index.switch")
    await library.queue.cancel(switch.id)
    await library.queue.resume("index")
    assert (await only(library)).next_generation == 2

    await check_index(library.indexing)
    await check_index(library.indexing)
    assert len(await library.queue.list(kind="index.switch", state=list(LIVE))) == 1
    await library.work()

    assert (await only(library)).embedder == "better"
    assert await library.found("apple") == ["a.md"]


async def test_switch_writes_all_that_is_late_however_much_it_is(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "PAGE", 2)
    monkeypatch.setattr(building, "AT_ONCE", 2)
    for number in range(7):
        await library.put(f"{number}.md", f"apple {number}")
    await library.work()
    await library.queue.pause("index")
    await choose(library, Words("better", dimension=32))
    for job in await library.queue.list(kind="index.build"):
        await library.queue.cancel(job.id)
    await library.queue.resume("index")

    await library.work()

    assert (await only(library)).embedder == "better"
    assert len(await library.found("apple")) == 7


async def test_generation_whose_model_is_taken_back_is_not_switched_to(library: Library) -> None:
    await library.put("a.md", "apple")
    await library.work()
    await choose(library, Words("better", dimension=32))
    del library.embedders["better"]
    library.default = "words"

    await library.work()
    await check_index(library.indexing)
    await library.work()
    assert (await only(library)).embedder == "words"
    assert await library.found("apple") == ["a.md"]

    await choose(library, Words("better", dimension=32))
    await library.work()
    assert (await only(library)).embedder == "better"
    assert await library.found("apple") == ["a.md"]


async def test_store_without_groups_stays_with_the_model_it_has(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it keep the owner from beginning."""
    await library.put("a.md", "apple")
    await library.work()
    without = replace(library.queue.store.capabilities, groups=False)
    monkeypatch.setattr(library.queue.store, "capabilities", without)

    await choose(library, Words("better", dimension=32))

    assert (await only(library)).next_generation is None
    assert await library.found("apple") == ["a.md"]
