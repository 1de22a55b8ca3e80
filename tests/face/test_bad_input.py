"""Bad input gets a clear error from errors.py and nothing is half-written."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from windrow import NewJob, Queue
from windrow.errors import InvalidJob, PayloadTooLarge, ResultTooLarge
from windrow.queue.job import JobState
from windrow.queue.store import Store

UGLY: dict[str, Any] = {
    "emoji": "👩🏽‍🚀 🇨🇭",
    "rtl": "שלום עולם ‏",
    "cjk": "日本語のテキスト 中文",
    "combining": "Z̸̢̛a̷l̴g̶o̵",
    "quotes": "'; DROP TABLE windrow.job; -- \" \\ $$ %s :name ? {}",
    "keys.with.dots": {"": "empty key", "a b": [None, True, -0.5, 1e300, 2**63 - 1]},
    "newlines": "a\r\nb\tc\u2028d\u2029e\x7f\x1b[31m",
}


async def nothing_is_there(queue: Queue) -> bool:
    return await queue.list() == [] and await queue.queues() == []


@pytest.mark.parametrize("payload", [object(), math.nan, {"a": [math.inf]}, {(1,): 2}])
async def test_a_payload_that_is_not_json_is_refused(queue: Queue, payload: Any) -> None:
    with pytest.raises(InvalidJob):
        await queue.enqueue("work", payload)
    assert await nothing_is_there(queue)


async def test_one_bad_job_in_bulk_refuses_all(queue: Queue) -> None:
    with pytest.raises(InvalidJob, match="kind"):
        await queue.enqueue_many([NewJob("good"), NewJob("")])
    assert await nothing_is_there(queue)


async def test_an_oversized_payload_is_refused_and_the_largest_allowed_is_kept(
    queue: Queue,
) -> None:
    with pytest.raises(PayloadTooLarge):
        await queue.enqueue("work", "x" * (4 * 1024 * 1024 - 1))
    assert await nothing_is_there(queue)
    largest = "x" * (4 * 1024 * 1024 - 2)
    made = await queue.enqueue("work", largest)
    assert (await queue.get(made.id)).payload == largest


async def test_the_limits_can_be_changed(store: Store) -> None:
    from windrow.queue.checks import SizeLimits

    queue = Queue(store, limits=SizeLimits(payload=100, result=100))
    with pytest.raises(PayloadTooLarge):
        await queue.enqueue("work", "x" * 100)
    await queue.enqueue("work")
    [job] = (lease := await queue.claim()).jobs
    with pytest.raises(ResultTooLarge):
        await lease.complete(job, "x" * 100)
    assert (await queue.get(job.id)).state == JobState.ACTIVE
    await lease.complete(job, "short")


async def test_a_result_over_one_mebibyte_is_kept_and_read_back(queue: Queue) -> None:
    big = {"text": "wörd " * 500_000}
    for _ in range(2):
        await queue.enqueue("work")
        [job] = (lease := await queue.claim()).jobs
        await lease.complete(job, big)
        assert (await queue.get(job.id)).result == big


@pytest.mark.parametrize("character", ["\x00", "\ud800"])
async def test_unstorable_characters_never_lose_a_job_or_a_result(
    queue: Queue, character: str
) -> None:
    made = await queue.enqueue("work", {"text": f"a{character}b"})
    assert made.is_cleaned
    [job] = (lease := await queue.claim()).jobs
    assert job.payload == {"text": "a�b"}
    await lease.progress(job, 5, f"half{character}way")
    await lease.complete(job, {f"key{character}": f"{character}"})
    read = await queue.get(made.id)
    assert (read.result, read.is_cleaned) == ({"key�": "�"}, True)


@pytest.mark.parametrize(
    "said",
    [
        *({"percent": float("nan")}, {"percent": "5"}, {"percent": True}, {"message": 5}),
        *({"n": "x"}, {"n": None}, {"n": [1]}, {"n": True}, {"n": float("nan")}, {"n": 2**63}),
        *({"a\x00": 1}, {"a\ud800": 1}, {"": 1}),
    ],
    ids=ascii,
)
async def test_progress_that_is_no_progress_is_refused(queue: Queue, said: dict[str, Any]) -> None:
    made = await queue.enqueue("work")
    [job] = (lease := await queue.claim()).jobs
    with pytest.raises(InvalidJob, match=r"progress|counter"):
        await lease.progress(job, **said)
    await lease.progress(job, 10**400, "all", pages=2**63 - 1)
    progress = (await queue.get(made.id)).progress
    assert progress is not None
    assert (progress.percent, progress.counters) == (100, {"pages": 2**63 - 1})


@pytest.mark.parametrize(
    "text",
    [
        *(b"{oops", b"", b"1],[2", b"NaN", b'"a\x00"', b'"\\ud800"', b"[" * 100_000),
        *(b'"\xff"', b"1e400", b"9" * 5000),
    ],
)
async def test_raw_json_that_cannot_be_read_is_refused(queue: Queue, text: bytes) -> None:
    """One that was stored would break every listing it is in."""
    for value in (msgspec.Raw(text), {"inner": msgspec.Raw(text)}):
        with pytest.raises(InvalidJob, match="the payload cannot be written as JSON"):
            await queue.enqueue("work", value)
    assert await queue.list() == []


async def test_an_error_with_a_nul_is_kept(queue: Queue) -> None:
    made = await queue.enqueue("work")
    [job] = (lease := await queue.claim()).jobs
    await lease.fail(job, ValueError("bad byte \x00 in \ud800 text"), retry=False)
    assert (await queue.get(made.id)).error == "ValueError: bad byte � in � text"


async def test_ugly_text_goes_through_unchanged(queue: Queue) -> None:
    made = await queue.enqueue(
        UGLY["quotes"],
        UGLY,
        queue=UGLY["rtl"],
        tenant=UGLY["emoji"],
        unique=UGLY["combining"],
        headers=UGLY,
        tags=[UGLY["cjk"], UGLY["quotes"]],
    )
    read = await queue.get(made.id)
    assert (read.payload, read.headers) == (UGLY, UGLY)
    assert read.kind == UGLY["quotes"]
    assert read.tags == (UGLY["cjk"], UGLY["quotes"])
    [listed] = await queue.list(tag=UGLY["quotes"], tenant=UGLY["emoji"], queue=UGLY["rtl"])
    assert listed.id == made.id
    lease = await queue.claim([UGLY["rtl"]], kinds=[UGLY["quotes"]], tenants=[UGLY["emoji"]])
    await lease.complete(lease.jobs[0], UGLY)
    assert (await queue.get(made.id)).result == UGLY


@pytest.mark.parametrize("error", ["100% sure", "under_score", "back\\slash", "it's"])
async def test_error_texts_are_matched_as_written(queue: Queue, error: str) -> None:
    await queue.enqueue_many([NewJob("work"), NewJob("work")])
    lease = await queue.claim(limit=2)
    await lease.fail(lease.jobs[0], error, retry=False)
    await lease.fail(lease.jobs[1], "100x sure underXscore backslash its", retry=False)
    assert [job.error for job in await queue.list(error=error)] == [error]
