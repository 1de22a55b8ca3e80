"""Failed jobs by the pattern of their error: counted, and tried again together.

A pattern is the error without what is its job's alone: numbers, ids, addresses and what stands in
quotes. Jobs that failed for one reason have one pattern.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from windrow.queue.job import Job, JobState
from windrow.queue.records import ErrorCount
from windrow.services.listing import list_page
from windrow.services.tenant_queue import TenantQueue

NEWEST: Final = 5_000  # failed jobs that are counted while somebody waits for it
NEWEST_OF_TENANT: Final = 1_000  # these are read to be counted
PAGE: Final = 1_000
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_LONGEST: Final = 1_000  # characters of an error that its pattern is made of

# The first that fits counts, so an id in an address is a part of the address.
_PARTS: Final = re.compile(
    r"""(?P<url>\b[a-z][a-z0-9+.-]{1,20}://[^\s<>"')\]]+)
      | (?P<quoted>(?<!\w)'[^'\n]{1,300}'(?!\w) | "[^"\n]{1,300}" | `[^`\n]{1,300}`)
      | (?P<id>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b
             | \b(?=[a-z]{0,40}\d)(?=\d{0,40}[a-z])[0-9a-z]{12,64}\b)
      | (?P<number>(?<![a-z0-9])\d+(?:[.,:]\d+)*)""",
    re.VERBOSE | re.IGNORECASE,
)


class ErrorPattern(msgspec.Struct, frozen=True):
    """Failed jobs whose errors have one pattern."""

    pattern: str
    count: int
    first_at: datetime
    last_at: datetime
    example: str  # a job id
    error: str  # that job's
    texts: int = 1  # different errors that have it

    @property
    def title(self) -> str:
        return self.error if self.texts == 1 else self.pattern

    @property
    def words(self) -> str:
        """The longest part that all of their errors have."""
        return words_of(self.pattern)


class ErrorCounts(msgspec.Struct, frozen=True):
    """Of how many failed jobs, the newest, the patterns are at most; and if there was no time to
    look for so many, the job up to which was looked."""

    patterns: list[ErrorPattern]
    newest: int
    reached: str | None = None


def pattern_of(error: str) -> str:
    """`no such image: <url>`, `page <number> of '…'`."""
    return _PARTS.sub(_placeholder, error[:_LONGEST])


def _placeholder(found: re.Match[str]) -> str:
    if found.lastgroup == "quoted":
        return f"{found[0][0]}…{found[0][-1]}"
    return f"<{found.lastgroup}>"


def words_of(pattern: str) -> str:
    return max(re.split(r"<(?:url|id|number)>|…", pattern), key=len).strip()


async def count_errors(jobs: TenantQueue, *, limit: int) -> ErrorCounts:
    """The most frequent patterns of the newest failed jobs."""
    if jobs.tenant is None:
        counted = await jobs.queue.errors(limit=NEWEST, newest=NEWEST)
        return ErrorCounts((await group_errors(counted))[:limit], NEWEST)
    # No index has the failed jobs of a tenant: they are looked for among its own.
    wanted = {"state": JobState.FAILED}
    page = await list_page(jobs, wanted, after=None, limit=NEWEST_OF_TENANT)
    patterns = (await group_errors(_count(page.jobs)))[:limit]
    return ErrorCounts(patterns, NEWEST_OF_TENANT, page.after if page.is_cut_short else None)


async def group_errors(counted: Sequence[ErrorCount]) -> list[ErrorPattern]:
    """Errors that were counted each, by their patterns, the most frequent first."""
    # Some twenty microseconds each, and there may be as many different ones as jobs.
    return await asyncio.to_thread(_group, counted)


def _group(counted: Iterable[ErrorCount]) -> list[ErrorPattern]:
    by_pattern: dict[str, list[ErrorCount]] = {}
    for one in counted:
        by_pattern.setdefault(pattern_of(one.error), []).append(one)
    grouped = [_joined(pattern, alike) for pattern, alike in by_pattern.items()]
    return sorted(grouped, key=lambda one: (one.count, one.last_at), reverse=True)


def _joined(pattern: str, alike: Sequence[ErrorCount]) -> ErrorPattern:
    newest = max(alike, key=lambda one: one.last_at)
    return ErrorPattern(
        pattern=pattern,
        count=sum(one.count for one in alike),
        first_at=min(one.first_at for one in alike),
        last_at=newest.last_at,
        example=newest.example,
        error=newest.error,
        texts=len(alike),
    )


def _count(failed: Iterable[Job]) -> list[ErrorCount]:
    by_error: dict[str, list[Job]] = {}
    for job in failed:
        by_error.setdefault(job.error or "", []).append(job)
    return [
        ErrorCount(error, len(same), min(times), max(times), same[0].id)
        for error, same in by_error.items()
        if (times := [job.finished_at or _LONG_AGO for job in same])
    ]


async def retry_pattern(jobs: TenantQueue, pattern: str) -> int:
    """Run every failed job whose error has just this pattern again; how many."""
    return await _retry(jobs, words_of(pattern) or None, pattern)


async def retry_failed(jobs: TenantQueue) -> int:
    """Run every failed job again; how many."""
    return await _retry(jobs, None, None)


async def _retry(jobs: TenantQueue, words: str | None, pattern: str | None) -> int:
    count, after = 0, None
    while page := await jobs.list(state=JobState.FAILED, error=words, after=after, limit=PAGE):
        after = page[-1].id
        meant = [job.id for job in page if pattern in (None, pattern_of(job.error or ""))]
        changes = await jobs.queue.store.retry_jobs(meant) if meant else {}
        count += sum(not one.is_refused for one in changes.values() if one.before)
    return count
