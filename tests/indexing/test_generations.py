"""Another model: a generation is built in the background, and the old one serves until then."""

from __future__ import annotations

import pytest

from tests.indexing.helpers import Library, Words
from windrow.errors import IndexUnavailable
from windrow.index.home import Space
from windrow.pipelines.index.building import begin_build
from windrow.pipelines.index.context import space_of
from windrow.queue.documents import Collection
from windrow.queue.job import JobState


async def only(library: Library) -> Collection:
    [collection] = await library.queue.store.list_collections()
    return collection


async def begin(library: Library, model: str = "better") -> Space:
    """Begin to embed with another model; where it was embedded before."""
    collection = await only(library)
    library.embedders[model] = Words(model, dimension=32)
    group = await begin_build(library.queue, collection, library.embedders[model])
    assert group is not None
    return space_of(collection)


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
    [content] = await library.queue.store.get_contents([changed])
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
