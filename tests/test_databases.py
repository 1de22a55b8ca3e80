"""A database that served one test is as good as new for the next, or it is not used again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests import databases
from tests.databases import Databases
from tests.postgres_server import database_name
from windrow import Queue

# Everything in all tables, as text.
CONTENTS = """
SELECT relname, query_to_xml(format('SELECT * FROM %s ORDER BY 1', oid::regclass), true, true, '')
  FROM pg_class WHERE relkind IN ('r', 'S') AND relnamespace = 'windrow'::regnamespace
 ORDER BY relname
"""

EMPTIED = """
SELECT relname FROM pg_class
 WHERE relkind = 'r' AND NOT relispartition AND relnamespace = 'windrow'::regnamespace
   AND relname NOT IN ('migration', 'event_floor', 'channel')
"""
NEEDED = """
SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
 WHERE attrelid = ('windrow.' || %s)::regclass AND attnum > 0 AND attnotnull AND NOT atthasdef
   AND attidentity = ''
"""
VALUES = {
    "uuid": "00000000-0000-0000-0000-000000000001",
    "timestamp with time zone": "2026-01-01",
    "json": "{}",
    "jsonb": "{}",
    "uuid[]": "{}",
    "text[]": "{}",
}

CHANGES = {
    "a table is made": "CREATE TABLE public.more (n integer)",
    "a schema is made": "CREATE SCHEMA more",
    "a column is added": "ALTER TABLE windrow.lease ADD COLUMN more integer",
    "an index is dropped": "DROP INDEX windrow.job_live_due",
    "a leaf is detached": "ALTER TABLE windrow.job DETACH PARTITION windrow.job_live",
    "a leaf is truncated": "TRUNCATE windrow.job_finished_01",
    "a function is replaced": "CREATE OR REPLACE FUNCTION windrow.event_leaf(at timestamptz) "
    "RETURNS smallint LANGUAGE sql STABLE AS 'SELECT 1::smallint'",
    "a right is given": "GRANT SELECT ON windrow.job TO pg_monitor",
    "a sequence is altered": "ALTER SEQUENCE windrow.job_seq INCREMENT 2",
    "statistics are gathered": "ANALYZE windrow.job_live",
    "it is vacuumed": "VACUUM windrow.job_live",
    "the database has a setting": "ALTER DATABASE {name} SET jit = off",
    "somebody may create in it": "GRANT CREATE ON DATABASE {name} TO pg_monitor",
    "a migration is forgotten": "DELETE FROM windrow.migration WHERE version = 1",
    "a row of the template changes": "UPDATE windrow.event_floor SET seq = 7",
    "a table has become large": "INSERT INTO windrow.blob SELECT sha256(n::text::bytea), "
    "repeat('.', 500)::bytea FROM generate_series(1, 500) n",
}


@pytest.fixture
def kept(postgres_url: str) -> Iterator[Databases]:
    kept = Databases(postgres_url)
    yield kept
    kept.close()


def rows(url: str) -> list[tuple[str, str]]:
    with psycopg.connect(url) as session:
        return session.execute(CONTENTS).fetchall()


async def test_a_copy_that_was_used_is_as_it_was(kept: Databases, postgres_template: str) -> None:
    url = kept.take(postgres_template)
    new = rows(url)
    async with Queue.open(url) as queue:
        group = await queue.create_group()
        await queue.set_limit("host", active=1)
        await queue.schedule("daily", "index", {}, every=60)
        await queue.pause("images")
        job = await queue.enqueue("index", {"n": 1}, limits=["host"], group=group.id)
        lease = await queue.claim(worker="mine")
        await lease.fail(lease.jobs[0], "it broke", retry_in=5)
        await queue.cancel(job.id)
    used = rows(url)
    kept.give_back(url)
    assert kept.take(postgres_template) == url
    assert rows(url) == new != used


def test_every_table_is_emptied(kept: Databases, postgres_template: str) -> None:
    """Those too that the test above does not write to: each is given a row of small values."""
    url = kept.take(postgres_template)
    new = dict(rows(url))
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("SET session_replication_role = replica")
        filled = [name for (name,) in session.execute(EMPTIED) if _fill(session, name)]
    used = dict(rows(url))
    assert len(filled) > 20
    assert all(used[name] != new[name] for name in filled)
    kept.give_back(url)
    assert kept.take(postgres_template) == url
    assert dict(rows(url)) == new


def _fill(session: psycopg.Connection[Any], table: str) -> bool:
    columns = session.execute(NEEDED, [table]).fetchall()
    statement = sql.SQL("INSERT INTO windrow.{} ({}) SELECT {}").format(
        sql.Identifier(table),
        sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns),
        sql.SQL(", ").join(
            sql.SQL("{}::{}").format(VALUES.get(kind, "1"), sql.SQL(kind)) for _, kind in columns
        ),
    )
    return session.execute(statement).rowcount == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_copy_is_dropped_when(kept: Databases, postgres_template: str, change: str) -> None:
    url = kept.take(postgres_template)
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(sql.SQL(change).format(name=sql.Identifier(database_name(url))))
    kept.give_back(url)
    assert kept.take(postgres_template) != url
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def test_a_copy_that_somebody_is_still_connected_to_is_dropped(
    kept: Databases, postgres_template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "LEAVING_SECONDS", 0.01)
    url = kept.take(postgres_template)
    with psycopg.connect(url):
        kept.give_back(url)
        assert kept.take(postgres_template) != url


def test_two_at_once_are_two(kept: Databases, postgres_template: str) -> None:
    one, other = kept.take(postgres_template), kept.take(postgres_template)
    assert one != other
