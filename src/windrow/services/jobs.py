"""Looking at jobs, and removing finished ones."""

from __future__ import annotations

from typing import Any

from windrow.queue.job import Job, JobState
from windrow.queue.queue import Opening, Queue
from windrow.queue.records import Pruned
from windrow.settings import Settings


def open_queue(settings: Settings) -> Opening:
    """The queue the settings name. Nothing is made or upgraded here: `windrow db migrate` does."""
    return Queue.open(
        settings.database_url,
        migrate=False,
        max_payload=settings.max_payload_bytes,
        max_result=settings.max_result_bytes,
        archive_dir=settings.archive_dir or None,
        max_disk_bytes=settings.max_disk_bytes or None,
        direct_url=settings.database_direct_url or None,
        notifier=settings.notifier or None,
    )


async def list_jobs(settings: Settings, **wanted: Any) -> list[Job]:
    """Jobs, newest first; the filters are those of `Queue.list`."""
    async with open_queue(settings) as queue:
        return await queue.list(**wanted)


async def get_job(settings: Settings, job_id: str) -> Job:
    """One job with everything it has. Raises JobNotFound."""
    async with open_queue(settings) as queue:
        return await queue.get(job_id)


async def clean_jobs(settings: Settings, **wanted: Any) -> dict[str, dict[JobState, int]]:
    """Delete finished jobs, or count them; the filters are those of `Queue.clean`."""
    async with open_queue(settings) as queue:
        return await queue.clean(**wanted)


async def prune_jobs(settings: Settings, archive: str | None = None) -> Pruned:
    """Remove what is past its time, and what is too much for the disk budget."""
    async with open_queue(settings) as queue:
        return await queue.prune(archive=archive)
