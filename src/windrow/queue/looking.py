"""The part of `Queue` that looks at jobs and queues."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from windrow.errors import InvalidJob, JobNotFound
from windrow.ids import plain_id
from windrow.queue import checks
from windrow.queue.checks import check_job_id
from windrow.queue.job import Job, JobState, Step
from windrow.queue.records import ErrorCount, JobFilter, QueueInfo, WorkerInfo
from windrow.queue.store import Store


class Looking:
    store: Store

    async def get(self, job_id: str) -> Job:
        """One job with everything it has. Raises JobNotFound."""
        found = await self.store.get_jobs([plain_id(job_id)])
        if not found:
            raise JobNotFound(job_id)
        return next(iter(found.values()))

    async def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """Many jobs by id, in one query; those that are not there are left out."""
        return await self.store.get_jobs([plain_id(job_id) for job_id in job_ids])

    async def list(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        state: JobState | str | Sequence[JobState | str] | None = None,
        tenant: str | None = None,
        group: str | None = None,
        tag: str | None = None,
        error: str | None = None,
        unique: str | None = None,
        text: str | None = None,
        since: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> builtins.list[Job]:
        """Jobs, newest first. `error` and `text` are parts of the failure's text and of the
        payload's JSON, in any case. `after` is the id of the last job of the page before, `since`
        that of the oldest to look at. Results and error histories are left out: `get` has them."""
        is_foreign = self.store.capabilities.foreign_ids
        since = check_job_id(since, "since", is_foreign=is_foreign)
        wanted = make_filter(
            queue=queue,
            kind=kind,
            state=state,
            tenant=tenant,
            group=group,
            tag=tag,
            error=error,
            unique=unique,
            since=since,
            text=text,
        )
        return await self.store.list_jobs(
            wanted,
            after=check_job_id(after, "after", is_foreign=is_foreign),
            limit=checks.check_integer(limit, "limit", 1),
        )

    async def steps(self, job_id: str) -> builtins.list[Step]:
        """What is kept of a job's steps, oldest first."""
        return await self.store.get_steps(plain_id(job_id))

    async def counts(self, queue: str | None = None) -> dict[str, int]:
        """How many jobs are in each state, in one queue or in all."""
        totals: dict[str, int] = dict.fromkeys(JobState, 0)
        for info in await self.store.list_queues():
            if queue is None or info.name == queue:
                for state, count in info.counts.items():
                    totals[state] += count
        return totals

    async def queues(self) -> builtins.list[QueueInfo]:
        """Every queue with its counts, whether it is paused, and its oldest ready job's time."""
        return await self.store.list_queues()

    async def errors(
        self, queue: str | None = None, *, limit: int = 50, newest: int | None = None
    ) -> builtins.list[ErrorCount]:
        """Failed jobs by their error, most frequent first: all of them, or the newest so many."""
        return await self.store.list_errors(queue, limit, newest=newest)

    async def workers(self) -> builtins.list[WorkerInfo]:
        """The workers that are alive, by name: what they take, how many jobs each runs."""
        return await self.store.list_workers()


def make_filter(
    *,
    state: JobState | str | Sequence[JobState | str] | None = None,
    group: str | None = None,
    **wanted: str | None,
) -> JobFilter:
    """What `Queue.list` is asked for, as stores take it. Raises InvalidJob."""
    plain_group = None if group is None else plain_id(group)
    return JobFilter(states=_states(state), group=plain_group, **wanted)


def _states(
    given: JobState | str | Sequence[JobState | str] | None,
) -> tuple[JobState, ...] | None:
    if given is None:
        return None
    listed = (given,) if isinstance(given, str) else tuple(given)
    try:
        return tuple(JobState(state) for state in listed)
    except ValueError as error:
        known = ", ".join(JobState)
        raise InvalidJob(f"{error}; the states are: {known}") from None
