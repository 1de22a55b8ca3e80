"""Whether what waits for the index is still to come, as whoever shows progress asks."""

from __future__ import annotations

from functools import partial

from tests.indexing.helpers import Library
from windrow.catalog import Catalog
from windrow.catalog.documents import Pending
from windrow.services.operations import look_at_pending


async def count(library: Library) -> Pending:
    return await Catalog(library.queue.database).documents.count_pending(
        None, "docs", "s1", limit=10
    )


async def test_what_has_a_job_is_to_come_and_what_has_none_is_not(library: Library) -> None:
    await library.put("lost.md", "apple", enqueue=False)

    pending, is_coming = await look_at_pending(library.queue, partial(count, library))
    assert (pending.waiting, is_coming) == (1, False)

    await library.put("waits.md", "pear")
    pending, is_coming = await look_at_pending(library.queue, partial(count, library))
    assert (pending.waiting, is_coming) == (2, True)


async def test_what_is_written_between_two_looks_is_not_taken_for_lost(library: Library) -> None:
    await library.put("a.md", "apple")

    async def count_and_let_it_be_written() -> Pending:
        pending = await count(library)
        await library.work()
        return pending

    pending, is_coming = await look_at_pending(library.queue, count_and_let_it_be_written)

    assert (pending.documents, pending.waiting, is_coming) == (1, 0, False)
