"""Maintenance by pg_cron: the store's own statements, written out for a scheduler in the server.

What needs only SQL is handed over: due jobs, followers whose place is free, jobs of dead workers
that may run again, the counts. Workers go on doing the same; whoever comes second finds nothing.
What is decided in Python stays with the workers: schedules, held jobs, jobs that crashed too often,
retention.

pg_cron has its tables in one database of the server and can run commands in the others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit

from windrow.db.postgres.connections import Connections
from windrow.db.transactions import Executor
from windrow.errors import ConfigError, StoreError
from windrow.queue.postgres.leasing import CRASH, CRASH_MESSAGE
from windrow.queue.postgres.rows import Row, sql

LIMIT: Final = "10000"
NULL: Final = "NULL"
LONGEST_NAME: Final = 40
EVERY_MINUTE: Final = "* * * * *"
SECONDS: Final = "15 seconds"
SECONDS_SINCE: Final = (1, 5)  # the first version that takes less than a minute
EVERY_HOUR: Final = "41 * * * *"

NOT_LOADED: Final = (
    "pg_cron is not loaded in this server, or {user} may not see its settings. Install it (Debian: "
    "apt install postgresql-15-cron), set shared_preload_libraries = 'pg_cron' and restart the "
    "server; if that was done, name the database that pg_cron lives in (--cron-database)"
)
NOT_CREATED: Final = (
    "the database {home} has no pg_cron: run CREATE EXTENSION pg_cron and GRANT USAGE ON SCHEMA "
    "cron TO {user} there, as a superuser"
)
REFUSED: Final = "SQLSTATE 42501"
GRANTS: Final = (
    "in the database {home}, as a superuser, GRANT USAGE ON SCHEMA cron TO {user}, and, when the "
    "jobs are in another database, GRANT EXECUTE ON FUNCTION cron.schedule_in_database TO {user}"
)


@dataclass(frozen=True, slots=True)
class CronJob:
    """A job of pg_cron that is ours, and how its last run went."""

    id: int
    name: str
    schedule: str
    command: str
    database: str
    is_active: bool
    ran_at: datetime | None
    status: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class Task:
    """What pg_cron is to do. Its name has no underscore: that ends the name of the database."""

    name: str
    command: str
    schedule: str = EVERY_MINUTE
    is_urgent: bool = False  # more often than that, where it can be
    is_about_cron: bool = False  # run where pg_cron is, not where the jobs are


def prefix_of(database: str) -> str:
    """What the names of a database's jobs begin with. They are cut after 63 bytes, so a long name
    of a database is given by its hash."""
    if len(database.encode()) > LONGEST_NAME:
        database = hashlib.sha256(database.encode()).hexdigest()[:LONGEST_NAME]
    return f"windrow_{database}_"


def stage_command() -> str:
    stage = sql("stage_jobs").written(limit=LIMIT, now=NULL)
    promote = sql("promote_followers").written(keys="NULL::text[]", limit=LIMIT, now=NULL)
    return f"{stage};\n{promote}"


def rescue_command() -> str:
    """Each crash is written into the history of its job, as the store does it."""
    rescue = sql("rescue_jobs").written(limit=LIMIT, now=NULL, returns_only="true")
    note = sql("add_errors").written(
        ids="ARRAY[crashed.id]",
        times=f"ARRAY[{NULL}]",
        reasons=f"ARRAY[{_literal(CRASH)}]",
        types=f"ARRAY[{NULL}]",
        messages=f"ARRAY[format({_literal(CRASH_MESSAGE)}, crashed.worker)]",
        tracebacks=f"ARRAY[{NULL}]",
        now=NULL,
    )
    return (
        "DO $windrow$ DECLARE crashed record; BEGIN\n"
        f"FOR crashed IN {rescue}\nLOOP\n{note};\nEND LOOP;\nEND $windrow$"
    )


def tasks(prefix: str) -> list[Task]:
    ours = [
        Task("stage", stage_command(), is_urgent=True),
        Task("rescue", rescue_command(), is_urgent=True),
        Task("fold", sql("fold_counts").written()),
    ]
    names = ", ".join(_literal(prefix + name) for name in (*(t.name for t in ours), "forget"))
    forget = sql("drop_cron_history").written(names=f"ARRAY[{names}]")
    return [*ours, Task("forget", forget, EVERY_HOUR, is_about_cron=True)]


class Cron:
    """pg_cron, for one database of its server."""

    def __init__(self, home: Connections, home_name: str, found: Row, version: str) -> None:
        self.version = version
        self._home = home
        self._home_name = home_name
        self._database: str = found["database"]
        self._user: str = found["name"]
        self._prefix = prefix_of(self._database)

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, home: str | None = None) -> AsyncIterator[Self]:
        """pg_cron of the server that a database is on; `home`, the database that it lives in, is
        found out if it is not given. Raises ConfigError if it is not there, with what to do."""
        found = await _describe(url)
        name = home or found["home"]
        if name is None:
            raise ConfigError(NOT_LOADED.format(user=found["name"]))
        database = await Connections.open(_with_database(url, name))
        try:
            versions = await database.fetch(sql("find_cron_version"), {})
            if not versions:
                raise ConfigError(NOT_CREATED.format(home=name, user=found["name"]))
            yield cls(database, name, found, versions[0]["version"])
        finally:
            await database.close()

    async def install(self) -> list[CronJob]:
        """Have every task done by pg_cron, and nothing else of ours."""
        wanted = tasks(self._prefix)
        names = {self._prefix + task.name for task in wanted}

        async def do(executor: Executor) -> list[CronJob]:
            for task in wanted:
                await self._put(executor, task)
            former = [job for job in await self._list(executor) if job.name not in names]
            await _remove(executor, former)
            return await self._list(executor)

        with self._refusal_explained():
            return await self._home.in_transaction(do)

    async def remove(self) -> list[CronJob]:
        """Have nothing done by pg_cron any more; what it did."""

        async def do(executor: Executor) -> list[CronJob]:
            jobs = await self._list(executor)
            await _remove(executor, jobs)
            return jobs

        with self._refusal_explained():
            return await self._home.in_transaction(do)

    async def jobs(self) -> list[CronJob]:
        """What of ours is done by pg_cron, by name."""
        with self._refusal_explained():
            return await self._home.in_transaction(self._list)

    async def _put(self, executor: Executor, task: Task) -> None:
        takes_seconds = parse_version(self.version) >= SECONDS_SINCE
        values: dict[str, Any] = {
            "name": self._prefix + task.name,
            "schedule": SECONDS if task.is_urgent and takes_seconds else task.schedule,
            "command": task.command,
        }
        if task.is_about_cron or self._home_name == self._database:
            await executor.fetch(sql("put_cron_job"), values)
        else:
            await executor.fetch(sql("put_distant_job"), {**values, "database": self._database})

    async def _list(self, executor: Executor) -> list[CronJob]:
        rows = await executor.fetch(sql("list_cron_jobs"), {"prefix": self._prefix})
        # What follows the prefix may also be the rest of a longer database's name.
        return [CronJob(**row) for row in rows if "_" not in row["name"][len(self._prefix) :]]

    @contextmanager
    def _refusal_explained(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            if REFUSED not in str(error):
                raise
            raise ConfigError(
                f"{error}: {GRANTS.format(user=self._user, home=self._home_name)}"
            ) from error


async def _remove(executor: Executor, jobs: Sequence[CronJob]) -> None:
    await executor.fetch(sql("remove_cron_jobs"), {"ids": [job.id for job in jobs]})


async def _describe(url: str) -> Row:
    """What the database itself knows of pg_cron. Its tables must be there, for jobs to run on."""
    store_database = await Connections.open(url)
    try:
        [found] = await store_database.fetch(sql("describe_cron"), {})
        return found
    finally:
        await store_database.close()


def parse_version(version: str) -> tuple[int, ...]:
    """The first two numbers of a version: (1, 4) of 1.4-1."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _with_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path="/" + quote(name, safe="")).geturl()


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
