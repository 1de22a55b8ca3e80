"""Ways out of a tenant's rows that somebody with SQL would try, each as a real role."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import asyncpg
import pytest

from tests.conformance.test_documents import document
from tests.tenancy.conftest import Tenancy
from windrow import NewJob, Queue
from windrow.catalog import Catalog
from windrow.catalog.sources import SourceRow
from windrow.ids import new_id
from windrow.queue.job import JobState
from windrow.queue.postgres.gating import function_name, list_gated, statement_of
from windrow.queue.postgres.rows import sql
from windrow.services.postgres import disable_tenancy, enable_tenancy, tenancy_status

DENIED = asyncpg.InsufficientPrivilegeError
TABLES_OF_A_TENANT = (
    *("job", "job_live", "job_finished", "job_payload", "job_error", "job_progress", "job_step"),
    *("job_group", "group_note", "event", "blob"),
    *("collection", "source", "document", "content"),
)


def gate(name: str) -> str:
    statement = statement_of(name)
    places = ", ".join(f"${i}" for i in range(1, len(statement.parameters) + 1))
    return f"SELECT * FROM windrow_gate.{function_name(statement)}({places})"


def new_row(**fields: object) -> str:
    row: dict[str, object] = {
        "id": new_id(),
        "queue": "default",
        "kind": "work",
        "payload": None,
        "priority": 5,
        "max_attempts": 5,
        "max_crashes": 5,
        "is_cleaned": False,
        "limits": [],
        "tags": [],
    }
    return json.dumps([row | fields])


@pytest.fixture
async def theirs(tenancy: Tenancy, globex: Queue, worker: Queue) -> list[str]:
    """A job of globex in every table: finished with a large result, failed, running and waiting."""
    done = await globex.enqueue("work", {"secret": 1})
    lease = await worker.claim()
    await lease.complete(lease.jobs[0], {"text": "z" * 2_000_000})
    failed = await globex.enqueue("work", {"secret": 2}, max_attempts=1)
    lease = await worker.claim()
    await lease.progress(lease.jobs[0], 50, "half of it")
    await lease.fail(lease.jobs[0], "their error")
    await worker.set_limit("key", active=5)
    group = await globex.create_group()
    async with tenancy.connected() as owner:
        note = (
            "INSERT INTO windrow.group_note (group_id, subject, text) VALUES ($1, 'of', 'theirs')"
        )
        await owner.execute(note, group.id)
    row, content = document(tenant="globex")
    catalog = Catalog(globex.database)
    await catalog.collections.ensure("globex", "docs", "model", 4)
    await catalog.sources.put([SourceRow("globex", "s1", "docs", "note", "n")])
    await catalog.documents.put([row], [content])
    running = await globex.enqueue("work", {"secret": 3}, group=group.id)
    await worker.claim()
    waiting = await globex.enqueue("work", {"secret": 4}, unique="key", limits=["key"])
    await worker.tend()
    return [done.id, failed.id, running.id, waiting.id]


async def test_no_table_shows_a_row_of_another_tenant(tenancy: Tenancy, theirs: list[str]) -> None:
    async with tenancy.connected("acme") as acme, tenancy.connected() as owner:
        for table in TABLES_OF_A_TENANT:
            assert await acme.fetch(f"SELECT * FROM windrow.{table}") == [], table
            if table not in ("job_step",):
                assert await owner.fetchval(f"SELECT count(*) FROM windrow.{table}"), table


async def test_every_other_table_and_every_leaf_is_refused(tenancy: Tenancy) -> None:
    async with tenancy.connected() as owner:
        rows = await owner.fetch(
            "SELECT relname, relrowsecurity FROM pg_class "
            "WHERE relnamespace = 'windrow'::regnamespace AND relkind IN ('r', 'p')"
        )
    assert all(row["relrowsecurity"] for row in rows)
    refused = {row["relname"] for row in rows} - {*TABLES_OF_A_TENANT, "migration", "event_floor"}
    assert {"job_finished_01", "job_finished_kept", "event_01", "tally", "schedule"} <= refused
    async with tenancy.connected("acme") as acme:
        for table in refused:
            with pytest.raises(DENIED):
                await acme.fetch(f"SELECT * FROM windrow.{table}")
        for table in (row["relname"] for row in rows):
            for statement in (
                f"INSERT INTO windrow.{table} DEFAULT VALUES",
                f"DELETE FROM windrow.{table}",
                f"TRUNCATE windrow.{table}",
                f"SELECT FROM windrow.{table} FOR UPDATE",
            ):
                with pytest.raises(DENIED):
                    await acme.execute(statement)


async def test_new_leaf_shows_nothing_before_it_is_secured_and_after(
    tenancy: Tenancy, theirs: list[str]
) -> None:
    async with tenancy.connected() as owner, tenancy.connected("acme") as acme:
        await owner.execute(
            "CREATE TABLE windrow.job_finished_99 PARTITION OF windrow.job_finished "
            "FOR VALUES IN (99)"
        )
        await owner.execute("UPDATE windrow.job_finished SET leaf = 99")
        assert await acme.fetch("SELECT * FROM windrow.job") == []
        with pytest.raises(DENIED):
            await acme.fetch("SELECT * FROM windrow.job_finished_99")
        status = await tenancy_status(tenancy.url)
        assert status.problems == ("table windrow.job_finished_99 has no row-level security",)
        assert (await enable_tenancy(tenancy.url)).problems == ()
        with pytest.raises(DENIED):
            await acme.fetch("SELECT * FROM windrow.job_finished_99")


async def test_leaf_that_somebody_granted_is_still_filtered_and_reported(
    tenancy: Tenancy, theirs: list[str]
) -> None:
    async with tenancy.connected() as owner, tenancy.connected("acme") as acme:
        leaves = [
            row["name"]
            for row in await owner.fetch(
                "SELECT relid::regclass::text AS name FROM pg_partition_tree('windrow.job') "
                "WHERE isleaf"
            )
        ]
        for leaf in leaves:
            await owner.execute(f"GRANT SELECT ON {leaf} TO windrow_tenant")
            assert await acme.fetch(f"SELECT * FROM {leaf}") == []
    problems = (await tenancy_status(tenancy.url)).problems
    assert "leaf windrow.job_finished_01 is granted to somebody" in problems


@pytest.mark.parametrize(
    "setting",
    [
        "SET windrow.tenant = 'globex'",
        "SELECT set_config('windrow.tenant', 'globex', false)",
        "SET row_security = off",
        "SET search_path = pg_temp, windrow, pg_catalog",
        "SET session_replication_role = replica",
    ],
)
async def test_no_setting_makes_one_tenant_another(
    tenancy: Tenancy, theirs: list[str], setting: str
) -> None:
    async with tenancy.connected("acme") as acme:
        try:
            await acme.execute(setting)
            found = await acme.fetch("SELECT id FROM windrow.job")
        except DENIED:
            return
        assert found == []
        assert await acme.fetch(gate("lock_jobs"), theirs) == []


@pytest.mark.parametrize("group", ["windrow_worker", "windrow_api", "windrow_gate", "postgres"])
async def test_tenant_cannot_become_a_role_that_sees_more(
    tenancy: Tenancy, theirs: list[str], group: str
) -> None:
    async with tenancy.connected("acme") as acme:
        for statement in (
            f"SET ROLE {group}",
            f"SELECT set_config('role', '{group}', true)",
            f"SET SESSION AUTHORIZATION {group}",
            f"GRANT {group} TO {tenancy.role('acme')}",
        ):
            with pytest.raises(asyncpg.PostgresError):
                await acme.execute(statement)
        assert await acme.fetch("SELECT id FROM windrow.job") == []


async def test_tenant_that_becomes_its_group_role_belongs_to_nobody(
    tenancy: Tenancy, theirs: list[str]
) -> None:
    async with tenancy.connected("acme") as acme:
        await acme.execute("SET ROLE windrow_tenant")
        await acme.execute("SET windrow.tenant = 'globex'")
        assert await acme.fetch("SELECT id FROM windrow.job") == []


async def test_enqueuer_cannot_call_what_tenants_can(tenancy: Tenancy, theirs: list[str]) -> None:
    async with tenancy.connected("enqueuer") as enqueuer:
        for name in [name for name, caller in list_gated().items() if caller == "tenant"]:
            values = [None] * len(statement_of(name).parameters)
            with pytest.raises(DENIED):
                await enqueuer.fetch(gate(name), *values)
        for table in TABLES_OF_A_TENANT:
            with pytest.raises(DENIED):
                await enqueuer.fetch(f"SELECT * FROM windrow.{table}")


async def test_functions_of_the_gate_find_nothing_of_another_tenant(
    tenancy: Tenancy, theirs: list[str], owner: Queue
) -> None:
    before = await _everything(tenancy)
    async with tenancy.connected("acme") as acme:
        for name in ("lock_jobs", "lock_finished", "pause_jobs", "resume_jobs", "retry_jobs"):
            values = [theirs if p == "ids" else None for p in sql(name).parameters]
            assert await acme.fetch(gate(name), *values) == [], name
        for name in ("delete_jobs", "delete_steps", "hasten_jobs", "find_blockers"):
            values = [theirs if p == "ids" else None for p in sql(name).parameters]
            await acme.fetch(gate(name), *values)
        ids = json.dumps(theirs)
        assert await acme.fetch(gate("find_known"), ids) == []
        given = {
            "ids": theirs,
            "stop_as": "cancelled",
            "reason": "x",
            "id": theirs[3],
            "changes": "{}",
            "now": None,
        }
        for name in ("tell_jobs", "edit_job"):
            await acme.fetch(gate(name), *sql(name).bind(given))
    assert await _everything(tenancy) == before


async def test_error_cannot_be_written_to_the_history_of_another(
    tenancy: Tenancy, theirs: list[str]
) -> None:
    values = {
        "ids": theirs[:1],
        "times": [None],
        "reasons": ["forged"],
        "types": [None],
        "messages": ["forged"],
        "tracebacks": [None],
        "now": None,
    }
    async with tenancy.connected("acme") as acme:
        with pytest.raises(DENIED):
            await acme.fetch(gate("add_errors"), *sql("add_errors").bind(values))


async def test_row_may_name_neither_tenant_nor_group_of_another(
    tenancy: Tenancy, theirs: list[str], owner: Queue
) -> None:
    [group] = await owner.groups()
    async with tenancy.connected("acme") as acme:
        for row in (
            new_row(tenant="globex"),
            new_row(tenant=None),
            new_row(tenant="acme", group=group.id),
        ):
            given = {
                "rows": row,
                "followers": "[]",
                "are_drafted": "false",
                "now": None,
            }
            with pytest.raises(DENIED):
                await acme.fetch(gate("insert_jobs"), *sql("insert_jobs").bind(given))


async def test_many_rows_may_name_no_tenant_but_ones_own(
    tenancy: Tenancy, theirs: list[str], globex: Queue
) -> None:
    """N9: neither for all of them nor for one, and their counts and events are of these rows."""
    before = await _everything(tenancy), await _written_about(tenancy)
    shared = dict.fromkeys(sql("insert_many").parameters) | json.loads(new_row(tenant="acme"))[0]
    many = shared | {"ids": [new_id(), new_id()], "payloads": ["1", "2"], "delay": 0.0}
    async with tenancy.connected("acme") as acme:
        wrong: dict[str, Any]
        for wrong in (
            {"tenant": "globex"},
            {"tenant": None},
            {"tenant": None, "tenants": ["acme", "globex"]},
            {"payloads": ["1", "2", "3"]},
            {"ids": [new_id()]},
            {"ids": [], "payloads": []},
            {"ids": [theirs[0], theirs[1]]},
        ):
            given = sql("insert_many").bind(many | wrong)
            with contextlib.suppress(DENIED, asyncpg.IntegrityConstraintViolationError):
                assert (await acme.fetch(gate("insert_many"), *given))[0]["seqs"] == []
    assert (await _everything(tenancy), await _written_about(tenancy)) == before


async def test_id_of_another_tenants_job_can_be_neither_taken_nor_read(
    tenancy: Tenancy, theirs: list[str]
) -> None:
    """Its payload lies beside it under the same id: whoever had a job of that id would read it."""
    async with tenancy.connected("acme") as acme:
        for job_id in theirs:
            given = {
                "rows": new_row(tenant="acme", id=job_id),
                "followers": "[]",
                "are_drafted": "false",
                "now": None,
            }
            try:
                found = await acme.fetch(gate("insert_jobs"), *sql("insert_jobs").bind(given))
            except (DENIED, asyncpg.UniqueViolationError) as error:
                found = [word for word in ("secret", "globex") if word in f"{error} {error.detail}"]
            assert found == []
        assert await acme.fetch("SELECT * FROM windrow.job_payload") == []


async def test_finish_job_of_a_group_cannot_be_another_tenants(
    tenancy: Tenancy, acme: Queue, owner: Queue
) -> None:
    """It is inserted by a worker, who may do anything: so it is looked at when it is handed in."""
    forged = json.loads(new_row(tenant="globex"))[0]
    twice = json.dumps(forged | {"tenant": "acme"})[:-1] + ', "ten\\u0061nt": "globex"}'
    hidden = '{"tenant": "globex", "ten\\u0061nt": "acme", ' + json.dumps(forged)[1:]
    values = {
        "id": new_id(),
        "tenant": "acme",
        "root": None,
        "is_open": True,
        "retention_seconds": None,
        "max_jobs": None,
        "now": None,
    }
    async with tenancy.connected("acme") as connection:
        for text in (json.dumps(forged), twice, hidden):
            with pytest.raises(DENIED):
                await connection.fetch(
                    gate("create_group"), *sql("create_group").bind(values | {"finish_job": text})
                )
    assert (await acme.create_group(then=NewJob("end"))).tenant == "acme"


async def test_own_job_cannot_be_made_the_root_of_anothers_group(
    tenancy: Tenancy, theirs: list[str], acme: Queue, owner: Queue
) -> None:
    """A root that fails takes its group with it, whoever's that is."""
    mine = await acme.enqueue("work")
    groups = [group for group in await owner.groups() if group.tenant == "globex"]
    async with tenancy.connected("acme") as connection:
        for group in groups:
            values = {"id": mine.id, "group_id": group.id, "now": None}
            with pytest.raises(DENIED):
                await connection.fetch(gate("set_root"), *sql("set_root").bind(values))


