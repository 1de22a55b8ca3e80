"""Another generation of a collection, with another model: built in the background, by a group of
jobs, while searches read the one there is. When the last job has ended, one update switches. The id
of the group follows from the generation, so what died on the way is found, and gone on with.

A lost index is built again in the same way into the same place: its contents are where they were,
in the database.
"""

from __future__ import annotations

import logging
import uuid
from typing import Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.contents import Written
from windrow.catalog.sources import Collection
from windrow.errors import GroupEnded, GroupNotFound
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
from windrow.pipelines.index.writing import Refusals, Timings, load, refuse, write_next
from windrow.queue.job import NewJob, Priority
from windrow.queue.outcome import Done
from windrow.queue.queue import Queue
from windrow.queue.records import Group

logger = logging.getLogger(__name__)

AT_ONCE: Final = 200  # contents of one job
PAGE: Final = 5_000
NOT_BUILT: Final = "another generation is being built"
NO_MODEL: Final = "the model of this generation is not configured any more"
# Where generations become ids of groups.
_GENERATIONS: Final = uuid.UUID("0b6f4c7e-51b8-5e0d-9a44-6f2c8f2b7d19")


async def begin_build(queue: Queue, collection: Collection, embedder: Embedder) -> str | None:
    """Begin to build a collection anew with this model; the group that does it."""
    begun = await Catalog(queue.database).collections.begin_generation(
        collection.tenant, collection.name, embedder.model, embedder.dimension
    )
    return None if begun is None else await _enqueue(queue, begun)


async def resume_build(queue: Queue, collection: Collection, embedder: Embedder) -> bool:
    """Go on with a generation that was begun and that nobody works at any more; whether there was
    anything to do. This is harmless while somebody does: what is built is not built again."""
    group = await _group(queue, collection)
    if group is None or group.is_open:
        await _enqueue(queue, collection)
    elif group.state == "completed":
        # The switch failed. It builds what is missing by itself.
        [inserted] = await queue.enqueue_many([_switch_job(collection)])
        return inserted.outcome == "inserted"
    elif group.state == "cancelled":
        await begin_build(queue, collection, embedder)
    else:
        return False
    return True


async def _enqueue(queue: Queue, collection: Collection) -> str | None:
    """Enqueue what builds the generation that was begun, as a group; done again, into the same."""
    generation, following = collection.next_generation, next_space_of(collection)
    if generation is None or following is None:
        return None
    group_id = _group_id(collection)
    tenant, name = collection.tenant, collection.name
    # One that another process has made, or this one before it died, stays as it is.
    await queue.create_group(id=group_id, hold=True, tenant=tenant, then=_switch_job(collection))
    after = ""
    try:
        while page := await Catalog(queue.database).contents.page(
            tenant, name, space=following.name, after=after, limit=PAGE
        ):
            after = page[-1]
            payloads = [
                BuildPayload(name, generation, tuple(page[start : start + AT_ONCE]), tenant)
                for start in range(0, len(page), AT_ONCE)
            ]
            await queue.enqueue_many([_build_job(one, group_id) for one in payloads])
    except GroupEnded:
        return group_id  # another process has enqueued all of it
    await queue.close_group(group_id)
    return group_id


async def build(indexing: Indexing, payload: BuildPayload) -> Done:
    collection = await _collection(indexing, payload.tenant, payload.collection)
    new = None if collection is None else next_space_of(collection)
    if collection is None or new is None or collection.next_generation != payload.generation:
        return Done({"dropped": NOT_BUILT})
    if await indexing.find_embedder(collection.next_embedder) is None:
        return Done({"dropped": NO_MODEL})
    found = await load(indexing, payload.contents)
    missing = [one for one in found.values() if one.info.space != new.name]
    timings = Timings()
    refused = await write_next(indexing, collection, missing, timings)
    return Done({"contents": len(missing), "refused": len(refused), "seconds": timings.plain()})


