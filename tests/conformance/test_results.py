"""Results: kept exactly, however large or ugly; large ones once each as a blob."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from tests.builders import (
    accept,
    add_and_claim,
    add_many,
    claim,
    complete,
    completion,
    finish_of,
    get,
    ids,
)
from tests.conformance.test_insert import UGLY
from windrow.db.codec import encode
from windrow.queue.job import JobState
from windrow.queue.store import Store

MIB = 1024 * 1024


@pytest.mark.parametrize("result", [UGLY, [], {}, 0, False, "", 1.5, [None], {"a": {"b": [UGLY]}}])
async def test_any_result_is_kept_exactly(store: Store, result: object) -> None:
    job = await add_and_claim(store)
    await complete(store, job, result)
    done = await get(store, job.id)

    assert done.result == result
    assert type(done.result) is type(result)


@pytest.mark.parametrize("size", [MIB - 100, MIB + 100, 5 * MIB])
async def test_result_on_either_side_of_the_blob_limit_is_kept(store: Store, size: int) -> None:
    job = await add_and_claim(store)
    result = {"body": "x" * size, "tail": "ü🚜"}
    await complete(store, job, result)

    assert (await get(store, job.id)).result == result


@pytest.mark.requires("atomic_ends")  # jobs are rows of its own
async def test_equal_large_results_share_a_blob(store: Store, run_sql) -> None:
    await add_many(store, 3)
    jobs = await claim(store, 3)
    large, other = "x" * 2 * MIB, "y" * 2 * MIB
    await accept(store, completion(jobs[0], large), completion(jobs[1], large))
    await complete(store, jobs[2], other)

    assert [(await get(store, job.id)).result for job in jobs] == [large, large, other]
    assert run_sql("select count(*) from windrow.blob") == [(2,)]


@pytest.mark.requires("atomic_ends")  # jobs are rows of its own
async def test_blob_is_named_by_the_hash_of_its_content(store: Store, run_sql) -> None:
    job = await add_and_claim(store)
    large = "x" * 2 * MIB
    await complete(store, job, large)
    [(name,)] = run_sql("select hash from windrow.blob")

    digest = hashlib.sha256(msgspec.json.encode(large))
    assert name in (digest.hexdigest(), digest.digest())


async def test_cleaned_result_is_kept_with_replacements_and_flagged(store: Store) -> None:
    job = await add_and_claim(store)
    cleaned = encode({"text": "a\x00b\ud800c"}, "result")
    assert cleaned.is_cleaned
    end = finish_of(job, JobState.COMPLETED, result=cleaned.json, result_is_cleaned=True)
    await accept(store, end)
    done = await get(store, job.id)

    assert (done.result, done.is_cleaned) == ({"text": "a\ufffdb\ufffdc"}, True)


async def test_result_that_only_spells_a_nul_is_kept(store: Store) -> None:
    job = await add_and_claim(store)
    await complete(store, job, {"text": "\\u0000", "\\u0000": 1})
    done = await get(store, job.id)

    assert (done.result, done.is_cleaned) == ({"text": "\\u0000", "\\u0000": 1}, False)


async def test_results_of_many_jobs_are_not_mixed_up(store: Store) -> None:
    await add_many(store, 50)
    jobs = await claim(store, 50)
    await accept(store, *(completion(job, {"of": job.id}) for job in reversed(jobs)))
    found = await store.get_jobs(ids(jobs))

    assert {job_id: job.result["of"] for job_id, job in found.items()} == {
        job.id: job.id for job in jobs
    }


async def test_deep_result_is_kept(store: Store) -> None:
    result: object = 1
    for _ in range(300):
        result = [result]
    job = await add_and_claim(store)
    await complete(store, job, result)

    assert (await get(store, job.id)).result == result


async def test_large_results_of_one_call(store: Store) -> None:
    await add_many(store, 4)
    jobs = await claim(store, 4)
    await accept(store, *(completion(job, job.id * 40_000) for job in jobs))

    assert [(await get(store, job.id)).result for job in jobs] == [job.id * 40_000 for job in jobs]