async def test_view_lends_nobody_its_owners_eyes(tenancy: Tenancy, theirs: list[str]) -> None:
    async with tenancy.connected() as owner, tenancy.connected("acme") as acme:
        await owner.execute(
            "CREATE VIEW public.waiting AS SELECT id, tenant FROM windrow.job_live;"
            "CREATE VIEW public.report AS SELECT count(*) AS n FROM public.waiting;"
            "GRANT SELECT ON public.waiting, public.report TO windrow_tenant"
        )
        assert await acme.fetchval("SELECT n FROM public.report") > 0
        problems = (await tenancy_status(tenancy.url)).problems
        assert set(problems) == {
            "view waiting is not security_invoker",
            "view report is not security_invoker",
        }
        assert (await enable_tenancy(tenancy.url)).problems == ()
        assert await acme.fetchval("SELECT n FROM public.report") == 0
        assert await acme.fetch("SELECT * FROM public.waiting") == []


async def test_functions_do_not_follow_the_callers_search_path(
    tenancy: Tenancy, theirs: list[str]
) -> None:
    async with tenancy.connected() as owner:
        rows = await owner.fetch(
            "SELECT oid::regprocedure::text AS name, proconfig FROM pg_proc WHERE prosecdef "
            "AND pronamespace IN ('windrow'::regnamespace, 'windrow_gate'::regnamespace)"
        )
        assert len(rows) > len(list_gated())
        pinned = ["search_path=pg_catalog, pg_temp"]
        assert [row["name"] for row in rows if row["proconfig"] != pinned] == []
    async with tenancy.connected("acme") as acme:
        await acme.execute(
            "CREATE TEMP TABLE tenant_role (role name, tenant text);"
            "INSERT INTO tenant_role VALUES (session_user, 'globex');"
            "CREATE FUNCTION pg_temp.pg_has_role(name, oid, text) RETURNS boolean "
            "LANGUAGE sql AS 'SELECT true';"
            "SET search_path = pg_temp, pg_catalog; SET windrow.tenant = 'globex'"
        )
        assert await acme.fetchval("SELECT windrow.session_tenant()") == "acme"
        assert await acme.fetchval("SELECT windrow.session_access()") == "tenant"
        assert await acme.fetch("SELECT id FROM windrow.job") == []


