"""From documents to the index: the jobs that have a content written, labelled anew, or removed."""

from __future__ import annotations

from collections.abc import Iterable

from windrow.pipelines.index.tidying import write_job
from windrow.queue.job import NewJob


def write_jobs(
    contents: Iterable[str | None], *, tenant: str | None, priority: int
) -> list[NewJob]:
    """A job for each content that documents wait for; none where there is no content."""
    return [write_job(one, tenant, priority) for one in dict.fromkeys(contents) if one is not None]


def label_jobs(contents: Iterable[str], *, tenant: str | None, priority: int) -> list[NewJob]:
    """A job for each content whose documents are called something else now."""
    return write_jobs(contents, tenant=tenant, priority=priority)
