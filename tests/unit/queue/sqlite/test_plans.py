"""The plans of the hot statements: the right index, and nothing sorted."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

import pytest

from windrow.db.migrations import load_migrations
from windrow.db.typed import typed
from windrow.queue.job import JobState
from windrow.queue.records import JobFilter
from windrow.queue.sqlite.looking import _CONDITIONS, _conditions, _parts
from windrow.queue.sqlite.schema import split_script
from windrow.queue.sqlite.work import PACKAGE, statement


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    for migration in load_migrations(PACKAGE):
        for text in split_script(migration.sql):
            connection.execute(text)
    yield connection
    connection.close()


def plan(database: sqlite3.Connection, sql: str) -> str:
    values = dict.fromkeys(re.findall(r":([a-z_]+)", sql), "[]")
    steps = database.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
    return "\n".join(detail for *_, detail in steps)


def test_claim_walks_the_ready_index_in_its_order(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("claim_jobs"))

    assert "SEARCH j USING INDEX windrow_job_live_ready (queue=?)" in steps
    assert "TEMP B-TREE" not in steps


def test_stage_walks_the_scheduled_index_in_its_order(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("stage_jobs"))

    assert "windrow_job_live USING INDEX windrow_job_live_scheduled (run_at<?)" in steps
    assert "TEMP B-TREE" not in steps


def test_due_schedules_walk_their_index_in_its_order(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("find_due_schedules"))

    assert "windrow_schedule USING INDEX windrow_schedule_due (next_at<?)" in steps
    assert "TEMP B-TREE" not in steps


def test_ready_queues_are_found_by_stepping_through_the_index(
    database: sqlite3.Connection,
) -> None:
    steps = plan(database, statement("list_ready_queues"))

    assert "SEARCH j USING INDEX windrow_job_live_ready (queue>?)" in steps
    assert "SCAN j" not in steps


def test_first_jobs_of_queues_are_found_by_stepping_through_the_index(
    database: sqlite3.Connection,
) -> None:
    steps = plan(database, statement("list_heads"))

    assert "SEARCH j USING INDEX windrow_job_live_ready (queue>?)" in steps
    assert "SEARCH head USING INDEX windrow_job_live_ready (queue=?)" in steps
    assert not re.search(r"SCAN (j|head|windrow_job_live)\b", steps)


def test_oldest_ready_job_is_found_by_stepping_through_the_index(
    database: sqlite3.Connection,
) -> None:
    steps = plan(database, statement("find_oldest_ready"))

    assert "windrow_job_live_ready (queue=? AND priority<?)" in steps
    assert "windrow_job_live_ready (queue=? AND priority=?)" in steps


def test_one_source_is_counted_without_a_look_at_others(database: sqlite3.Connection) -> None:
    steps = plan(database, typed("count_sources", "sqlite").statement.text)

    assert "windrow_document_by_place (tenant=? AND collection=? AND source=?)" in steps
    assert "SCAN document" not in steps
    assert "SCAN content" not in steps
    assert "TEMP B-TREE" not in steps


def test_ready_kinds_are_read_from_the_front_of_the_index(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("list_ready_kinds"))

    assert "SEARCH j USING INDEX windrow_job_live_ready (queue=?)" in steps
    assert "SCAN j" not in steps


@pytest.mark.parametrize(
    ("conditions", "index"),
    [
        ("true", "sqlite_autoindex_windrow_job_group_1"),
        ("id < :after", "sqlite_autoindex_windrow_job_group_1 (id<?)"),
        ("state = 'active'", "windrow_job_group_active"),
        ("id < :after AND state = 'active'", "windrow_job_group_active (id<?)"),
        ("is_paused = 1", "windrow_job_group_paused"),
    ],
)
def test_groups_are_listed_by_an_index_in_its_order(
    database: sqlite3.Connection, conditions: str, index: str
) -> None:
    steps = plan(database, statement("list_groups").format(conditions=conditions))

    assert f"windrow_job_group USING INDEX {index}" in steps
    assert "TEMP B-TREE" not in steps


@pytest.mark.parametrize("name", ["find_holders", "find_followers", "find_dependents"])
def test_keys_are_looked_up_whole(database: sqlite3.Connection, name: str) -> None:
    assert "windrow_job_live_unique (unique_key=? AND <expr>=?" in plan(database, statement(name))


@pytest.mark.parametrize(
    "name",
    [
        *("find_live", "start_jobs", "end_jobs", "remove_jobs", "return_jobs", "find_applied"),
        "find_dependents",
    ],
)
def test_jobs_are_never_searched_for_by_reading_them_all(
    database: sqlite3.Connection, name: str
) -> None:
    assert not re.search(
        r"SCAN (j|g|root|live|follower|finished|windrow_job_live|windrow_job_finished)\b",
        plan(database, statement(name)),
    )


@pytest.mark.parametrize("name", ["find_group_keys", "delete_group_keys"])
def test_group_keys_are_looked_up_whole(database: sqlite3.Connection, name: str) -> None:
    assert "USING PRIMARY KEY (group_id=? AND key=?)" in plan(database, statement(name))


@pytest.mark.parametrize("name", ["get_steps", "delete_steps"])
def test_steps_are_found_by_their_job(database: sqlite3.Connection, name: str) -> None:
    steps = plan(database, statement(name))

    assert "USING INDEX sqlite_autoindex_windrow_job_step_1 (seq=?)" in steps
    assert not re.search(r"SCAN (s|windrow_job\w*)\b", steps)


@pytest.mark.parametrize(
    ("field", "index"),
    [
        ("group", "{table}_group (group_id=? AND id<?)"),
        ("tenant", "{table}_tenant (tenant=? AND id<?)"),
        ("unique", "{table}_unique (unique_key=?"),
        ("queue", "{table}_id (id<?)"),
    ],
)
@pytest.mark.parametrize("table", ["windrow_job_live", "windrow_job_finished"])
def test_lists_use_an_index(
    database: sqlite3.Connection, table: str, field: str, index: str
) -> None:
    conditions = f"{_CONDITIONS[field]} AND j.id < :after"
    steps = plan(database, statement("list_jobs").format(table=table, conditions=conditions))

    assert index.format(table=table) in steps


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (JobFilter(unique="a", tenant="t"), "_unique (unique_key=?"),
        (JobFilter(group="g", tenant="t"), "_group (group_id=?"),
        (JobFilter(tenant="t", states=(JobState.FAILED,)), "_tenant (tenant=?"),
        (JobFilter(tenant="t", states=(JobState.ACTIVE,)), "INTEGER PRIMARY KEY (rowid=?)"),
    ],
)
def test_lists_by_several_things_use_the_index_that_has_fewest(
    database: sqlite3.Connection, wanted: JobFilter, index: str
) -> None:
    """Those that pages are counted by, so that no page reads more."""
    for table, condition in _parts(wanted.states, has_line=True):
        conditions = " AND ".join((*_conditions(wanted), condition))
        steps = plan(database, statement("list_jobs").format(table=table, conditions=conditions))
        [jobs] = [step for step in steps.splitlines() if re.search(r" j ", step)]
        assert index in jobs


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("true", "_id"),
        (_CONDITIONS["tenant"], "_tenant (tenant=?)"),
        (_CONDITIONS["group"], "_group (group_id=?)"),
    ],
)
def test_jobs_are_counted_back_in_the_order_of_an_index(
    database: sqlite3.Connection, condition: str, index: str
) -> None:
    steps = plan(database, statement("find_earlier").format(conditions=condition))

    for table in ("windrow_job_live", "windrow_job_finished"):
        assert f"j USING COVERING INDEX {table}{index}" in steps
    assert "TEMP B-TREE" not in steps


def test_jobs_of_a_tenant_are_counted_from_the_newest_on(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("count_tenant"))

    assert "windrow_job_live_tenant (tenant=?)" in steps
    assert "windrow_job_finished_tenant (tenant=?)" in steps
    assert "FOR ORDER BY" not in steps


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_lists_of_bad_ends_use_their_index(database: sqlite3.Connection, state: JobState) -> None:
    [(table, condition)] = _parts((state,))
    conditions = f"{condition} AND j.id < :after"
    steps = plan(database, statement("list_jobs").format(table=table, conditions=conditions))

    assert "windrow_job_finished_state (state=? AND id<?)" in steps
    assert "TEMP B-TREE" not in steps


def test_fairness_keys_are_found_by_stepping_through_the_index(
    database: sqlite3.Connection,
) -> None:
    steps = plan(database, statement("list_held_keys"))

    assert "SEARCH j USING INDEX windrow_job_live_held (fair_key>?)" in steps
    assert "SCAN j" not in steps


def test_held_jobs_of_a_key_are_read_in_their_order(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("find_held"))

    assert "windrow_job_live USING INDEX windrow_job_live_held (fair_key=?)" in steps
    assert "TEMP B-TREE" not in steps


def test_what_is_in_use_is_counted_by_slot_and_seq(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("find_slots"))

    assert "SEARCH s USING PRIMARY KEY (key=?)" in steps
    assert "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)" in steps


def test_overdue_jobs_are_found_by_how_long_they_may_wait(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("find_overdue"))

    assert "SEARCH j USING INDEX windrow_job_live_hold (max_hold_seconds=? AND run_at<?)" in steps
    assert "SCAN j" not in steps


def test_parked_keys_are_listed_by_their_index(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("claim_jobs"))

    assert "windrow_job_limit USING INDEX windrow_job_limit_parked" in steps


def test_keys_nobody_uses_are_found_in_their_order_and_by_their_held_jobs(
    database: sqlite3.Connection,
) -> None:
    found = plan(database, statement("find_idle_limits"))
    pruned = plan(database, statement("prune_limits"))

    assert "windrow_job_limit USING PRIMARY KEY (key>?)" in found
    assert "TEMP B-TREE" not in found
    assert "windrow_job_limit USING PRIMARY KEY (key=?)" in pruned
    assert "USING INDEX windrow_job_live_held (fair_key=?)" in pruned


def test_events_are_read_in_their_order_by_number(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("read_events"))

    assert "SEARCH windrow_event USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in steps
    assert "TEMP B-TREE" not in steps


def test_looking_how_far_the_stream_goes_reads_no_events(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("find_horizon"))

    assert "SCAN windrow_event" not in steps
    assert "SEARCH windrow_event" in steps


def test_jobs_to_be_moved_are_read_in_the_order_of_their_rows(database: sqlite3.Connection) -> None:
    assert "TEMP B-TREE" not in plan(database, statement("find_movable"))


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("find_kin", "windrow_job_live_group (group_id=?)"),
        ("find_kin", "windrow_job_finished_ended (group_id=?)"),
        ("find_relatives", "windrow_job_live_group (group_id=?)"),
        ("find_relatives", "windrow_job_live_id (id=?)"),
        ("find_known", "windrow_job_finished_id (id=?)"),
        ("find_young", "sqlite_autoindex_windrow_job_group_1 (id=?)"),
        ("list_group_ids", "sqlite_autoindex_windrow_job_group_1 (id>?)"),
        ("read_parcel", "windrow_copy_outbox_parcel (parcel=?)"),
        ("keep_items", "windrow_copy_outbox_parcel (parcel=?)"),
        ("drop_parcel", "windrow_copy_outbox_parcel (parcel=?)"),
        ("find_receipt", "PRIMARY KEY (parcel=?)"),
        ("export_group_keys", "PRIMARY KEY (group_id=?)"),
    ],
)
def test_a_copy_finds_what_it_needs_by_index(
    database: sqlite3.Connection, name: str, index: str
) -> None:
    steps = plan(database, statement(name))

    assert index in steps
    assert not re.search(r"SCAN windrow_(job_live|job_finished|job_group|copy_outbox)$", steps)


def test_members_that_ended_are_read_in_that_order(database: sqlite3.Connection) -> None:
    steps = plan(database, statement("list_ended"))

    found = "windrow_job_finished_ended (group_id=? AND (finished_at,id)>(?,?))"
    assert f"SEARCH j USING INDEX {found}" in steps
    assert "TEMP B-TREE" not in steps


def test_pages_of_a_site_are_found_by_it(database: sqlite3.Connection) -> None:
    steps = plan(database, typed("list_page_urls", "sqlite").statement.text)

    assert "windrow_page USING COVERING INDEX windrow_page_by_site (site>? AND site<?)" in steps
