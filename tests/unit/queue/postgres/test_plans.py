"""The hot statements go by index and sort nothing, however many jobs there are.

Plans are made as the store makes them: generic, on connections with its planner settings, and once
more as behind a pooler, for the values at hand.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from msgspec.structs import asdict

from tests.builders import UNKNOWN_ID, claim, completion, failure, make_group, row
from tests.postgres_server import create_database, drop_database
from windrow.clock import Clock
from windrow.db.postgres.connections import PLANNER_SETTINGS
from windrow.db.statements import Statement
from windrow.ids import new_id
from windrow.queue.checks import hash_group_key
from windrow.queue.job import JobState
from windrow.queue.postgres.gating import statement_of
from windrow.queue.postgres.listings import earlier_statement, list_statement
from windrow.queue.postgres.rows import sql
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.records import JobFilter

JOBS = 50_000
BATCH = 100

_LOOK = {
    "queues": ["default"],
    "floor_priorities": [5],
    "floor_seqs": [1000],
    "kinds": None,
    "tenants": None,
    "now": None,
}
_CLAIM = _LOOK | {"shares": [BATCH], "seconds": 30, "kind_seconds": None, "worker": "w"}
_CLAIM |= {"token": new_id()}
_IDS = [new_id() for _ in range(BATCH)]
_TOKENS = [new_id()] * BATCH
_RUNS = {
    "ids": f"{{{','.join(_IDS)}}}",
    "tokens": f"{{{new_id()},{new_id()}}}",
    "holders": [1, 2] * (BATCH // 2),
    "results": ["{}"] * BATCH,
    "are_cleaned": [False] * BATCH,
    "now": None,
}
HOT: dict[str, dict[str, Any]] = {
    "claim_jobs": _CLAIM,
    "complete_jobs": _RUNS,
    "complete_and_claim": _CLAIM | _RUNS | {"ends": BATCH},
    "share_queues": _LOOK
    | {"queues": ["default", "other"], "limit": BATCH}
    | {"floor_priorities": [5, 5], "floor_seqs": [1000, 1000]},
    "share_heads": _LOOK
    | {"queues": ["default", "other"], "limit": BATCH}
    | {"floor_priorities": [5, 5], "floor_seqs": [1000, 1000]}
    | {"other_priority": 5, "other_seq": 2000},
    "list_ready_queues": {},
    "stage_jobs": {"limit": 1000, "now": None},
    "promote_followers": {"keys": None, "limit": 1000, "now": None},
    "rescue_jobs": {"limit": 1000, "now": None, "returns_only": False},
    "extend_leases": {"tokens": [new_id()], "seconds": None, "now": None},
    "list_held_keys": {"after": "", "limit": 200},
    "list_carried_keys": {"keys": ["a", "b"], "look": 200, "now": None},
    "find_held": {"keys": ["a", "b"], "wants": [25, 25]},
    "find_held_by_lane": {"keys": ["a", "b"], "wants": [25, 25], "now": None},
    "count_slots": {"keys": ["a", "b"], "times": [None, None], "patience": 3.0, "now": None},
    "promote_jobs": {"jobs": json.dumps([{"id": new_id(), "keys": ["a"]}]), "now": None},
    "return_places": {"ids": [new_id()]},
    "find_idle_limits": {"after": "", "limit": 1000, "now": None},
    "prune_limits": {"keys": ["a", "b"]},
    "find_overdue": {"limit": 1000, "now": None},
    "list_ready_kinds": {"limit": 100},
    "save_step": {"id": new_id(), "token": new_id(), "name": "a", "result": "1", "now": None},
    "get_steps": {"ids": [new_id()]},
    "delete_steps": {"ids": _IDS},
    "find_dependents": {"ids": json.dumps([new_id()])},
    "take_group_keys": {
        "rows": json.dumps([{"place": 0, "id": new_id(), "group": new_id(), "group_key": "aa"}])
    },
    "keep_group_keys": {"group_id": new_id(), "job_id": new_id(), "keys": ["aa" * 16]},
    "delete_group_keys": {"group_id": new_id(), "limit": 10_000},
    "find_applied": {"ids": _IDS, "tokens": _TOKENS},
}
_ENDS = (JobState.COMPLETED, JobState.FAILED)
_ID = new_id()
# What is listed, and what the index is looked up by.
LISTS: dict[str, tuple[JobFilter, str]] = {
    "group": (JobFilter(group=_ID), "group_id"),
    "pages of a crawl": (JobFilter(group=_ID, kind="web.scrape", states=_ENDS), "group_id"),
    "tenant": (JobFilter(tenant="acme"), "tenant"),
    "own failed": (JobFilter(tenant="acme", states=(JobState.FAILED,), since=_ID), "tenant"),
    "unique": (JobFilter(unique="key"), "unique_key"),
    "own unique": (JobFilter(unique="key", tenant="acme"), "unique_key"),
    "failed": (JobFilter(states=(JobState.FAILED,)), "state"),
    "held": (JobFilter(states=(JobState.HELD,)), "state"),
    "active": (JobFilter(states=(JobState.ACTIVE,)), "id = ANY"),
    "own active": (JobFilter(tenant="a", unique="b", states=(JobState.ACTIVE,)), "id = ANY"),
    "kind": (JobFilter(kind="work", since=_ID), "id >="),
    "ready kind": (JobFilter(kind="work", states=(JobState.READY,), since=_ID), "id >="),
    "tag": (JobFilter(tag="a", since=_ID), "id >="),
    "text": (JobFilter(text="a", since=_ID), "id >="),
    "everything": (JobFilter(), "id <"),
}


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> Iterator[Any]:
    url = create_database(postgres_url)
    try:
        asyncio.run(fill(url, JOBS))
        with connect(url) as opened:
            yield opened
    finally:
        drop_database(postgres_url, url)


def connect(url: str) -> psycopg.Connection[Any]:
    options = " ".join(f"-c {name}={value}" for name, value in PLANNER_SETTINGS.items())
    return psycopg.connect(url, autocommit=True, options=options)


async def fill(url: str, jobs: int) -> None:
    store = await PostgresStore.open(url, clock=Clock())
    try:
        await store.migrate()
        await store.insert_jobs([row(delay=3600 if n % 3 == 0 else 0) for n in range(jobs)])
        limited = [row(limits=(f"key-{n % 50}",), max_hold_seconds=60) for n in range(jobs // 5)]
        await store.insert_jobs(limited)
        await store.promote_jobs()
        group = await make_group(store)
        keys = [hash_group_key(str(n)) for n in range(jobs // 10)]
        await store.keep_group_keys(group.id, keys, new_id())
        claimed = await claim(store, jobs // 10)
        for job in claimed[: jobs // 50]:
            await store.save_step(job.id, job.lease_token or "", "step", "1")
        ends = [failure(job) if n % 20 == 0 else completion(job) for n, job in enumerate(claimed)]
        await store.finish_jobs(ends)
        async with store._database.connection() as opened:
            await opened.execute("ANALYZE")
    finally:
        await store.close()


def plan(connection: Any, name: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Every node of the plan, from the top down."""
    statement = statement_of(name)
    with psycopg.RawCursor(connection) as cursor:
        explain = "EXPLAIN (FORMAT JSON) " + statement.numbered
        cursor.execute(explain.encode(), statement.bind(values))
        found = cursor.fetchone()
    assert found is not None
    [top] = json.loads(found[0]) if isinstance(found[0], str) else found[0]
    return list(nodes(top["Plan"]))


