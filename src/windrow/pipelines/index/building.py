"""Another generation of a collection, with another model: built in the background, by a group of
jobs, while searches read the one there is. When the last job has ended, one update switches.

A lost index is built again in the same way into the same place: its contents are where they were,
in the database.
"""

from __future__ import annotations

from typing import Final

import msgspec

from windrow.index.home import Filter, Space
from windrow.pipelines.index.context import Embedder, Indexing, next_space_of, space_of
from windrow.pipelines.index.payloads import (
    BUILD,
    QUEUE,
    SWITCH,
    BuildPayload,
    SwitchPayload,
)
from windrow.pipelines.index.tidying import write_job
from windrow.pipelines.index.writing import Timings, load, write_next
from windrow.queue.documents import Collection, Written
from windrow.queue.job import NewJob, Priority
from windrow.queue.outcome import Done
from windrow.queue.queue import Queue

AT_ONCE: Final = 200  # contents of one job
PAGE: Final = 5_000


async def begin_build(queue: Queue, collection: Collection, embedder: Embedder) -> str | None:
    """Begin to build a collection anew with this model; the group that does it."""
    begun = await queue.store.begin_generation(
        collection.tenant, collection.name, embedder.model, embedder.dimension
    )
    following = None if begun is None else next_space_of(begun)
    if begun is None or begun.next_generation is None or following is None:
        return None
    finish = SwitchPayload(begun.name, begun.next_generation, begun.tenant)
    group = await queue.create_group(
        hold=True,
        tenant=begun.tenant,
        then=NewJob(SWITCH, _plain(finish), queue=QUEUE, tenant=begun.tenant),
    )
    after = ""
    while page := await queue.store.list_contents(
        begun.tenant, begun.name, space=following.name, after=after, limit=PAGE
    ):
        after = page[-1]
        payloads = [
            BuildPayload(
                begun.name,
                begun.next_generation,
                tuple(page[start : start + AT_ONCE]),
                begun.tenant,
            )
            for start in range(0, len(page), AT_ONCE)
        ]
        await queue.enqueue_many([_build_job(one, group.id) for one in payloads])
    await queue.close_group(group.id)
    return group.id


async def build(indexing: Indexing, payload: BuildPayload) -> Done:
    collection = await _collection(indexing, payload.tenant, payload.collection)
    new = None if collection is None else next_space_of(collection)
    if collection is None or new is None or collection.next_generation != payload.generation:
        return Done({"dropped": "another generation is being built"})
    following = next_space_of(collection)
    found = await load(indexing, payload.contents)
    name = following.name if following else None
    missing = [one for one in found.values() if one.info.space != name]
    timings = Timings()
    await write_next(indexing, collection, missing, timings)
    return Done({"contents": len(missing), "seconds": timings.plain()})


async def switch(indexing: Indexing, payload: SwitchPayload) -> Done:
    """Searches read what was built; what was read before is removed."""
    store = indexing.queue.store
    collection = await _collection(indexing, payload.tenant, payload.collection)
    new = None if collection is None else next_space_of(collection)
    if collection is None or new is None or collection.next_generation != payload.generation:
        return Done({"dropped": "another generation is being built"})
    old = space_of(collection)
    late = await store.list_contents(payload.tenant, payload.collection, space=new.name, limit=PAGE)
    found = await load(indexing, late)
    await write_next(indexing, collection, list(found.values()), Timings())
    await indexing.index.optimize(new)
    await store.switch_generation(payload.tenant, payload.collection, payload.generation)
    await _switch_waiting(indexing, collection, new)
    await _leave(indexing, collection, old)
    return Done({"space": new.name, "late": len(found)})


async def rebuild(queue: Queue, collection: Collection) -> int:
    """Write everything of a collection again, into the space where searches look; how many
    contents."""
    await queue.store.forget_spaces(collection.tenant or "", collection.name)
    count, after = 0, ""
    while page := await queue.store.list_contents(
        collection.tenant, collection.name, after=after, limit=PAGE
    ):
        after = page[-1]
        count += len(page)
        await queue.enqueue_many([write_job(one, collection.tenant) for one in page])
    return count


async def _switch_waiting(indexing: Indexing, collection: Collection, space: Space) -> None:
    """Documents that wait for a content which only the new generation has."""
    store = indexing.queue.store
    after = ""
    while page := await store.list_contents(
        collection.tenant, collection.name, after=after, limit=AT_ONCE
    ):
        after = page[-1]
        found = await load(indexing, page)
        waiting = [
            Written(one.info.id, one.info.chunks, space.name)
            for one in found.values()
            if one.info.space == space.name
            and any(document.pending == one.info.id for document in one.documents)
        ]
        if waiting:
            await store.switch_contents(waiting)


async def _leave(indexing: Indexing, collection: Collection, old: Space) -> None:
    """Drop a space that no collection looks in any more; else remove what is this one's there."""
    others = await indexing.queue.store.list_collections()
    if not any(
        space_of(one).name == old.name
        for one in others
        if (one.tenant, one.name) != (collection.tenant, collection.name)
    ):
        await indexing.index.drop(old)
        return
    meant = Filter(tenant=collection.tenant or "", collections=(collection.name,))
    if await indexing.index.count(old, meant):
        after = ""
        while page := await indexing.queue.store.list_contents(
            collection.tenant, collection.name, after=after, limit=PAGE
        ):
            after = page[-1]
            await indexing.index.remove(old, page)


async def _collection(indexing: Indexing, tenant: str | None, name: str) -> Collection | None:
    found = await indexing.queue.store.list_collections(tenant or "", name)
    return found[0] if found else None


def _build_job(payload: BuildPayload, group: str) -> NewJob:
    return NewJob(
        BUILD,
        _plain(payload),
        queue=QUEUE,
        tenant=payload.tenant,
        group=group,
        priority=Priority.BULK,
    )


def _plain(payload: BuildPayload | SwitchPayload) -> dict[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(payload)
    return plain
