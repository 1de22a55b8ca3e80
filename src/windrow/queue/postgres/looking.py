"""Looking at jobs and queues."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from msgspec.structs import asdict

from windrow.ids import is_id
from windrow.queue.job import Job, JobError, JobState, Step
from windrow.queue.postgres.listings import earlier_statement, list_statement
from windrow.queue.postgres.rows import Row, sql, to_error, to_job
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.records import ErrorCount, JobFilter, OnFull, QueueInfo, ReadyKind

FOLD_FROM: Final = 500  # rows of the tally; adding up more is felt


Run = Callable[..., Awaitable[Sequence[Row]]]


async def read_jobs(run: Run, ids: Sequence[str]) -> dict[str, Job]:
    """Jobs with everything that is kept of them, by statements that `run` runs."""
    found = {str(row["id"]): to_job(row) for row in await run("get_jobs", ids=ids)}
    history: defaultdict[str, list[JobError]] = defaultdict(list)
    for row in await run("get_errors", ids=list(found)):
        history[str(row["job_id"])].append(to_error(row))
    for job_id, errors in history.items():
        found[job_id].errors = errors
    return found


async def read_steps(run: Run, ids: Sequence[str]) -> dict[str, list[Step]]:
    """What is kept of the steps of jobs; those that have none are left out."""
    steps: defaultdict[str, list[Step]] = defaultdict(list)
    for row in await run("get_steps", ids=ids):
        steps[str(row["job_id"])].append(Step(row["name"], row["result"], row["at"]))
    return steps


def _can_be(*ids: str | None) -> bool:
    """Whether there can be jobs and groups with these ids."""
    return all(is_id(one) for one in ids if one is not None)


class Looking(Verbs):
    async def get_jobs(self, ids: Sequence[str]) -> dict[str, Job]:
        known = {given: str(uuid.UUID(given)) for given in ids if is_id(given)}
        if not known:
            return {}
        wanted = sorted(set(known.values()))
        found = await read_jobs(self._run, wanted)
        return {given: found[job_id] for given, job_id in known.items() if job_id in found}

    async def get_states(self, ids: Sequence[str]) -> dict[str, JobState]:
        known = {given: str(uuid.UUID(given)) for given in ids if is_id(given)}
        if not known:
            return {}
        rows = await self._run("get_states", ids=sorted(set(known.values())))
        states = {str(row["id"]): JobState(row["state"]) for row in rows}
        return {given: states[job_id] for given, job_id in known.items() if job_id in states}

    async def fetch_rows(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        async with (
            self._database.connection() as connection,
            connection.transaction(readonly=True),
        ):
            return [dict(row) for row in await connection.fetch(sql, *args)]

    async def change_rows(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        async with self._database.connection() as connection, connection.transaction():
            return [dict(row) for row in await connection.fetch(sql, *args)]

    async def get_steps(self, job_id: str) -> list[Step]:
        found = await read_steps(self._run, [job_id]) if is_id(job_id) else {}
        return next(iter(found.values()), [])

    async def list_jobs(
        self, wanted: JobFilter, *, after: str | None = None, limit: int = 100
    ) -> list[Job]:
        if not _can_be(wanted.group, wanted.since, after):
            return []
        statement = list_statement(wanted, is_after=after is not None)
        values = asdict(wanted) | {"after": after, "limit": limit}
        return [to_job(row) for row in await self._database.fetch(statement, values)]

    async def find_earlier(
        self, wanted: JobFilter, count: int, *, after: str | None = None
    ) -> str | None:
        if not _can_be(wanted.group, after):
            return None
        statement = earlier_statement(wanted, is_after=after is not None)
        values = asdict(wanted) | {"after": after, "count": count}
        for row in await self._database.fetch(statement, values):
            return str(row["id"])
        return None

    async def list_ended(
        self,
        group_id: str,
        kind: str,
        state: JobState,
        *,
        after: str | None = None,
        skip: int = 0,
        limit: int = 100,
    ) -> list[str]:
        if not _can_be(group_id, after):
            return []
        values: dict[str, Any] = {
            "group_id": group_id,
            "kind": kind,
            "state": state.value,
            "after": after,
            "skip": skip,
            "limit": limit,
        }
        rows = await self._database.fetch_planned(sql("list_ended"), values)
        return [str(row["id"]) for row in rows]

    async def list_queues(self) -> list[QueueInfo]:
        counts: defaultdict[str, dict[JobState, int]] = defaultdict(dict)
        deltas = 0
        for row in await self._run("count_jobs"):
            deltas += row["deltas"]
            if row["n"]:
                counts[row["queue"]][JobState(row["state"])] = row["n"]
        if deltas > FOLD_FROM:
            await self.fold_counts()
        return [
            QueueInfo(
                row["name"],
                row["is_paused"],
                counts.get(row["name"], {}),
                row["oldest_ready_at"],
                row["max_depth"],
                row["on_full"],
            )
            for row in await self._run("list_queues", queues=list(counts))
        ]

    async def count_tenant(self, tenant: str, most: int) -> dict[tuple[str, JobState], int]:
        rows = await self._run("count_tenant", tenant=tenant, most=most)
        return {(row["queue"], JobState(row["state"])): row["n"] for row in rows}

    async def list_ready_kinds(self, limit: int = 100) -> list[ReadyKind]:
        return [ReadyKind(**row) for row in await self._run("list_ready_kinds", limit=limit)]

    async def fold_counts(self) -> None:
        await self._run("fold_counts")

    async def list_errors(
        self, queue: str | None = None, limit: int = 50, *, newest: int | None = None
    ) -> list[ErrorCount]:
        return [
            ErrorCount(row["error"], row["n"], row["first_at"], row["last_at"], str(row["example"]))
            for row in await self._run("list_errors", queue=queue, limit=limit, newest=newest)
        ]

    async def pause_queue(self, name: str) -> None:
        await self._run("pause_queue", name=name)

    async def resume_queue(self, name: str) -> None:
        await self._run("resume_queue", name=name)
        self._tell([name])

    async def set_queue(self, name: str, max_depth: int | None, on_full: OnFull) -> None:
        await self._run("set_queue", name=name, max_depth=max_depth, on_full=on_full)
