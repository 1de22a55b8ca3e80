"""Where work comes from: a SQLite file, a Postgres database. Both are read in batches, as rows with
the columns they have, under one snapshot, and written to only by `mark` and `drop`."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Protocol, cast
from urllib.parse import quote

import asyncpg

from windrow.db.sqlite.location import parse_url
from windrow.errors import MigrationFailed
from windrow.redaction import redact_url

BATCH: Final = 500
_MOST_NAMED: Final = 20
MARK: Final = "windrow_deprecated"  # SQLite has no comments on tables: a table says it
_MAKE_MARK: Final = (
    f"CREATE TABLE IF NOT EXISTS {MARK} (table_name TEXT PRIMARY KEY, since TEXT, why TEXT)"
)
_WHOLE_FILE: Final = ""  # where the name of a table would be: the name of the file itself

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    name: str  # with its schema, unless that is the usual one
    columns: frozenset[str]


class Origin(Protocol):
    name: str  # the same for every run, without a password
    former: Sequence[str]  # what it was called by earlier versions
    errors: ClassVar[tuple[type[Exception], ...]]  # what its driver raises when it cannot be read

    async def keep_name(self, *, is_known: bool) -> None:
        """Have the same name from now on, wherever it goes; a new one if it is not yet known by
        the one it has."""
        ...

    async def list_tables(self) -> list[Table]:
        """The tables that hold rows of their own; what Windrow's dialects show is none."""
        ...

    def read(self, table: Table, order: Sequence[str]) -> AsyncIterator[list[Row]]:
        """The rows of a table, by those of these columns that it has."""
        ...

    async def mark(self, tables: Sequence[str], is_deprecated: bool) -> None:
        """Say of tables that they are not to be used any more, or take that back."""
        ...

    async def hold(self, tables: Sequence[str]) -> None:
        """Read the tables as they are now, and let nobody write to them until they are dropped or
        this is closed."""
        ...

    async def release(self) -> None:
        """Hold and read them no longer, and drop nothing."""
        ...

    async def drop(self, tables: Sequence[str]) -> None:
        """Drop tables that are held. After MigrationFailed nothing is dropped."""
        ...

    async def close(self) -> None: ...


async def open_database(place: str) -> Origin:
    """A file of SQLite, by path or URL, or a Postgres database. Raises MigrationFailed."""
    if place.startswith(("postgresql://", "postgres://")):
        return await PostgresOrigin.open(place)
    path = parse_url(place).path if place.startswith("sqlite:") else place
    return await asyncio.to_thread(lambda: SqliteOrigin(Path(path).expanduser().absolute()))


