"""`index.tidy`: what no document names any more leaves the index, and then the database.

A content may come back while it is being removed. Its row says so: then it is not deleted, and what
the index has lost of it is written again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from windrow.catalog import Catalog
from windrow.catalog.contents import Dropped
from windrow.index.home import Space
from windrow.pipelines.index.context import Indexing, next_space_of, space_of
from windrow.pipelines.index.payloads import QUEUE, TIDY, WRITE
from windrow.queue.job import DEFAULT_PRIORITY, NewJob
from windrow.queue.outcome import Done

AT_ONCE: Final = 500
UNIQUE: Final = TIDY


def tidy_job() -> NewJob:
    """One that waits is enough: it takes all there is when it runs."""
    return NewJob(TIDY, {}, queue=QUEUE, unique=UNIQUE, on_conflict="follow")


def write_job(content: str, tenant: str | None, priority: int = DEFAULT_PRIORITY) -> NewJob:
    return NewJob(
        WRITE,
        {"content": content},
        queue=QUEUE,
        priority=priority,
        tenant=tenant,
        unique=f"{WRITE}:{content}",
        on_conflict="follow",
    )


async def tidy(indexing: Indexing) -> Done:
    removed = 0
    then: list[NewJob] = []
    catalog = Catalog(indexing.queue.database)
    while dropped := await catalog.contents.find_dropped(AT_ONCE):
        await catalog.contents.keep([one.id for one in dropped if one.is_named])
        gone = [one for one in dropped if not one.is_named]
        await _remove(indexing, gone)
        deleted = set(await catalog.contents.delete([one.id for one in gone]))
        back = [one for one in gone if one.id not in deleted]
        await catalog.contents.forget_spaces(ids=[one.id for one in back])
        then += [write_job(one.id, one.tenant) for one in back]
        removed += len(deleted)
        if len(dropped) < AT_ONCE:
            break
    return Done({"removed": removed, "back": len(then)}, then=then)


async def _remove(indexing: Indexing, gone: Sequence[Dropped]) -> None:
    """From wherever they may be: the spaces of their collection, or the one they were last in."""
    by_space: defaultdict[Space, list[str]] = defaultdict(list)
    places: dict[tuple[str | None, str], list[Space]] = {}
    for one in gone:
        key = (one.tenant, one.collection)
        if key not in places:
            places[key] = await _spaces(indexing, *key)
        for space in places[key]:
            by_space[space].append(one.id)
    for space, contents in by_space.items():
        await indexing.index.remove(space, contents)


async def _spaces(indexing: Indexing, tenant: str | None, name: str) -> list[Space]:
    """Those of a collection; of one that is gone, all there are."""
    for collection in await Catalog(indexing.queue.database).collections.find(tenant or "", name):
        following = next_space_of(collection)
        return [space_of(collection), *([following] if following else [])]
    return [Space(one, 0) for one in await indexing.index.spaces()]
