"""The application's own tables, beside the jobs."""

from __future__ import annotations

import pytest

from windrow.errors import StoreError
from windrow.queue.store import Store


async def test_rows_are_read_and_changed_by_numbered_parameters(store: Store, run_sql) -> None:
    run_sql("create table barn (id integer primary key, hay varchar(20))")
    insert = "insert into barn values ($1, $2) returning id, hay"
    assert await store.change_rows(insert, 1, "dry") == [{"id": 1, "hay": "dry"}]
    assert await store.fetch_rows("select hay from barn where id = $1", 1) == [{"hay": "dry"}]
    assert await store.fetch_rows("select hay from barn where id = $1", 2) == []
    assert await store.change_rows("update barn set hay = $2 where id = $1", 1, "wet") == []
    with pytest.raises(StoreError):
        await store.change_rows(insert, 1, "again")
    with pytest.raises(StoreError):
        await store.fetch_rows("select hay from nowhere")


async def test_reading_changes_nothing(store: Store, run_sql) -> None:
    run_sql("create table barn (id integer primary key)")
    with pytest.raises(StoreError):
        await store.fetch_rows("insert into barn values (1) returning id")
    assert run_sql("select * from barn") == []