class SqliteOrigin:
    errors: ClassVar[tuple[type[Exception], ...]] = (sqlite3.Error,)

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise MigrationFailed(f"there is no file {path}")
        self.former: Sequence[str] = (f"sqlite:{path.resolve()}",)
        self._path = path
        try:
            self._connection = self._connect("ro")
            self.name = self._kept_name(self._connection) or self.former[0]
        except sqlite3.DatabaseError as error:
            raise MigrationFailed(f"{path} cannot be read as a SQLite database: {error}") from error

    def _connect(self, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self._path))}?mode={mode}",
            uri=True,
            check_same_thread=False,
            timeout=10,
            isolation_level=None,
        )
        connection.row_factory = sqlite3.Row
        # Names and texts of old programs need not be UTF-8: nothing is lost over that.
        connection.text_factory = lambda text: text.decode(errors="replace")
        return connection

    async def keep_name(self, *, is_known: bool) -> None:
        """In the file itself, which may be moved. One that cannot be written to is known by its
        path."""
        if is_known and self._kept_name(self._connection) is not None:
            return
        name = self.name if is_known else f"sqlite:{uuid.uuid4()}"

        def do(connection: sqlite3.Connection) -> None:
            connection.execute(_MAKE_MARK)
            self._insert_marks(connection, [(_WHOLE_FILE, name)])
            self.name = self._kept_name(connection) or name

        try:
            await asyncio.to_thread(self._write, do)
        except MigrationFailed as error:
            if not _is_read_only(error.__cause__):  # who was only slow would be known by two names
                raise

    def _kept_name(self, connection: sqlite3.Connection) -> str | None:
        """Of two that keep a name at once the first one's stands."""
        is_marked = "SELECT 1 FROM sqlite_schema WHERE name = ?"
        if connection.execute(is_marked, [MARK]).fetchone() is None:
            return None
        kept = f"SELECT why FROM {MARK} WHERE table_name = ?"  # noqa: S608 - a constant
        found = connection.execute(kept, [_WHOLE_FILE]).fetchone()
        return None if found is None else str(found[0])

    def _insert_marks(
        self, connection: sqlite3.Connection, marks: Sequence[tuple[str, str]]
    ) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        connection.executemany(
            f"INSERT OR IGNORE INTO {MARK} VALUES (?, ?, ?)",  # noqa: S608 - a constant
            [(name, now, why) for name, why in marks],
        )

    async def list_tables(self) -> list[Table]:
        return await asyncio.to_thread(self._list_tables)

    def _list_tables(self) -> list[Table]:
        if not self._connection.in_transaction:
            # Not before: Windrow's own tables may be in this file, and be made before it is read.
            self._connection.execute("BEGIN")
        rows = self._connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        )
        names = [row["name"] for row in rows]
        if "windrow_unified_job" in names:  # the dialect's, whose rows are jobs already
            names.remove("unified_queue")
        return [Table(name, self._columns(name)) for name in names if name != MARK]

    def _columns(self, table: str) -> frozenset[str]:
        found = self._connection.execute("SELECT name FROM pragma_table_info(?)", [table])
        return frozenset(row["name"] for row in found)

    async def read(self, table: Table, order: Sequence[str]) -> AsyncIterator[list[Row]]:
        by = ", ".join(_quoted(name) for name in order if name in table.columns)
        text = f"SELECT * FROM {_quoted(table.name)}"  # noqa: S608 - a name cannot be bound
        text += f" ORDER BY {by}" if by else ""
        cursor = await asyncio.to_thread(self._connection.execute, text)
        with closing(cursor):
            while rows := await asyncio.to_thread(cursor.fetchmany, BATCH):
                yield [dict(row) for row in rows]

    async def mark(self, tables: Sequence[str], is_deprecated: bool) -> None:
        def do(connection: sqlite3.Connection) -> None:
            if not is_deprecated:
                connection.execute(f"DROP TABLE IF EXISTS {MARK}")
                return
            connection.execute(_MAKE_MARK)
            self._insert_marks(connection, [(name, NOTICE) for name in tables])

        await asyncio.to_thread(self._write, do)

    async def hold(self, tables: Sequence[str]) -> None:
        await asyncio.to_thread(self._hold)

    def _hold(self) -> None:
        self._connection.close()
        self._connection = self._connect("rw")
        self._connection.execute("PRAGMA foreign_keys = OFF")  # in any order
        self._connection.execute("BEGIN IMMEDIATE")

    async def release(self) -> None:
        await asyncio.to_thread(self._connection.rollback)

    async def drop(self, tables: Sequence[str]) -> None:
        await asyncio.to_thread(self._drop, tables)

    def _drop(self, tables: Sequence[str]) -> None:
        try:
            needed = self._tables_that_name(tables)
            views = self._working_views()
            for name in tables:
                self._connection.execute(f"DROP TABLE IF EXISTS {_quoted(name)}")
            # The name of the file stays: by that it is known what came from it.
            self._connection.execute(_MAKE_MARK)
            self._connection.execute(f"DELETE FROM {MARK} WHERE table_name <> ?", [_WHOLE_FILE])  # noqa: S608
            if needed or (needed := sorted(views - self._working_views())):
                raise MigrationFailed(f"nothing is dropped, for others need it: {_named(needed)}")
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise MigrationFailed(f"{self._path}: nothing is dropped: {error}") from error

    def _tables_that_name(self, tables: Sequence[str]) -> list[str]:
        """Other tables whose foreign keys point to these."""
        found = self._connection.execute(
            'SELECT DISTINCT t.name, k."table" AS target'
            " FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS k WHERE t.type = 'table'"
        )
        targets = {name.lower() for name in tables}
        return sorted(
            {
                f"table {row['name']}"
                for row in found
                if row["target"].lower() in targets and row["name"].lower() not in targets
            }
        )

    def _working_views(self) -> set[str]:
        """SQLite drops a table that a view reads; the view just does not work any more."""
        names = self._connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")
        return {f"view {row['name']}" for row in names.fetchall() if self._works(row["name"])}

    def _works(self, view: str) -> bool:
        try:
            text = f"SELECT * FROM {_quoted(view)} LIMIT 0"  # noqa: S608 - a name cannot be bound
            self._connection.execute(text).close()
        except sqlite3.Error:
            return False
        return True

    def _write(self, do: Any) -> None:
        self._connection.rollback()  # the snapshot that was read under
        try:
            with closing(sqlite3.connect(self._path, timeout=10)) as connection, connection:
                do(connection)
        except sqlite3.DatabaseError as error:
            raise MigrationFailed(f"{self._path} cannot be written to: {error}") from error

    async def close(self) -> None:
        await asyncio.to_thread(self._connection.close)


