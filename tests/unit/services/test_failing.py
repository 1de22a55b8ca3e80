"""Failed jobs that failed for one reason are counted and tried again together."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from windrow import Queue
from windrow.queue.job import NewJob
from windrow.services.failing import (
    ErrorCounts,
    count_errors,
    pattern_of,
    retry_failed,
    retry_pattern,
)
from windrow.services.tenant_queue import TenantQueue


@pytest.mark.parametrize(
    ("error", "pattern"),
    [
        (
            "ValueError: no such image: https://a.org/x/image-57.png",
            "ValueError: no such image: <url>",
        ),
        ("frame 12 of 99.5 s is broken", "frame <number> of <number> s is broken"),
        ("no user 'Ann O.' in \"barn\"", "no user '…' in \"…\""),
        ("job 01a1ebac-962b-74e8-8f11-7daf47ecb365 is lost", "job <id> is lost"),
        ("blob da39a3ee5e6b4b0d3255bfef95601890afd80709 has gone", "blob <id> has gone"),
        ("it can't be, it isn't", "it can't be, it isn't"),
        ("utf8 and sha256 are names", "utf8 and sha256 are names"),
        ("SCRAPE_DNS_RESOLUTION_ERROR: a.org", "SCRAPE_DNS_RESOLUTION_ERROR: a.org"),
        ("", ""),
    ],
)
def test_pattern_leaves_out_what_is_the_jobs_alone(error: str, pattern: str) -> None:
    assert pattern_of(error) == pattern


@pytest.mark.parametrize(
    "bad", ["'" * 5000, "a1" * 5000, "http://" * 2000, "1." * 5000, "a" * 9999]
)
def test_pattern_of_a_hostile_error_takes_a_moment(bad: str) -> None:
    begun = time.thread_time()  # not what others did meanwhile
    pattern_of(bad)
    assert time.thread_time() - begun < 0.1


@pytest.fixture
async def queue(store_url: str) -> AsyncIterator[Queue]:
    async with Queue.open(store_url) as opened:
        yield opened


async def fail(queue: Queue, errors: list[str], tenant: str | None = None) -> None:
    await queue.enqueue_many([NewJob("work", {}, tenant=tenant) for _ in errors])
    lease = await queue.claim(limit=len(errors))
    for job, error in zip(lease.jobs, errors, strict=True):
        await lease.fail(job, error, retry=False)


async def test_errors_that_differ_by_a_number_are_one_and_run_again_together(queue: Queue) -> None:
    await fail(queue, [f"no image {n} there" for n in range(20)])
    await fail(queue, ["no image at all there", "no image 5 there, nor here", "500", "500"])
    await fail(queue, [f"no image {n} there" for n in range(3)], tenant="acme")
    everybody, acme = TenantQueue(queue, None), TenantQueue(queue, "acme")

    first, second, *rest = (await count_errors(everybody, limit=10)).patterns
    assert (first.title, first.count) == ("no image <number> there", 23)
    assert (second.title, second.count) == ("500", 2)  # alike to the letter
    assert [one.count for one in rest] == [1, 1]
    assert pattern_of(first.error) == first.pattern
    assert (await queue.get(first.example)).error == first.error
    [own] = (await count_errors(acme, limit=10)).patterns
    assert (own.title, own.count) == ("no image <number> there", 3)

    assert await retry_pattern(acme, own.pattern) == 3
    assert await retry_pattern(everybody, first.pattern) == 20
    assert len(await queue.list(state="failed")) == 4
    assert await retry_pattern(everybody, second.pattern) == 2
    assert await retry_failed(acme) == 0
    assert await retry_failed(everybody) == 2
    assert await count_errors(everybody, limit=10) == ErrorCounts([], 5_000)
