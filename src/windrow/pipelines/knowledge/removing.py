"""`delete_document.delete` and `delete_tenant.delete`: somebody wants it gone."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from typing import Final

from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentInfo
from windrow.errors import InvalidJob, ScheduleNotFound
from windrow.ingest.files.names import to_normal_path
from windrow.pipelines.index.tidying import tidy_job
from windrow.pipelines.knowledge.context import (
    Item,
    Knowledge,
    branch_of,
    enclosing,
    sources_of,
    uri_below,
)
from windrow.pipelines.knowledge.items import DeleteDocumentPayload, DeleteTenantPayload
from windrow.pipelines.knowledge.refreshing import REFRESH
from windrow.queue.job import LIVE, Job, JobState
from windrow.queue.outcome import Done, Outcome, Snooze

RUNNING_SECONDS: Final = 1.0  # before another look whether a tenant's running jobs have ended
PAGE: Final = 1000


async def delete_document(knowledge: Knowledge, job: Job, payload: DeleteDocumentPayload) -> Done:
    """Its chunks are known by it: `point_ids` are not needed."""
    item = Item.of(job)
    found = await _find(knowledge, item, payload.document_id)
    if not found:
        return Done({"dropped": f"there is no document {payload.document_id}"})
    await Catalog(knowledge.queue.database).documents.delete([document.id for document in found])
    return Done({"deleted": len(found)}, then=[tidy_job()])


async def delete_tenant(knowledge: Knowledge, job: Job, payload: DeleteTenantPayload) -> Outcome:
    """Everything of a tenant: first its work, then, when nothing of it runs any more, its rows."""
    tenant = payload.tenant_id_to_delete
    if not tenant:
        raise InvalidJob("tenant_id_to_delete is empty")
    if job.tenant not in (None, "", tenant):
        raise InvalidJob(f"a job of tenant {job.tenant} cannot delete tenant {tenant}")
    cancelled = await _cancel(knowledge, job, tenant)
    if await _is_running(knowledge, job, tenant):
        return Snooze(RUNNING_SECONDS)
    await _unplan(knowledge, tenant)
    deleted = await Catalog(knowledge.queue.database).sources.delete_tenant(tenant)
    return Done({"deleted": deleted, "cancelled": cancelled}, then=[tidy_job()])


async def _find(knowledge: Knowledge, item: Item, named: str) -> list[DocumentInfo]:
    """A document by its id, or by the path of its file."""
    catalog = Catalog(knowledge.queue.database)
    try:
        found = await catalog.documents.get([str(uuid.UUID(named))])
    except ValueError:
        path = to_normal_path(named)
        source = enclosing(await sources_of(knowledge, item), path)
        if source is None:
            return []
        uri = uri_below(source, path)
        at = await catalog.documents.find(source.tenant, source.collection, source.id, [uri])
        branch = await asyncio.to_thread(branch_of, path, item.branch)
        found = [document for document in at if document.branch == branch]
    return [document for document in found if (document.tenant or "") == (item.tenant or "")]


async def _cancel(knowledge: Knowledge, job: Job, tenant: str) -> int:
    """Cancel all that waits or runs for a tenant, but for the job that does this."""
    queue = knowledge.queue
    cancelled, after = 0, None
    while page := await queue.list(tenant=tenant, state=list(LIVE), after=after, limit=PAGE):
        after = page[-1].id
        ids = [one.id for one in page if one.id != job.id]
        changes = await queue.store.cancel_jobs(ids, f"tenant {tenant} is deleted")
        cancelled += sum(1 for one in changes.values() if one.before and not one.is_refused)
    return cancelled


async def _unplan(knowledge: Knowledge, tenant: str) -> None:
    """None of its sources is looked at again by itself."""
    queue = knowledge.queue
    if queue.store.capabilities.schedules:
        for one in await queue.schedules():
            if one.job.kind == REFRESH and one.job.tenant == tenant:
                with suppress(ScheduleNotFound):
                    await queue.unschedule(one.name)


async def _is_running(knowledge: Knowledge, job: Job, tenant: str) -> bool:
    running = await knowledge.queue.list(tenant=tenant, state=JobState.ACTIVE, limit=2)
    return any(one.id != job.id for one in running)
