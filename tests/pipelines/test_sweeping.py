"""Rows that no job is at work for: begun, or failed with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipelines.test_chain import lose_worker
from windrow import Job, Queue, Worker
from windrow.errors import ConfigError
from windrow.pipelines import sweeping
from windrow.pipelines.chain import Chain, StatusRow
from windrow.pipelines.sweeping import Sweeper


@pytest.fixture
def chain() -> Chain:
    chain = Chain("call", status=StatusRow("call"))

    @chain.stage("fetch", queue="fetching", status="fetching", lease=10)
    async def fetch(job: Job, payload: dict[str, Any]) -> str:
        return str(payload["file"])

    return chain


@pytest.fixture
def statuses(run_sql) -> Any:
    run_sql(
        "create table call (id integer, file varchar(20), processing_status varchar(20), "
        "processing_error varchar(200))"
    )
    return lambda: run_sql("select id, processing_status, processing_error from call order by id")


async def sweep(queue: Queue, chain: Chain) -> Any:
    sweeper = Sweeper(chain, queue, columns=["file"])
    job = await queue.enqueue(sweeper.kind, queue=sweeping.QUEUE)
    await Worker(queue, [sweeper.handler]).run(until_idle=True)
    return (await queue.get(job.id)).result


async def test_row_without_a_job_gets_one(queue: Queue, chain: Chain, statuses, run_sql) -> None:
    """P5: a sweeper catches the rest."""
    for id, status in enumerate(["pending", "fetching", "done", "failed", "unknown"]):
        run_sql(f"insert into call values ({id}, 'file {id}', '{status}', null)")
    assert await sweep(queue, chain) == {"begun": 2, "failed": 0}
    assert await sweep(queue, chain) == {"begun": 0, "failed": 0}
    payloads = [job.payload for job in await queue.list(kind="call.fetch")]
    assert sorted(one["file"] for one in payloads) == ["file 0", "file 1"]
    await Worker(queue, chain.handlers).run(until_idle=True)
    assert [status for _, status, _ in statuses()] == ["done"] * 3 + ["failed", "unknown"]


async def test_row_whose_workers_died_says_so(
    queue: Queue, chain: Chain, statuses, run_sql
) -> None:
    run_sql("insert into call values (1, 'a', 'fetching', null)")
    run_sql("insert into call values (2, 'b', 'pending', null)")
    await queue.enqueue_many([chain.begin({"id": 1, "file": "a"}, max_crashes=1)])
    await queue.enqueue_many([chain.begin({"id": 2, "file": "b"})])
    await lose_worker(queue, "fetching")
    [other] = await queue.list(unique="call:2")
    await queue.cancel(other.id, reason="not wanted")
    assert await sweep(queue, chain) == {"begun": 0, "failed": 2}
    [(_, first, why), (_, second, why_not)] = statuses()
    assert (first, second) == ("failed", "failed")
    assert "the lease ran out" in why
    assert "not wanted" in why_not
    assert await sweep(queue, chain) == {"begun": 0, "failed": 0}


async def test_rows_are_looked_at_page_by_page(
    queue: Queue, chain: Chain, statuses, run_sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "PAGE", 3)
    for id in range(7):
        run_sql(f"insert into call values ({id}, 'a', 'pending', null)")
    assert await sweep(queue, chain) == {"begun": 7, "failed": 0}


async def test_sweeps_come_by_themselves(queue: Queue, chain: Chain) -> None:
    await Sweeper(chain, queue).schedule(every=30)
    [schedule] = await queue.schedules()
    assert schedule.name == "call.sweep"


def test_chain_without_a_row_has_nothing_to_sweep(queue: Queue) -> None:
    with pytest.raises(ConfigError, match="no status row"):
        Sweeper(Chain("import"), queue)
    with pytest.raises(ConfigError, match="name of a table"):
        Sweeper(Chain("call", status=StatusRow("call")), queue, columns=["file; drop"])