def generic_plan(
    connection: Any, statement: Statement, values: dict[str, Any]
) -> list[dict[str, Any]]:
    """Every node of the plan that is kept for all values, on whatever connection."""
    types = {"limit": "integer", "count": "integer", "most": "integer", "states": "text[]"}
    types |= dict.fromkeys(("after", "since", "group"), "uuid")
    given = ", ".join(types.get(name, "text") for name in statement.parameters)
    bound = [list(one) if isinstance(one, tuple) else one for one in statement.bind(values)]
    with psycopg.ClientCursor(connection) as cursor:
        cursor.execute("DEALLOCATE ALL")
        declared = f"({given})" if given else ""
        cursor.execute(f"PREPARE planned{declared} AS {statement.numbered}".encode())
        marks = ", ".join(["%s"] * len(bound))
        call = f"EXPLAIN (FORMAT JSON) EXECUTE planned{f'({marks})' if bound else ''}"
        cursor.execute(call.encode(), bound)
        found = cursor.fetchone()
    assert found is not None
    [top] = json.loads(found[0]) if isinstance(found[0], str) else found[0]
    return list(nodes(top["Plan"]))


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from nodes(child)


def whole_scans(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Jobs, payloads and steps that are read from end to end."""
    large = ("job_live", "job_finished", "job_payload", "job_step", "group_key")
    return [
        (node["Node Type"], node["Relation Name"])
        for node in found
        if node["Node Type"] == "Seq Scan" and node["Relation Name"].startswith(large)
    ]


def sorted_jobs(found: list[dict[str, Any]]) -> list[str]:
    """Sorts directly above a scan of jobs: the index has the order already."""
    return [
        child["Relation Name"]
        for node in found
        if node["Node Type"] in ("Sort", "Incremental Sort")
        for child in nodes(node)
        if child.get("Relation Name") == "job_live"
    ]


@pytest.mark.parametrize("name", HOT)
@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
def test_hot_statement_reads_jobs_by_index(connection: Any, name: str, mode: str) -> None:
    connection.execute(f"SET plan_cache_mode = {mode}")
    found = plan(connection, name, HOT[name])

    assert whole_scans(found) == []
    if name not in (
        *("share_queues", "share_heads", "promote_followers", "list_ready_kinds"),
        "find_held_by_lane",
    ):
        assert sorted_jobs(found) == []


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("job_id", [None, UNKNOWN_ID])
def test_events_are_read_in_their_order_by_index(
    connection: Any, mode: str, job_id: str | None
) -> None:
    connection.execute(f"SET plan_cache_mode = {mode}")
    values = {"after": 100, "until": 5100, "limit": 200, "job_id": job_id, "names_jobs": True}
    found = plan(connection, "read_events", values | dict.fromkeys(("types", "queue", "group_id")))
    scans = [node for node in found if "Relation Name" in node]

    assert scans
    assert {node["Node Type"] for node in scans} == {"Index Scan"}
    assert all("seq" in node["Index Cond"] for node in scans)
    assert not {"Sort", "Incremental Sort"} & {node["Node Type"] for node in found}


def test_the_last_event_of_each_leaf_is_found_by_index(connection: Any) -> None:
    found = plan(connection, "list_event_leaves", {"seconds": 86_400, "now": None})
    scans = [node for node in found if node.get("Relation Name", "").startswith("event_")]

    assert scans
    assert {node["Node Type"] for node in scans} == {"Index Scan"}


@pytest.mark.parametrize("name", ["claim_jobs", "complete_and_claim"])
def test_claim_goes_by_the_claim_index(connection: Any, name: str) -> None:
    scans = [node for node in plan(connection, name, HOT[name]) if "Index Name" in node]

    assert [s["Index Name"] for s in scans].count("job_live_claim") == 3


def test_due_jobs_are_found_by_their_time(connection: Any) -> None:
    found = plan(connection, "stage_jobs", HOT["stage_jobs"])

    assert "job_live_due" in {node.get("Index Name") for node in found}


def test_due_schedules_are_found_by_their_time(connection: Any) -> None:
    found = plan(connection, "find_due_schedules", {"limit": 100, "now": None})

    assert "schedule_due" in {node.get("Index Name") for node in found}
    assert not {"Sort", "Seq Scan"} & {node["Node Type"] for node in found}


@pytest.mark.parametrize("name", ["list_carried_keys", "find_held_by_lane"])
def test_held_jobs_are_found_by_their_lane(connection: Any, name: str) -> None:
    """All but the first probe of each key begin behind a lane, and end after one job."""
    found = plan(connection, name, HOT[name])
    probes = [node for node in found if node.get("Index Name") == "job_live_held_lane"]
    sorts = [node for node in found if "Sort" in node["Node Type"] and sorted_jobs([node])]

    assert len(sorts) == (name == "find_held_by_lane"), "all lanes are put in order, none is sorted"
    assert len(probes) >= 3
    assert any("ROW" in node.get("Index Cond", "") for node in probes)
    assert {node["Index Name"] for node in found if node.get("Relation Name") == "job_live"} <= {
        "job_live_held",
        "job_live_held_lane",
    }


@pytest.mark.parametrize("name", ["list_held_keys", "find_held"])
def test_held_jobs_are_found_by_their_fairness_key(connection: Any, name: str) -> None:
    found = plan(connection, name, HOT[name])
    used = {node["Index Name"] for node in found if node.get("Relation Name") == "job_live"}

    assert used == {"job_live_held"}


def test_what_is_in_use_is_counted_by_slot_and_id(connection: Any) -> None:
    found = plan(connection, "count_slots", HOT["count_slots"])
    small = ("queue", "job_group", "job_limit", "unserved")
    used = {
        node["Index Name"]
        for node in found
        if "Index Name" in node and node.get("Relation Name") not in small
    }

    assert {"job_slot_pkey", "job_live_pkey"} <= used
    assert all("finished" in name for name in used - {"job_slot_pkey", "job_live_pkey"})


def test_overdue_jobs_are_found_by_how_long_they_may_wait(connection: Any) -> None:
    found = plan(connection, "find_overdue", HOT["find_overdue"])
    used = {node["Index Name"] for node in found if node.get("Relation Name") == "job_live"}

    assert used == {"job_live_hold"}


@pytest.mark.parametrize("name", ["claim_jobs", "complete_and_claim"])
def test_parked_keys_are_listed_once_by_their_index(connection: Any, name: str) -> None:
    found = plan(connection, name, HOT[name])
    parked = [node for node in found if node.get("Relation Name") == "job_limit"]

    # Once for all looks, and not for each job.
    assert [node["Index Name"] for node in parked] == ["job_limit_parked"]


@pytest.mark.parametrize("wanted", LISTS)
def test_lists_go_by_the_index_of_their_filter(connection: Any, wanted: str) -> None:
    """By a plan that is kept for all values, on every leaf."""
    asked, by = LISTS[wanted]
    statement = list_statement(asked, is_after=True)
    values = asdict(asked) | {"after": UNKNOWN_ID, "limit": 50}
    with connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        found = generic_plan(connection, statement, values)

    assert_listed_by(found, by)


@pytest.mark.parametrize("wanted", LISTS)
def test_lists_planned_while_there_are_no_jobs_go_by_the_same_index(
    empty: psycopg.Connection[Any], wanted: str
) -> None:
    asked, by = LISTS[wanted]
    values = asdict(asked) | {"after": UNKNOWN_ID, "limit": 50}
    assert_listed_by(generic_plan(empty, list_statement(asked, is_after=True), values), by)


def assert_listed_by(found: list[dict[str, Any]], by: str) -> None:
    scans = [node for node in found if node.get("Relation Name", "").startswith("job_")]
    jobs = [
        node for node in scans if node["Relation Name"].startswith(("job_live", "job_finished"))
    ]
    assert jobs
    assert {node["Node Type"] for node in scans} <= {"Index Scan", "Index Only Scan"}
    for node in jobs:
        assert by in node["Index Cond"], node
    for node in scans:  # what belongs to a job is looked up by its id
        assert "Index Cond" in node, node


@pytest.mark.parametrize(
    ("wanted", "by"),
    [
        (JobFilter(), "id <"),
        (JobFilter(kind="work"), "id <"),
        (JobFilter(tenant="acme", kind="work"), "tenant"),
        (JobFilter(group=_ID, tenant="acme"), "group_id"),
        (JobFilter(states=(JobState.CANCELLED,)), "state"),
        (JobFilter(states=(JobState.READY,)), "id <"),
    ],
)
def test_jobs_are_counted_back_in_the_order_of_an_index(
    connection: Any, wanted: JobFilter, by: str
) -> None:
    statement = earlier_statement(wanted, is_after=True)
    values = asdict(wanted) | {"after": UNKNOWN_ID, "count": 1000}
    found = generic_plan(connection, statement, values)
    jobs = [node for node in found if node.get("Relation Name", "").startswith("job_")]

    assert jobs
    for node in jobs:
        assert by in node["Index Cond"], node
    assert not {"Sort", "Incremental Sort"} & {node["Node Type"] for node in found}


def test_jobs_of_a_tenant_are_counted_from_the_newest_on(connection: Any) -> None:
    found = generic_plan(connection, sql("count_tenant"), {"tenant": "acme", "most": 1000})
    jobs = [node for node in found if node.get("Relation Name", "").startswith("job_")]

    assert all("tenant" in node["Index Cond"] for node in jobs)
    [limit] = [node for node in found if node["Node Type"] == "Limit"]
    below = {node["Node Type"] for node in nodes(limit)}
    assert not {"Sort", "Incremental Sort"} & below, "they are in this order already"


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ({}, "job_group_pkey"),
        ({"after": UNKNOWN_ID}, "job_group_pkey"),
        ({"state": "active"}, "job_group_active"),
        ({"is_paused": True}, "job_group_paused"),
    ],
)
def test_groups_are_listed_by_an_index_in_its_order(
    connection: Any, wanted: dict[str, Any], index: str
) -> None:
    given = dict.fromkeys(sql("list_groups").parameters) | {"limit": 50} | wanted
    with connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        found = plan(connection, "list_groups", given)

    assert {node.get("Index Name") for node in found} - {None} == {index}
    assert not {"Sort", "Seq Scan"} & {node["Node Type"] for node in found}


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
def test_one_source_is_counted_without_a_look_at_others(connection: Any, mode: str) -> None:
    place = {"tenant": ["", ""], "collection": ["docs"] * 2, "source": ["s1", "s2"]}
    with connection.transaction(force_rollback=True):
        connection.execute(f"SET LOCAL plan_cache_mode = {mode}")
        values = place | {"most": 1000, "with_chunks": True}
        found = plan(connection, "count_sources", values)
        values = place | {"most": 1000, "with_chunks": False}
        without = plan(connection, "count_sources", values) if "custom" in mode else []

    used = {node.get("Index Name") for node in found} - {None}
    assert used == {"document_by_place", "content_pkey"}
    assert not {"Sort", "Seq Scan"} & {node["Node Type"] for node in found}
    assert "content_pkey" not in {node.get("Index Name") for node in without}


def test_limits_are_listed_without_a_look_at_held_jobs(connection: Any) -> None:
    values = {"counts_held": False, "now": None}
    with connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        found = plan(connection, "list_limits", values)

    used = {node.get("Index Name") for node in found if node.get("Relation Name") == "job_live"}
    assert used == {"job_live_pkey"}


@pytest.mark.parametrize("name", HOT)
def test_plan_made_while_there_are_no_jobs_goes_by_index_too(
    empty: psycopg.Connection[Any], name: str
) -> None:
    """A worker connects before there are jobs, and its plans are kept."""
    assert whole_scans(plan(empty, name, HOT[name])) == []


@pytest.fixture(scope="module")
def empty(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    url = create_database(postgres_url)
    try:
        asyncio.run(fill(url, 0))
        with connect(url) as opened:
            yield opened
    finally:
        drop_database(postgres_url, url)


MOVES: dict[str, tuple[dict[str, Any], str]] = {
    "find_movable": ({"limit": 500}, "job_live_pkey"),
    "find_kin": ({"ids": [new_id()], "seconds": 10.0, "now": None}, "job_live_group"),
    "find_relatives": ({"ids": [new_id()]}, "job_live_group"),
    "find_young": ({"ids": [new_id()], "seconds": 10.0, "now": None}, "job_group_active"),
    "list_group_ids": ({"after": None, "limit": 50}, "job_group_pkey"),
    "read_parcel": ({"parcel": new_id()}, "copy_outbox_parcel"),
    "lock_parcel": ({"parcel": new_id()}, "copy_outbox_parcel"),
    "keep_items": ({"parcel": new_id(), "next": new_id(), "items": ["a"]}, "copy_outbox_parcel"),
    "drop_parcel": ({"parcel": new_id()}, "copy_outbox_parcel"),
    "find_receipt": ({"parcel": new_id()}, "copy_inbox_pkey"),
    "export_group_keys": ({"ids": [new_id()]}, "group_key_pkey"),
    "remove_groups": ({"ids": [new_id()]}, "group_key_pkey"),
    "remove_moved": ({"ids": [new_id()]}, "job_live_pkey"),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_copy_finds_what_it_needs_by_index(connection: Any, name: str) -> None:
    values, index = MOVES[name]
    connection.execute("SET plan_cache_mode = force_generic_plan")
    found = plan(connection, name, values)

    assert index in {node.get("Index Name") for node in found}
    assert whole_scans(found) == []
    assert sorted_jobs(found) == []


_MEMBERS = """
    INSERT INTO windrow.job_finished (
        id, queue, kind, state, priority, run_at, created_at, finished_at, expires_at, leaf,
        max_attempts, max_crashes, group_id)
    SELECT gen_random_uuid(), 'default', 'work', 'completed', 0, now(), now(),
           now() - n * interval '1 s', 'infinity', 0, 1, 1, md5((n % 5)::text)::uuid
      FROM generate_series(1, 10000) AS n
"""


@pytest.mark.parametrize("after", [None, UNKNOWN_ID])
def test_members_that_ended_are_read_in_that_order(connection: Any, after: str | None) -> None:
    values: dict[str, Any] = {
        "group_id": "cfcd2084-95d5-65ef-66e7-dff9f98764da",
        "kind": "work",
    }
    values |= {"state": "completed", "after": after, "skip": 0, "limit": 100}
    with connection.transaction(force_rollback=True):
        connection.execute(_MEMBERS)
        connection.execute("ANALYZE windrow.job_finished")
        connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        found = plan(connection, "list_ended", values)

    [scan] = [
        node
        for node in found
        if node.get("Relation Name") == "job_finished_kept"
        and node.get("Alias", "").startswith("job")
    ]
    assert "finished_at" in scan["Index Name"]
    assert ("finished_at" in scan["Index Cond"]) == (after is not None)
    assert not any("Sort" in node["Node Type"] for node in found)
