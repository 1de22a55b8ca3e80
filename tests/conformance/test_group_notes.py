"""Notes of a group: written with a job's completion, each once, gone with the group."""

from __future__ import annotations

import pytest

from windrow import Done, Queue, Retry
from windrow.clock import FakeClock
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("groups")


async def test_notes_are_written_with_the_completion_or_not_at_all(store: Store) -> None:
    queue = Queue(store)
    group = await queue.create_group(hold=True)
    for _ in range(2):
        await queue.enqueue("page", group=group.id)
    lease = await queue.claim(limit=2, seconds=60)
    first, second = lease.jobs

    await first.tx.note(group.id, "robots", ["b", "a", "b"])
    assert await queue.group_notes(group.id, "robots") == []
    await lease.finish(first, Done())
    await second.tx.note(group.id, "robots", ["c"])
    await lease.finish(second, Retry("not yet", after=60))

    assert await queue.group_notes(group.id, "robots") == ["a", "b"]
    assert await queue.group_notes(group.id, "robots", after="a") == ["b"]
    assert await queue.group_notes(group.id, "robots", limit=1) == ["a"]
    assert await queue.group_notes(group.id, "other") == []


async def test_notes_go_when_their_group_does(store: Store, clock: FakeClock) -> None:
    queue = Queue(store)
    group = await queue.create_group(retention=60)
    await queue.enqueue("page", group=group.id)
    lease = await queue.claim(limit=1, seconds=60)
    [job] = lease.jobs
    await job.tx.note(group.id, "robots", ["a"])
    await lease.finish(job, Done())
    assert await queue.group_notes(group.id, "robots") == ["a"]

    clock.advance(61)
    await queue.prune()

    assert await queue.group_notes(group.id, "robots") == []


async def test_notes_can_be_added_at_once_and_are_kept_once(store: Store) -> None:
    queue = Queue(store)
    group = await queue.create_group(hold=True)
    await queue.add_group_notes(group.id, "robots", ["b", "a"])
    await queue.add_group_notes(group.id, "robots", ["c", "a", "a"])
    assert await queue.group_notes(group.id, "robots") == ["a", "b", "c"]