async def test_mapping_and_policies_are_not_a_tenants_to_change(tenancy: Tenancy) -> None:
    async with tenancy.connected("acme") as acme:
        for statement in (
            "SELECT * FROM windrow.tenant_role",
            "INSERT INTO windrow.tenant_role VALUES ('postgres', 'acme')",
            "UPDATE windrow.tenant_role SET tenant = 'globex'",
            "DROP POLICY windrow_read ON windrow.job",
            "ALTER TABLE windrow.job DISABLE ROW LEVEL SECURITY",
            "CREATE FUNCTION windrow.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE FUNCTION windrow_gate.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "SELECT windrow.wake_sleepers('')",
            "SELECT windrow_gate.is_foreign_job(gen_random_uuid())",
            "COPY windrow.job_live FROM STDIN",
            "BEGIN; LOCK TABLE windrow.job_live IN EXCLUSIVE MODE",
        ):
            with pytest.raises(DENIED):
                await acme.execute(statement)


async def test_leaky_function_in_a_filter_is_shown_no_row_of_another(
    tenancy: Tenancy, theirs: list[str]
) -> None:
    """A cheap function of one's own in WHERE would be called first, if the planner could choose."""
    async with tenancy.connected("acme") as acme:
        seen: list[str] = []
        acme.add_log_listener(lambda _, message: seen.append(message.message))
        await acme.execute(
            "CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS "
            "$$ BEGIN RAISE NOTICE 'seen %', $1; RETURN true; END $$"
        )
        for table in ("job", "job_live", "job_payload", "event", "job_group", "blob"):
            await acme.fetch(f"SELECT * FROM windrow.{table} AS row WHERE pg_temp.leak(row::text)")
        assert seen == []


