"""`Sweeper`: rows that no job is at work for.

    sweeper = Sweeper(calls, queue, columns=["file"])
    await sweeper.schedule(every=60)
    await Worker(queue, [*calls.handlers, sweeper.handler]).run()

A row whose last job ended badly without a word to it, because its workers died or somebody
cancelled it, says that it failed, and why. One that has no job, because whoever wrote it had no
time to enqueue one, gets one: its payload is the row's key and the named columns. Both can be done
twice and at any time: a row's jobs have one unique key, and a row is changed only if it still says
what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from windrow.errors import ConfigError
from windrow.pipelines.chain import Chain, StatusRow, check_column
from windrow.queue.job import LIVE, Job, JobState, NewJob
from windrow.queue.outcome import Done
from windrow.queue.queue import Queue
from windrow.worker.registry import Handler, handler

EVERY_SECONDS: Final = 60
PAGE: Final = 200  # rows looked at in one go
QUEUE: Final = "sweeping"
_EVERY: Final = "every"  # how often it is done, of a job that brings the next one
_MOST_ATTEMPTS: Final = 1000  # of those: were one to fail, there would be no next one
_DEAD: Final = (JobState.FAILED, JobState.CANCELLED)


class Sweeper:
    def __init__(
        self,
        chain: Chain,
        queue: Queue,
        *,
        columns: Sequence[str] = (),
        begin: Callable[[dict[str, Any]], NewJob] | None = None,
    ) -> None:
        """`begin` makes the job of a row, by its payload: if it is not as `chain.begin` does."""
        if chain.status is None:
            raise ConfigError(f"the chain {chain.name!r} has no status row to be swept")
        self._chain = chain
        self._row: StatusRow = chain.status
        self._queue = queue
        self._columns = [check_column(name) for name in columns]
        self._begin = begin or chain.begin
        self.kind = f"{chain.name}.sweep"
        self.handler = self._make_handler()

    async def schedule(self, every: float = EVERY_SECONDS) -> None:
        """Have it done again and again, by whichever worker has the handler."""
        await plan_sweeps(self._queue, self.kind, every)

    async def sweep(self, job: Job) -> Done:
        """One look at all rows that are under way; its changes are those of the job."""
        begun: list[NewJob] = []
        failed = 0
        for row in await self._rows():
            last = await self._last_job(row)
            if last is not None and not last.is_finished:
                continue
            if last is not None and last.state in _DEAD:
                await job.tx.execute(*self._fail(row, last))
                failed += 1
            else:
                begun.append(self._begin(self._payload(row)))
        return Done(
            {"begun": len(begun), "failed": failed}, then=[*begun, *_next_sweep(self._queue, job)]
        )

    def _make_handler(self) -> Handler:
        @handler(self.kind, queue=QUEUE, max_attempts=1)
        async def run(job: Job) -> Done:
            return await self.sweep(job)

        return run

    async def _rows(self) -> list[dict[str, Any]]:
        """Rows that say neither that they are done nor that they failed."""
        row = self._row
        statuses = [row.pending, *(one.status for one in self._chain if one.status)]
        wanted = ", ".join(f"${place}" for place, _ in enumerate(statuses, 1))
        columns = ", ".join([row.key, row.column, *self._columns])
        select = f"select {columns} from {row.table} where {row.column} in ({wanted})"  # noqa: S608 - names of the application, values bound
        order = f"order by {row.key} limit {PAGE}"
        found: list[dict[str, Any]] = []
        page = await self._queue.store.fetch_rows(f"{select} {order}", *statuses)
        while page:
            found += page
            after = f"and {row.key} > ${len(statuses) + 1}"
            last = page[-1][row.key]
            page = (
                await self._queue.store.fetch_rows(f"{select} {after} {order}", *statuses, last)
                if len(page) == PAGE
                else []
            )
        return found

    async def _last_job(self, row: Mapping[str, Any]) -> Job | None:
        """A live one, if there is any; else the latest."""
        key = self._chain.key_of(self._payload(row))
        live = await self._queue.list(unique=key, state=list(LIVE), limit=1)
        if live:
            return live[0]
        dead = await self._queue.list(unique=key, limit=PAGE)
        return max(dead, key=lambda job: job.seq, default=None)

    def _fail(self, row: Mapping[str, Any], job: Job) -> tuple[Any, ...]:
        why = job.error or f"its job was {job.state.value}"
        statement, *values = self._row.update(self._payload(row), job.tenant, self._row.failed, why)
        seen = f" and {self._row.column} = ${len(values) + 1}"
        return f"{statement}{seen}", *values, row[self._row.column]

    def _payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        columns = {name: _plain(row[name]) for name in self._columns}
        return {self._row.field: _plain(row[self._row.key]), **columns}


async def plan_sweeps(queue: Queue, kind: str, every: float) -> None:
    """Have a sweeper's jobs run again and again: by a schedule, or, where there are none, by jobs
    that each bring the next."""
    if queue.store.capabilities.schedules:
        await queue.schedule(kind, kind, every=every, queue=QUEUE, unique=kind, retention=every)
    else:
        await queue.enqueue_many([_sweep_job(kind, every)])


def _next_sweep(queue: Queue, job: Job) -> list[NewJob]:
    """What follows a sweep where no schedule brings it. The job may have come from a store of the
    other kind: then it ends here what it was there, or begins it."""
    if queue.store.capabilities.schedules:
        return []
    return [_sweep_job(job.kind, (job.payload or {}).get(_EVERY, EVERY_SECONDS))]


def _sweep_job(kind: str, every: float) -> NewJob:
    return NewJob(
        kind,
        {_EVERY: every},
        queue=QUEUE,
        unique=kind,
        delay=every,
        retention=every,
        max_attempts=_MOST_ATTEMPTS,
    )


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value