async def switch(indexing: Indexing, payload: SwitchPayload) -> Done:
    """Searches read what was built; what was read before is removed."""
    collection = await _collection(indexing, payload.tenant, payload.collection)
    new = None if collection is None else next_space_of(collection)
    if collection is None or new is None or collection.next_generation != payload.generation:
        return Done({"dropped": NOT_BUILT})
    if await indexing.find_embedder(collection.next_embedder) is None:
        return Done({"dropped": NO_MODEL})  # searches go on with what there is
    old = space_of(collection)
    late, refused = await _write_late(indexing, collection, new)
    await indexing.index.optimize(new)
    # Before the switch: after it nothing would know any more what was refused.
    await refuse(indexing, refused)
    await Catalog(indexing.queue.database).collections.switch_generation(
        payload.tenant, payload.collection, payload.generation
    )
    await _switch_waiting(indexing, collection, new)
    await _leave(indexing, collection, old)
    if refused:
        logger.warning(
            "%d texts of %s are not found any more: the model does not take them",
            len(refused),
            collection.name,
        )
    return Done({"space": new.name, "late": late, "refused": len(refused)})


async def rebuild(queue: Queue, collection: Collection) -> int:
    """Write everything of a collection again, into the space where searches look; how many
    contents."""
    catalog = Catalog(queue.database)
    await catalog.contents.forget_spaces(collection.tenant or "", collection.name)
    count, after = 0, ""
    while page := await catalog.contents.page(
        collection.tenant, collection.name, after=after, limit=PAGE
    ):
        after = page[-1]
        count += len(page)
        await queue.enqueue_many([write_job(one, collection.tenant) for one in page])
    return count


async def _write_late(
    indexing: Indexing, collection: Collection, new: Space
) -> tuple[int, Refusals]:
    """Write what the new generation lacks, all of it; how much that was, and what its model does
    not take."""
    count, after = 0, ""
    refused: Refusals = {}
    while page := await Catalog(indexing.queue.database).contents.page(
        collection.tenant, collection.name, space=new.name, after=after, limit=AT_ONCE
    ):
        after = page[-1]
        found = await load(indexing, page)
        refused |= await write_next(indexing, collection, list(found.values()), Timings())
        count += len(found)
    return count - len(refused), refused


async def _switch_waiting(indexing: Indexing, collection: Collection, space: Space) -> None:
    """Documents that wait for a content which only the new generation has."""
    after = ""
    catalog = Catalog(indexing.queue.database)
    while page := await catalog.contents.page(
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
            await catalog.contents.switch(waiting)


async def _leave(indexing: Indexing, collection: Collection, old: Space) -> None:
    """Drop a space that no collection looks in any more; else remove what is this one's there."""
    catalog = Catalog(indexing.queue.database)
    others = await catalog.collections.find()
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
        while page := await catalog.contents.page(
            collection.tenant, collection.name, after=after, limit=PAGE
        ):
            after = page[-1]
            await indexing.index.remove(old, page)


async def _collection(indexing: Indexing, tenant: str | None, name: str) -> Collection | None:
    found = await Catalog(indexing.queue.database).collections.find(tenant or "", name)
    return found[0] if found else None


async def _group(queue: Queue, collection: Collection) -> Group | None:
    try:
        return await queue.group(_group_id(collection))
    except GroupNotFound:
        return None


def _group_id(collection: Collection) -> str:
    """A collection of this name may have been there before, with the same generations."""
    named = (collection.tenant or "", collection.name, collection.created_at.isoformat())
    return str(uuid.uuid5(_GENERATIONS, "\n".join([*named, str(collection.next_generation)])))


def _switch_job(collection: Collection) -> NewJob:
    payload = SwitchPayload(collection.name, collection.next_generation or 0, collection.tenant)
    return NewJob(
        SWITCH,
        _plain(payload),
        queue=QUEUE,
        tenant=collection.tenant,
        unique=f"{SWITCH}:{_group_id(collection)}",
    )


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
