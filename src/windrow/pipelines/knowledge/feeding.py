"""From documents to the index: the jobs that have a content written, labelled anew, or removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from windrow.queue.job import NewJob

QUEUE: Final = "index"
WRITE: Final = "index.write"
TIDY: Final = "index.tidy"


def write_jobs(contents: Iterable[str], *, tenant: str | None, priority: int) -> list[NewJob]:
    """A job for each content that documents wait for."""
    return [
        NewJob(
            WRITE,
            {"content": content},
            queue=QUEUE,
            priority=priority,
            tenant=tenant,
            unique=f"{WRITE}:{content}",
            on_conflict="follow",
        )
        for content in dict.fromkeys(contents)
    ]


def label_jobs(contents: Iterable[str], *, tenant: str | None, priority: int) -> list[NewJob]:
    """A job for each content whose documents are called something else now."""
    return write_jobs(contents, tenant=tenant, priority=priority)


def tidy_job() -> NewJob:
    """Have what no document names any more removed; one that waits is enough."""
    return NewJob(TIDY, {}, queue=QUEUE, unique=TIDY, on_conflict="follow")
