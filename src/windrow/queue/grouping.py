"""The part of `Queue` that makes groups and steers them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Literal, get_args

from windrow.db.codec import clean_text
from windrow.errors import GroupNotFound, InvalidJob
from windrow.ids import new_id, plain_id
from windrow.queue import checks
from windrow.queue.checks import SizeLimits, check_id, check_name, hash_group_key, to_row
from windrow.queue.job import Job, NewJob
from windrow.queue.records import Group, GroupFilter, GroupRow, GroupState, JobRow
from windrow.queue.store import Store


class Grouping:
    store: Store
    _limits: SizeLimits
    _owned: Callable[[JobRow], JobRow]

    async def create_group(
        self,
        *,
        then: NewJob | None = None,
        root: Job | str | None = None,
        hold: bool = False,
        tenant: str | None = None,
        retention: float | timedelta | None = None,
        max_jobs: int | None = None,
        id: str | None = None,
    ) -> Group:
        """A group of jobs that end together. Give its id to jobs as `group=`.

        It ends when its last member has; then `then` is enqueued, once. With `hold` it does not end
        before `close_group`, however few members it has. With `root`, a running job's, that job
        waits for the group when it is done and carries the progress; asked for twice it is the same
        group. With `max_jobs` it takes so many jobs, ever, and leaves out the rest. The `id` may be
        one that the caller made.
        """
        return await self.store.create_group(
            GroupRow(
                id=check_id(id, "id") or new_id(),
                tenant=self.store.tenant if tenant is None else check_name(tenant, "tenant"),
                root=root.id if isinstance(root, Job) else check_id(root, "root"),
                then=None if then is None else self._owned(to_row(then, self._limits)),
                is_open=hold,
                retention_seconds=checks.check_retention(retention),
                max_jobs=None
                if max_jobs is None
                else checks.check_integer(max_jobs, "max_jobs", 1),
            )
        )

    async def keep_group_keys(
        self, group_id: str, keys: Iterable[str], *, job: Job | str
    ) -> set[str]:
        """Take keys of a group for a job that has another one, or none: no job comes in with them
        any more. Those of them that are this job's, taken now or before. Raises GroupNotFound."""
        by_hash = {hash_group_key(key): key for key in keys}
        job_id = job.id if isinstance(job, Job) else check_id(job, "job")
        if job_id is None:
            raise InvalidJob("keys are kept for a job: give its id")
        kept = await self.store.keep_group_keys(plain_id(group_id), sorted(by_hash), job_id)
        return {by_hash[one] for one in kept}

    async def add_group_notes(self, group_id: str, subject: str, texts: Iterable[str]) -> None:
        """Note texts of a group for whoever looks at it later, at once and each once. They go when
        the group does. `job.tx.note` does it together with the completion of a job."""
        await self.store.add_group_notes(
            plain_id(group_id),
            check_name(subject, "subject"),
            sorted({clean_text(text) for text in texts}),
        )

    async def group_notes(
        self, group_id: str, subject: str, *, after: str = "", limit: int = 1000
    ) -> list[str]:
        """What jobs of a group noted on a subject with `job.tx.note`, a page of it; `after` is the
        last one of the page before."""
        return await self.store.list_group_notes(
            plain_id(group_id),
            check_name(subject, "subject"),
            after=after,
            limit=checks.check_integer(limit, "limit", 1),
        )

    async def group(self, group_id: str) -> Group:
        """A group with the number of its members in each state. Raises GroupNotFound."""
        found = await self.store.get_group(plain_id(group_id))
        if found is None:
            raise GroupNotFound(group_id)
        return found

    async def groups(
        self,
        *,
        state: GroupState | None = None,
        is_paused: Literal[True] | None = None,
        tenant: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[Group]:
        """Groups, newest first. `after` is the id of the last group of the page before. Members are
        counted once they have ended; `pending` are the others, and `group` tells their states."""
        if state not in (None, *get_args(GroupState)):
            known = ", ".join(get_args(GroupState))
            raise InvalidJob(f"{state!r} is no state of a group; the states are: {known}")
        return await self.store.list_groups(
            GroupFilter(state, is_paused, tenant),
            after=check_id(after, "after"),
            limit=checks.check_integer(limit, "limit", 1),
        )

    async def close_group(self, group_id: str) -> Group:
        """Hold the group open no longer: it ends as soon as no member is left to run."""
        return await self.store.close_group(plain_id(group_id))

    async def pause_group(self, group_id: str) -> Group:
        """Stop claims of the group's jobs; running ones go on."""
        return await self.store.pause_group(plain_id(group_id))

    async def resume_group(self, group_id: str) -> Group:
        """Go on with a paused group."""
        return await self.store.resume_group(plain_id(group_id))

    async def cancel_group(self, group_id: str, *, reason: str = "group cancelled") -> Group:
        """Cancel what waits, tell what runs, take no more members."""
        return await self.store.cancel_group(plain_id(group_id), clean_text(reason))
