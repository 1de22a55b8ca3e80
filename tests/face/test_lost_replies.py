"""The face over a store that fails at the worst moment."""

from __future__ import annotations

import pytest

from tests.faults import FaultyStore
from windrow import NewJob, Queue
from windrow.errors import StoreUnavailable
from windrow.queue import queue as queue_module
from windrow.queue.job import JobState
from windrow.queue.store import Store


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "RETRY_WAITS", (0.0, 0.0, 0.0))


async def test_an_insert_whose_reply_was_lost_is_not_doubled(store: Store) -> None:
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    faulty.lose_reply("insert_jobs", call=1)
    made = await queue.enqueue("work", {"n": 1})
    faulty.lose_reply("insert_jobs", call=3)
    await queue.enqueue_many([NewJob("work") for _ in range(100)])
    assert len(await queue.list(limit=1000)) == 101
    assert (await queue.get(made.id)).payload == {"n": 1}


async def test_an_insert_that_never_arrived_is_sent_again(store: Store) -> None:
    faulty = FaultyStore(store)
    faulty.fail_before("insert_jobs", call=1)
    made = await Queue(faulty).enqueue("work")
    assert made.state == JobState.READY


async def test_a_store_that_stays_away_is_reported(store: Store) -> None:
    faulty = FaultyStore(store)
    for call in range(1, 5):
        faulty.fail_before("insert_jobs", call=call)
    with pytest.raises(StoreUnavailable):
        await Queue(faulty).enqueue("work")
    assert await Queue(store).list() == []
