"""Row-level security costs those who work nothing: their plans are the same with it."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from tests.tenancy.conftest import Tenancy
from tests.unit.queue.postgres.test_plans import HOT, connect, fill
from windrow.queue.postgres.rows import sql
from windrow.services.postgres import disable_tenancy, enable_tenancy

JOBS = 3000
INSERT = {
    "rows": "[]",
    "followers": "[]",
    "are_drafted": "false",
    "now": None,
}


def explained(connection: Any, name: str, values: dict[str, Any]) -> str:
    statement = sql(name)
    with psycopg.RawCursor(connection) as cursor:
        explain = "EXPLAIN (VERBOSE, COSTS OFF) " + statement.numbered
        cursor.execute(explain.encode(), statement.bind(values))
        return "\n".join(line for (line,) in cursor.fetchall())


def steps(plan: str) -> list[list[str]]:
    """The steps of a plan, whatever the order in which the conditions of one are looked at: where
    there is a policy, even one that lets everything through, those that might tell what they see
    come last."""
    return [sorted(re.findall(r"[^\s()]+", line)) for line in plan.splitlines()]


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
async def test_hot_statements_of_a_worker_have_the_same_plans(tenancy: Tenancy, mode: str) -> None:
    await fill(tenancy.url, JOBS)
    hot = HOT | {"insert_jobs": INSERT}
    await disable_tenancy(tenancy.url)
    with connect(tenancy.url) as owner:
        owner.execute(f"SET plan_cache_mode = {mode}")
        before = {name: explained(owner, name, values) for name, values in hot.items()}
    await enable_tenancy(tenancy.url)
    with connect(tenancy.url) as owner, connect(tenancy.url_of("worker")) as worker:
        for connection in (owner, worker):
            connection.execute(f"SET plan_cache_mode = {mode}")
        for name, values in hot.items():
            assert explained(owner, name, values) == before[name], name
            assert steps(explained(worker, name, values)) == steps(before[name]), name


async def test_tenants_own_jobs_are_found_by_the_index_of_tenants(tenancy: Tenancy) -> None:
    await fill(tenancy.url, JOBS)
    statement = "EXPLAIN (COSTS OFF) SELECT id FROM windrow.job ORDER BY id DESC LIMIT 50"
    async with tenancy.connected("acme") as acme:
        lines = "\n".join(row[0] for row in await acme.fetch(statement))
    assert "job_live_tenant" in lines
    assert "Seq Scan on job_live" not in lines