async def test_plans_tell_no_values_of_another(tenancy: Tenancy, theirs: list[str]) -> None:
    async with tenancy.connected() as owner, tenancy.connected("acme") as acme:
        await owner.execute("ANALYZE windrow.job_live")
        assert await acme.fetch("SELECT tablename FROM pg_stats WHERE schemaname = 'windrow'") == []
        lines = await acme.fetch("EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM windrow.job_live")
        assert "globex" not in "\n".join(line[0] for line in lines)


async def test_switched_off_it_leaves_tenants_no_rights(tenancy: Tenancy, owner: Queue) -> None:
    await owner.enqueue("work")
    status = await disable_tenancy(tenancy.url)
    assert not status.is_on
    assert {one.tenant for one in status.roles} == {"acme", "globex"}
    async with tenancy.connected("acme") as acme:
        with pytest.raises(DENIED):
            await acme.fetch("SELECT * FROM windrow.job")
    [job] = (await owner.claim()).jobs
    assert job.state is JobState.ACTIVE
    assert (await enable_tenancy(tenancy.url)).problems == ()


async def test_role_that_belongs_to_a_tenant_and_may_be_more_is_reported(tenancy: Tenancy) -> None:
    name = tenancy.role("acme")
    async with tenancy.connected() as owner:
        await owner.execute(f"GRANT windrow_api TO {name}")
        try:
            problems = (await tenancy_status(tenancy.url)).problems
        finally:
            await owner.execute(f"REVOKE windrow_api FROM {name}")
    assert problems == (f"role {name} belongs to a tenant and is also a member of windrow_api",)


