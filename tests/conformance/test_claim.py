"""claim_jobs: only ready ones, best first, each to one worker."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.builders import (
    add,
    add_and_claim,
    add_many,
    claim,
    claim_one,
    complete,
    get,
    ids,
    make_group,
    row,
)
from windrow.clock import FakeClock
from windrow.queue.job import JobState, Priority
from windrow.queue.store import Store


async def test_claimed_job_is_active_under_a_lease(store: Store, clock: FakeClock) -> None:
    """N1: claim sets a lock."""
    job_id = await add(store, "mail", {"to": "a"}, headers={"h": 1}, tags=("t",))
    job = await claim_one(store, seconds=30, worker="worker-7")

    assert (job.id, job.state, job.runs, job.worker) == (job_id, JobState.ACTIVE, 1, "worker-7")
    assert (job.payload, job.headers, job.tags) == ({"to": "a"}, {"h": 1}, ("t",))
    assert job.started_at == clock.now()
    assert job.lease_token
    assert job.lease_expires_at == clock.now() + timedelta(seconds=30)


@pytest.mark.requires("settable_clock")
async def test_claim_is_seen_by_everybody(store: Store, open_another) -> None:
    job = await add_and_claim(store)
    seen = await get(await open_another(), job.id)

    assert (seen.state, seen.worker, seen.runs) == (JobState.ACTIVE, "worker-1", 1)
    assert (seen.lease_token, seen.lease_expires_at) == (job.lease_token, job.lease_expires_at)


async def test_nothing_to_do_is_an_empty_list(store: Store) -> None:
    assert await claim(store, 10) == []


async def test_job_is_claimed_once(store: Store) -> None:
    await add(store)

    assert len(await claim(store, 10)) == 1
    assert await claim(store, 10) == []


async def test_limit_is_kept(store: Store) -> None:
    job_ids = await add_many(store, 5)

    assert ids(await claim(store, 2)) == job_ids[:2]
    assert ids(await claim(store, 9)) == job_ids[2:]


@pytest.mark.requires("exact_claims")
async def test_higher_priority_first_then_first_come_first(store: Store) -> None:
    """U5: higher first, then oldest first."""
    wanted = [5, 10, 0, 5, -7, 10, 2**31 - 1, -(2**31), 0]
    rows = [row(priority=priority) for priority in wanted]
    await store.insert_jobs(rows)
    best_first = sorted(range(len(wanted)), key=lambda n: (-wanted[n], n))

    assert ids(await claim(store, 99)) == [rows[n].id for n in best_first]


async def test_order_holds_over_several_claims(store: Store) -> None:
    rows = [row(priority=n % 3) for n in range(9)]
    await store.insert_jobs(rows)
    order = [(await claim_one(store)).id for _ in rows]

    assert order == [rows[n].id for n in (2, 5, 8, 1, 4, 7, 0, 3, 6)]


async def test_named_priorities_are_ordered_as_the_guideline_says(store: Store) -> None:
    """U5: the guideline table as named constants."""
    named = [Priority.BULK, Priority.LIBRARY, Priority.SCAN, Priority.NORMAL]
    named += [Priority.ACTIVE_PROJECT, Priority.NOTE, Priority.COMMAND, Priority.NOW]
    for priority in named:
        await add(store, priority=priority)

    assert [job.priority for job in await claim(store, 99)] == named[::-1]


async def test_order_is_by_arrival_and_not_by_time_due(store: Store, clock: FakeClock) -> None:
    first = await add(store)
    second = await add(store, run_at=clock.now() - timedelta(hours=1))

    assert ids(await claim(store, 9)) == [first, second]


async def test_only_chosen_queues_are_claimed(store: Store) -> None:
    by_queue = {name: await add(store, queue=name) for name in ("a", "b", "c")}

    assert ids(await claim(store, 9, "b")) == [by_queue["b"]]
    assert await claim(store, 9, "none", "B") == []
    assert ids(await claim(store, 9, "c", "a")) == [by_queue["a"], by_queue["c"]]


@pytest.mark.requires("exact_claims")
async def test_several_queues_are_one_line(store: Store) -> None:
    rows = [row(queue="ab"[n % 2], priority=n // 2) for n in range(6)]
    await store.insert_jobs(rows)

    assert ids(await claim(store, 9, "a", "b")) == [rows[n].id for n in (4, 5, 2, 3, 0, 1)]


@pytest.mark.requires("exact_claims")
async def test_no_queues_named_means_every_queue(store: Store) -> None:
    job_ids = [await add(store, queue=name) for name in ("a", "b", "ü")]

    assert ids(await claim(store, 9)) == job_ids


@pytest.mark.requires("exact_claims")
async def test_only_chosen_kinds_are_claimed(store: Store) -> None:
    wanted = [await add(store, kind) for kind in ("a", "b", "c")]

    assert ids(await claim(store, 9, kinds=("c", "a"))) == [wanted[0], wanted[2]]
    assert ids(await claim(store, 9)) == [wanted[1]]


@pytest.mark.requires("exact_claims")
async def test_only_chosen_tenants_are_claimed(store: Store) -> None:
    wanted = [await add(store, tenant=tenant) for tenant in ("a", "b", None)]

    assert ids(await claim(store, 9, tenants=("b",))) == [wanted[1]]
    assert ids(await claim(store, 9)) == [wanted[0], wanted[2]]


@pytest.mark.requires("exact_claims")
async def test_queues_kinds_and_tenants_narrow_together(store: Store) -> None:
    fields = [("q", "k", "t"), ("x", "k", "t"), ("q", "x", "t"), ("q", "k", "x")]
    first, *_ = [await add(store, k, queue=q, tenant=t) for q, k, t in fields]

    assert ids(await claim(store, 9, "q", kinds=("k",), tenants=("t",))) == [first]


@pytest.mark.requires("exact_claims")
async def test_chosen_kind_is_found_behind_many_others(store: Store) -> None:
    await add_many(store, 500, kind="other", priority=9)
    wanted = await add(store, "rare", priority=1)

    assert ids(await claim(store, 5, "default", kinds=("rare",))) == [wanted]


@pytest.mark.requires("edits")
async def test_only_ready_jobs_are_claimed(store: Store) -> None:
    await add(store, delay=10)
    await store.pause_jobs([await add(store)])
    await store.cancel_jobs([await add(store)], "no")

    assert await claim(store, 9) == []


@pytest.mark.requires("exact_claims")
async def test_jobs_of_one_length_share_a_token(store: Store) -> None:
    await add_many(store, 3)
    tokens = {job.lease_token for job in await claim(store, 9)}

    assert len(tokens) == 1


async def test_every_claim_has_a_token_of_its_own(store: Store) -> None:
    await add_many(store, 2)

    assert (await claim_one(store)).lease_token != (await claim_one(store)).lease_token


async def test_job_brings_its_own_lease_length(store: Store, clock: FakeClock) -> None:
    """U6: the lease length is per kind of work."""
    lengths = [None, 300, 5, 300]
    await store.insert_jobs([row(lease_seconds=length) for length in lengths])
    jobs = await claim(store, 9, seconds=60)

    expiries = [job.lease_expires_at - clock.now() for job in jobs if job.lease_expires_at]
    assert [expiry.total_seconds() for expiry in expiries] == [60, 300, 5, 300]
    assert jobs[1].lease_token == jobs[3].lease_token
    assert len({job.lease_token for job in jobs}) == 3


async def test_jobs_of_a_paused_queue_are_passed_over(store: Store) -> None:
    await add_many(store, 3, queue="slow", priority=9)
    other = await add(store, queue="fast")
    await store.pause_queue("slow")

    assert ids(await claim(store, 9)) == [other]
    assert await claim(store, 9, "slow") == []


@pytest.mark.requires("groups")
async def test_jobs_of_a_paused_group_are_passed_over(store: Store) -> None:
    group = await make_group(store)
    member = await add(store, group=group.id, priority=9)
    other = await add(store)
    await store.pause_group(group.id)
    assert ids(await claim(store, 9)) == [other]

    await store.resume_group(group.id)
    assert ids(await claim(store, 9)) == [member]


@pytest.mark.requires("groups")
async def test_many_jobs_of_a_paused_group_in_front_do_not_hide_the_rest(store: Store) -> None:
    group = await make_group(store)
    await add_many(store, 300, group=group.id, priority=9)
    behind = await add(store)
    await store.pause_group(group.id)

    assert ids(await claim(store, 1)) == [behind]


async def test_second_run_counts_runs_and_moves_the_start(store: Store, clock: FakeClock) -> None:
    first = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    second = await claim_one(store)

    assert (second.id, second.runs, second.started_at) == (first.id, 2, clock.now())
    assert second.lease_token != first.lease_token


async def test_concurrent_claims_share_the_work_without_overlap(store: Store, open_another) -> None:
    other = await open_another()
    job_ids = await add_many(store, 200)
    batches = await asyncio.gather(*(claim(s, 17) for s in (store, other) * 8))
    claimed = [job.id for batch in batches for job in batch]

    assert len(claimed) == len(set(claimed)) == 200
    assert set(claimed) == set(job_ids)


async def test_one_claim_of_ten_thousand(store: Store) -> None:
    job_ids = await add_many(store, 10_000)

    assert ids(await claim(store, 10_000)) == job_ids


async def test_finished_jobs_are_not_claimed_again(store: Store) -> None:
    await complete(store, await add_and_claim(store))

    assert await claim(store, 9) == []


@pytest.mark.parametrize("limit", [0, 1])
async def test_claim_of_at_most_none_or_one(store: Store, limit: int) -> None:
    await add_many(store, 2)

    assert len(await claim(store, limit)) == limit
