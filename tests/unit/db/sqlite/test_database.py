"""The statements of other packages on SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.clock import Clock
from windrow.errors import StoreError
from windrow.queue.sqlite.store import SqliteStore


async def test_a_jobs_transaction_refuses_to_read_and_says_where_to(tmp_path: Path) -> None:
    store = await SqliteStore.open(f"sqlite:///{tmp_path / 'jobs.db'}", clock=Clock())
    tx = store.database.joined(await store.begin())

    with pytest.raises(StoreError, match="Read through a connection of your own"):
        await tx.rows("list_quotas")
    await store.close()
