"""Rows that are too much for one statement."""

from __future__ import annotations

import pytest

from tests.builders import row
from windrow.db.statements import parse_statement
from windrow.errors import QueueFull
from windrow.queue.postgres import inserting
from windrow.queue.postgres.inserting import in_parts
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.records import JobRow

COUNTS = parse_statement(
    "counts",
    "SELECT count(*) AS jobs, count(DISTINCT xmin::text) AS transactions FROM windrow.job_live",
)
HALF = "x" * (inserting.MOST_AT_ONCE // 2)


@pytest.mark.parametrize(
    ("payloads", "sizes"),
    [
        (["x", "x"], [2]),
        ([HALF, HALF, "x"], [1, 2]),
        ([HALF, "x", "x", HALF, "x"], [3, 2]),
        ([2 * HALF + "x", "x", 2 * HALF], [1, 1, 1]),
    ],
)
def test_parts_are_as_long_as_one_statement_takes(payloads: list[str], sizes: list[int]) -> None:
    rows = [row(payload=payload) for payload in payloads]
    parts = in_parts(rows)

    assert [one for part in parts for one in part] == rows
    assert [len(part) for part in parts] == sizes


async def test_parts_are_stored_together_and_in_their_order(store: PostgresStore) -> None:
    inserted = await store.insert_jobs(large_rows("q", "q", "other"))
    found = await store._database.fetch(COUNTS, {})

    assert [one.seq for one in inserted] == sorted({one.seq for one in inserted})
    assert [(r["jobs"], r["transactions"]) for r in found] == [(3, 1)]


async def test_bounded_queue_of_a_later_part_is_kept(store: PostgresStore) -> None:
    await store.set_queue("full", max_depth=1, on_full="reject")
    await store.insert_jobs([row(queue="full")])

    with pytest.raises(QueueFull):
        await store.insert_jobs(large_rows("q", "q", "full"))
    [found] = await store._database.fetch(COUNTS, {})
    assert found["jobs"] == 1


def large_rows(*queues: str) -> list[JobRow]:
    return [row(payload=HALF, queue=queue) for queue in queues]
