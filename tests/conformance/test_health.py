"""check_health: what a store tells of its database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.builders import add_many
from tests.conftest import OpenAnother
from windrow.clock import Clock, FakeClock
from windrow.queue.store import Store


async def test_time_is_that_of_the_clock(
    store: Store, clock: FakeClock, open_another: OpenAnother
) -> None:
    assert (await store.check_health()).now == clock.now()
    real = await open_another(Clock())
    assert abs((await real.check_health()).now - datetime.now(UTC)) < timedelta(minutes=1)


async def test_each_store_tells_what_applies_to_it(store: Store, store_name: str) -> None:
    await add_many(store, 3)
    vitals = await store.check_health()
    if store_name != "sqlite":
        assert vitals.connections is not None
        assert vitals.max_connections is not None
        assert 0 < vitals.connections <= vitals.max_connections
        assert (vitals.journal_mode, vitals.free_bytes) == (None, None)
    else:
        assert vitals.journal_mode == "wal"
        assert (vitals.log_bytes or 0) > 0
        assert (vitals.free_bytes or 0) > 0
        assert vitals.connections is None