class PostgresOrigin:
    errors: ClassVar[tuple[type[Exception], ...]] = (
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        OSError,
    )

    def __init__(self, name: str, connection: Any) -> None:
        self.name = name
        self.former: Sequence[str] = ()
        self._connection = connection
        self._snapshot: Any = None
        self._cursors = 0

    @classmethod
    async def open(cls, url: str) -> PostgresOrigin:
        try:
            connection = await asyncpg.connect(url, timeout=10)
        except (OSError, TimeoutError, ValueError, asyncpg.PostgresError) as error:
            raise MigrationFailed(f"{redact_url(url)} cannot be opened: {error}") from error
        try:
            # The same by whichever address it is reached, so that nothing is taken in twice.
            identity = await connection.fetchval(
                "SELECT format('postgres:%s/%s',"
                " (SELECT system_identifier FROM pg_control_system()), current_database())"
            )
        except asyncpg.PostgresError as error:
            await connection.close()
            raise MigrationFailed(f"{redact_url(url)} cannot be read: {error}") from error
        return cls(identity, connection)

    async def keep_name(self, *, is_known: bool) -> None:
        """The server has one."""

    async def list_tables(self) -> list[Table]:
        await self._begin()
        found = await self._connection.fetch(_TABLES)
        return [Table(row["name"], frozenset(row["columns"])) for row in found]

    async def read(self, table: Table, order: Sequence[str]) -> AsyncIterator[list[Row]]:
        await self._begin()
        by = ", ".join(_quoted(name) for name in order if name in table.columns)
        text = f"SELECT * FROM {_quoted(table.name)}"  # noqa: S608 - a name cannot be bound
        text += f" ORDER BY {by}" if by else ""
        self._cursors += 1
        name = f"windrow_{self._cursors}"  # a new one each time: what is fetched has other columns
        await self._connection.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {text}")
        while rows := await self._connection.fetch(f"FETCH {BATCH} FROM {name}"):
            yield [dict(row) for row in rows]
        await self._connection.execute(f"CLOSE {name}")  # or its table cannot be dropped

    async def mark(self, tables: Sequence[str], is_deprecated: bool) -> None:
        """By a comment, before the one that a table has."""
        await self._end()
        async with self._connection.transaction():
            await self._connection.execute("SET LOCAL lock_timeout = '10s'")
            for name in tables:
                await self._comment(_quoted(name), is_deprecated)

    async def _comment(self, table: str, is_deprecated: bool) -> None:
        found = "SELECT obj_description($1::text::regclass, 'pg_class')"
        own = (await self._connection.fetchval(found, table) or "").removeprefix(NOTICE).lstrip()
        text = f"{NOTICE}\n{own}".rstrip() if is_deprecated else own
        literal = await self._connection.fetchval("SELECT quote_literal($1::text)", text)
        await self._connection.execute(f"COMMENT ON TABLE {table} IS {literal}")

    async def hold(self, tables: Sequence[str]) -> None:
        await self._end()
        self._snapshot = self._connection.transaction()
        await self._snapshot.start()
        await self._connection.execute("SET LOCAL lock_timeout = '10s'")
        names = ", ".join(_quoted(name) for name in tables)
        await self._connection.execute(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")

    async def release(self) -> None:
        await self._end()

    async def drop(self, tables: Sequence[str]) -> None:
        try:
            rest = sorted(set(tables) - await self._drop_queues(tables))
            if rest:
                names = ", ".join(_quoted(name) for name in rest)
                await self._connection.execute(f"DROP TABLE {names}")  # at once: in any order
        except asyncpg.DependentObjectsStillExistError as error:
            needed = _named((error.detail or str(error)).splitlines())
            raise MigrationFailed(f"nothing is dropped, for others need it: {needed}") from error
        await self._snapshot.commit()
        self._snapshot = None

    async def _drop_queues(self, tables: Sequence[str]) -> set[str]:
        """Let PGMQ drop its queues, which knows of more than their tables. Returns those tables."""
        dropping = "SELECT to_regprocedure('pgmq.drop_queue(text)')"
        if not any(name.startswith("pgmq.") for name in tables) or not (
            await self._connection.fetchval(dropping)
        ):
            return set()
        found = await self._connection.fetch("SELECT queue_name FROM pgmq.meta")
        gone: set[str] = set()
        for row in found:
            queue = row["queue_name"].lower()
            parts = {f"pgmq.q_{queue}", f"pgmq.a_{queue}"} & set(tables)
            if parts and await self._connection.fetchval(
                "SELECT pgmq.drop_queue($1)", row["queue_name"]
            ):
                gone |= parts
        return gone

    async def _begin(self) -> None:
        if self._snapshot is None:
            self._snapshot = self._connection.transaction(
                isolation="repeatable_read", readonly=True
            )
            await self._snapshot.start()

    async def _end(self) -> None:
        if self._snapshot is not None:
            await self._snapshot.rollback()
            self._snapshot = None

    async def close(self) -> None:
        await cast(Any, self._connection).close()


NOTICE: Final = "Deprecated: its work is Windrow's. `windrow migrate` moved it."

# Views are left out, among them those of the dialects; and where the dialect pgmq is installed its
# tables hold no messages.
_TABLES: Final = """
SELECT CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END AS name,
       array_agg(a.attname::text) AS columns
  FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'windrow', 'windrow_dialect')
 GROUP BY n.nspname, c.relname
 ORDER BY 1
"""


def _is_read_only(error: BaseException | None) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest says more of it
    return code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


def _named(found: Sequence[str]) -> str:
    more = len(found) - _MOST_NAMED
    return ", ".join(found[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _quoted(name: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split(".", 1))