async def _everything(tenancy: Tenancy) -> list[str]:
    async with tenancy.connected() as owner:
        rows = await owner.fetch(
            "SELECT row::text FROM windrow.job AS row UNION ALL "
            "SELECT row::text FROM windrow.job_payload AS row UNION ALL "
            "SELECT row::text FROM windrow.job_error AS row UNION ALL "
            "SELECT row::text FROM windrow.job_group AS row ORDER BY 1"
        )
        return [row[0] for row in rows]


async def _written_about(tenancy: Tenancy) -> tuple[int, int]:
    """How many events and counts there are."""
    async with tenancy.connected() as owner:
        events = await owner.fetchval("SELECT count(*) FROM windrow.event")
        return events, await owner.fetchval("SELECT count(*) FROM windrow.tally")


async def test_no_role_but_workers_hears_of_work_or_can_wake_anybody(
    tenancy: Tenancy, acme: Queue, worker: Queue
) -> None:
    heard: list[tuple[str, str]] = []
    names = [f"windrow_{what}" for what in ("work", "end", "event")]
    async with tenancy.connected("globex") as spy, tenancy.connected() as owner:
        for secret in ("SELECT secret FROM windrow.channel", "SELECT windrow.channel('work')"):
            with pytest.raises(DENIED):
                await spy.execute(secret)
        for name in names:
            await spy.add_listener(name, lambda *told: heard.append(told[2:]))
        real = await owner.fetchval("SELECT windrow.channel('work')")
        told: list[str] = []
        await owner.add_listener(real, lambda *one: told.append(one[3]))
        async with worker.store.listen_for_work(["acme-mergers"]) as bell:
            while await bell.wait(0.2):
                pass
            for name in names:
                await spy.execute(f"SELECT pg_notify('{name}', 'acme-mergers')")
            assert not await bell.wait(0.2)
            await acme.enqueue("work", {}, queue="acme-mergers")
            assert await bell.wait(20)
        await owner.execute("SELECT 1")
        await spy.execute("SELECT 1")
    assert told == ["acme-mergers"]
    assert [one for one in heard if one[1] != "acme-mergers"] == []
    assert len(heard) == len(names), "its own, and no more"


async def test_names_of_queues_are_seen_where_one_has_jobs(
    tenancy: Tenancy, acme: Queue, worker: Queue
) -> None:
    await acme.enqueue("work", {}, queue="shared")
    for name in ("shared", "globex-only"):
        await worker.pause(name)
    async with tenancy.connected("acme") as spy:
        rows = await spy.fetch("SELECT name, is_paused FROM windrow.queue")
    assert [tuple(row) for row in rows] == [("shared", True)]
    assert (await acme.queues())[0].is_paused
