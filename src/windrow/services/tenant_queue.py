"""`TenantQueue`: the queue as one caller may use it, a tenant or (None) somebody who sees all.

What another tenant has is not there: it is neither found, listed, claimed nor changed. The checks
are made here, on any store; on Postgres row-level security makes them once more for those who
connect to the database themselves.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from windrow.errors import DuplicateJob, GroupNotFound, InvalidJob, JobNotFound, NotPermitted
from windrow.ids import plain_id
from windrow.pipelines.knowledge.items import OPERATIONS
from windrow.queue.job import Job, NewJob
from windrow.queue.queue import Queue
from windrow.queue.records import Change, Group, Inserted, LimitInfo, QueueInfo
from windrow.redaction import restore

# Kinds whose handlers trust what stands in the payload: the services for them write it.
OWN_KINDS: Final = (
    *("web.", "nuq.", "webhook.", "knowledge.", "video.", "call.", "source.", "index."),
    *(f"{item_type}." for item_type in OPERATIONS),  # which read files, and remove what there is
)
TENANT_KEY: Final = "tenant:"
MOST_COUNTED: Final = 10_000


class TenantQueue:
    def __init__(self, queue: Queue, tenant: str | None, *, is_admin: bool = False) -> None:
        self.queue = queue
        self.tenant = tenant
        # Whose word is the operator's: who sees all and may do all.
        self._is_operator = tenant is None and is_admin

    async def enqueue(self, job: NewJob) -> Job:
        """Raises DuplicateJob, QueueFull, GroupNotFound, GroupEnded, InvalidJob, NotPermitted."""
        [owned] = await self.own([job])
        return await self.queue.enqueue(**msgspec.structs.asdict(owned))

    async def enqueue_many(self, jobs: Sequence[NewJob]) -> builtins.list[Inserted]:
        """All of them in one transaction, or none; an outcome for each."""
        return await self.queue.enqueue_many(await self.own(jobs))

    async def get(self, job_id: str) -> Job:
        """Raises JobNotFound."""
        job = await self.queue.get(job_id)
        if not self.owns(job.tenant):
            raise JobNotFound(job_id)
        return job

    async def get_all(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """All of these. Raises JobNotFound, which names those that are not there."""
        found = await self.queue.get_many(job_ids)
        wanted = [plain_id(job_id) for job_id in job_ids]
        missing = [
            job_id
            for job_id in wanted
            if job_id not in found or not self.owns(found[job_id].tenant)
        ]
        if missing:
            raise JobNotFound(*missing)
        return found

    async def list(self, *, tenant: str | None = None, **wanted: Any) -> builtins.list[Job]:
        """Jobs, newest first; the filters are those of `Queue.list`."""
        return await self.queue.list(tenant=self.narrow(tenant), **wanted)

    async def list_limits(self) -> builtins.list[LimitInfo]:
        """The limits in use; of a tenant its own. What is held is not counted."""
        found = await self.queue.store.list_limits(counts_held=False)
        own = None if self.tenant is None else f"{TENANT_KEY}{self.tenant}"
        return [one for one in found if one.taken and own in (None, one.key)]

    async def list_queues(self, *, most: int = MOST_COUNTED) -> builtins.list[QueueInfo]:
        """Every queue with its counts; of a tenant those its newest jobs are in, of which `most`
        are counted."""
        infos = await self.queue.queues()
        if self.tenant is None:
            return infos
        counted = await self.queue.store.count_tenant(self.tenant, most)
        own = {queue for queue, _ in counted}
        return [
            msgspec.structs.replace(
                info,
                counts={state: n for (queue, state), n in counted.items() if queue == info.name},
                oldest_ready_at=None,  # it may be somebody else's
            )
            for info in infos
            if info.name in own
        ]

    async def cancel(self, job_id: str, reason: str) -> Change:
        await self.get(job_id)
        return await self.queue.cancel(job_id, reason=reason)

    async def retry(self, job_id: str, *, from_start: bool = False) -> Change:
        await self.get(job_id)
        return await self.queue.retry(job_id, from_start=from_start)

    async def pause_job(self, job_id: str) -> Change:
        await self.get(job_id)
        return await self.queue.pause_job(job_id)

    async def resume_job(self, job_id: str) -> Change:
        await self.get(job_id)
        return await self.queue.resume_job(job_id)

    async def edit(self, job_id: str, changes: Mapping[str, Any]) -> Job:
        """Those things that `Queue.edit` takes, of a job that is not running."""
        job = await self.get(job_id)
        changes = dict(changes)
        self._check_kind(job.kind)
        if "kind" in changes:
            self._check_kind(changes["kind"])
        if "limits" in changes:
            changes["limits"] = self._limits(changes["limits"])
        if "payload" in changes:
            changes["payload"] = restore(changes["payload"], job.payload)
        return await self.queue.edit(job_id, **changes)

    async def delete(self, job_id: str) -> Change:
        await self.get(job_id)
        return await self.queue.delete(job_id)

    async def pause(self, queue: str) -> None:
        """Raises NotPermitted for a tenant: others have jobs there too."""
        self._check_sees_all("pause a queue")
        await self.queue.pause(queue)

    async def resume(self, queue: str) -> None:
        self._check_sees_all("resume a queue")
        await self.queue.resume(queue)

    async def create_group(
        self, *, then: NewJob | None = None, root: str | None = None, **options: Any
    ) -> Group:
        """The options are those of `Queue.create_group`."""
        tenant = self.narrow(options.pop("tenant", None))
        if root is not None:
            await self.get(root)
        if then is not None:
            [then] = await self.own([then])
        return await self.queue.create_group(then=then, root=root, tenant=tenant, **options)

    async def group(self, group_id: str) -> Group:
        """Raises GroupNotFound."""
        group = await self.queue.group(group_id)
        if not self.owns(group.tenant):
            raise GroupNotFound(group_id)
        return group

    async def groups(self, *, tenant: str | None = None, **wanted: Any) -> builtins.list[Group]:
        """Groups, newest first; the filters are those of `Queue.groups`."""
        return await self.queue.groups(tenant=self.narrow(tenant), **wanted)

    async def close_group(self, group_id: str) -> Group:
        await self.group(group_id)
        return await self.queue.close_group(group_id)

    async def pause_group(self, group_id: str) -> Group:
        await self.group(group_id)
        return await self.queue.pause_group(group_id)

    async def resume_group(self, group_id: str) -> Group:
        await self.group(group_id)
        return await self.queue.resume_group(group_id)

    async def cancel_group(self, group_id: str, reason: str) -> Group:
        await self.group(group_id)
        return await self.queue.cancel_group(group_id, reason=reason)

    def owns(self, tenant: str | None) -> bool:
        return self.tenant is None or tenant == self.tenant

    def narrow(self, tenant: str | None) -> str | None:
        """The tenant that is meant: the caller's own, unless it sees all."""
        if tenant is not None and not self.owns(tenant):
            raise NotPermitted(f"this key is for the tenant {self.tenant!r} only")
        return tenant if self.tenant is None else self.tenant

    async def own(self, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
        """New jobs as this caller may enqueue them: a tenant's are its own, in its own groups,
        and count under its own limit."""
        for job in jobs:
            self._check_kind(job.kind)
        if self.tenant is None:
            return jobs
        for group_id in {job.group for job in jobs if job.group is not None}:
            await self.group(group_id)
        await self._check_ids([job.id for job in jobs if job.id is not None])
        return [self._owned(job) for job in jobs]

    def _owned(self, job: NewJob) -> NewJob:
        return msgspec.structs.replace(
            job, tenant=self.narrow(job.tenant), limits=self._limits(job.limits or ())
        )

    def _limits(self, given: Sequence[str]) -> Sequence[str]:
        """With the tenant's own key first, by which tenants take turns. The keys of other tenants
        would use up what these may run."""
        if self.tenant is None:
            return given
        own = f"{TENANT_KEY}{self.tenant}"
        for key in given:
            if isinstance(key, str) and key.startswith(TENANT_KEY) and key != own:
                raise NotPermitted(f"limits: {key!r} is of another tenant")
        return [own, *(key for key in given if key != own)]

    async def _check_ids(self, job_ids: Sequence[str]) -> None:
        """An id that is taken is answered with the job that has it, so it must be the caller's."""
        for job_id, job in (await self.queue.get_many(job_ids)).items():
            if not self.owns(job.tenant):
                raise DuplicateJob(job_id, job_id)

    def _check_kind(self, kind: str) -> None:
        """Windrow's own jobs read files of the machine, and remove what there is of a tenant."""
        if not self._is_operator and isinstance(kind, str) and kind.startswith(OWN_KINDS):
            raise InvalidJob(
                f"jobs of the kind {kind!r} are made by Windrow: ask for what they do, or enqueue "
                "them with an admin's key of all tenants"
            )

    def _check_sees_all(self, what: str) -> None:
        if self.tenant is not None:
            raise NotPermitted(f"to {what} takes a key of all tenants: others have jobs there too")
