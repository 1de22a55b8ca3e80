"""Databases for tests: copies of a template, used by one test after another while only rows change.

To copy a database and to drop it is to write and to remove some 850 files, and the first sessions
in it find nothing in memory; to empty it is one statement. A test may still do what it likes: a
copy is used again only if everybody has left it, and the server has counted no write to its
catalogs nor to the tables whose rows came with the template, and it has no settings of its own. In
any other case it is dropped. The statement knows no table by name.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from tests.postgres_server import create_database, drop_database, with_database

# Up to here the planner takes a table that was never vacuumed for one of ten pages, so that what
# earlier tests left of their rows changes no plan.
MOST_BYTES = 9 * 8192
LEAVING_SECONDS = 0.5

# Counts of the server, which a session adds to at its end at the latest. They start anew in a copy.
WRITES = (
    "pg_stat_get_tuples_inserted(relation) + pg_stat_get_tuples_updated(relation) "
    "+ pg_stat_get_tuples_deleted(relation)"
)

# What ANALYZE and VACUUM leave behind for the planner is not counted as a write. The session that
# empties a copy remembers it from the beginning, since a server may vacuum the template, too.
MEASURED = "SELECT sum(relpages + reltuples::bigint)::text FROM pg_class"
REMEMBERED = "windrow_tests.measured"

EMPTY = """
DO $$
DECLARE
    written regclass;
    until timestamptz := clock_timestamp() + {leaving};
BEGIN
    WHILE EXISTS (SELECT FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()) LOOP
        IF clock_timestamp() > until THEN
            RAISE 'somebody is connected to it';
        END IF;
        PERFORM pg_sleep(0.001), pg_stat_clear_snapshot();
    END LOOP;

    IF EXISTS (SELECT FROM unnest({fixed}::oid[]) relation WHERE {writes} > 0) THEN
        RAISE 'more than rows has changed';
    ELSIF ({measured}) <> current_setting({remembered}) THEN
        RAISE 'it was analyzed or vacuumed';
    ELSIF EXISTS (SELECT FROM pg_database LEFT JOIN pg_db_role_setting ON setdatabase = oid
                   WHERE datname = current_database()
                     AND (setdatabase IS NOT NULL OR datacl IS NOT NULL OR datconnlimit <> -1)) THEN
        RAISE 'it has settings or rights';
    END IF;

    SET LOCAL lock_timeout = '5s';
    SET LOCAL session_replication_role = replica;  -- no triggers
    FOR written IN SELECT relation FROM unnest({emptied}::oid[]) relation
                    WHERE pg_stat_get_tuples_inserted(relation) > 0 LOOP
        IF pg_relation_size(written) > {most_bytes} THEN
            RAISE '% is large', written;
        END IF;
        EXECUTE format('DELETE FROM %s', written);
    END LOOP;
    PERFORM setval(seqrelid, coalesce(last, seqstart), last IS NOT NULL)
       FROM unnest({sequences}::oid[], {last_values}::bigint[]) AS kept (seqrelid, last)
       JOIN pg_sequence USING (seqrelid)
      WHERE pg_sequence_last_value(seqrelid) IS DISTINCT FROM last;
END $$
"""


class Copy(NamedTuple):
    template: str
    url: str
    session: psycopg.Connection[Any]


class Databases:
    """`take()` a copy of a template and `give_back()` its URL; `close()` drops them all."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._statements: dict[str, sql.Composed] = {}
        self._taken: dict[str, Copy] = {}
        self._free: defaultdict[str, list[Copy]] = defaultdict(list)

    def take(self, template: str) -> str:
        if template not in self._statements:
            self._statements[template] = _statement_for(self._server_url, template)
        free = self._free[template]
        copy = free.pop() if free else self._make(template)
        self._taken[copy.url] = copy
        return copy.url

    def give_back(self, url: str) -> None:
        copy = self._taken.pop(url)
        try:
            copy.session.execute(self._statements[copy.template])
        except psycopg.Error:
            self._drop(copy)
        else:
            self._free[copy.template].append(copy)

    def close(self) -> None:
        for copies in (self._taken.values(), *self._free.values()):
            for copy in copies:
                self._drop(copy)

    def _make(self, template: str) -> Copy:
        url = create_database(self._server_url, template)
        session = _connect(url)
        session.execute(f"SELECT set_config('{REMEMBERED}', ({MEASURED}), false)")
        return Copy(template, url, session)

    def _drop(self, copy: Copy) -> None:
        copy.session.close()
        drop_database(self._server_url, copy.url)


def _statement_for(server_url: str, template: str) -> sql.Composed:
    """The statement that empties a copy of this template, or raises what is in its way."""
    with _connect(with_database(server_url, template)) as session:
        relations = session.execute(
            "SELECT oid, oid::regclass::text, relnamespace = 'pg_catalog'::regnamespace "
            "  FROM pg_class WHERE relkind = 'r' AND NOT relisshared"
        ).fetchall()
        is_fixed = {
            oid: is_catalog or _has_rows(session, name) for oid, name, is_catalog in relations
        }
        sequences = session.execute(
            "SELECT seqrelid, pg_sequence_last_value(seqrelid) FROM pg_sequence"
        ).fetchall()
    return sql.SQL(EMPTY).format(
        leaving=sql.SQL("{} * interval '1 second'").format(LEAVING_SECONDS),
        fixed=[oid for oid, fixed in is_fixed.items() if fixed],
        emptied=[oid for oid, fixed in is_fixed.items() if not fixed],
        writes=sql.SQL(WRITES),
        measured=sql.SQL(MEASURED),
        remembered=REMEMBERED,
        sequences=[oid for oid, _ in sequences],
        last_values=[last for _, last in sequences],
        most_bytes=MOST_BYTES,
    )


def _has_rows(session: psycopg.Connection[Any], table: str) -> bool:
    statement = sql.SQL("SELECT FROM {} LIMIT 1").format(sql.SQL(table))
    return session.execute(statement).rowcount > 0


def _connect(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True, prepare_threshold=None)
