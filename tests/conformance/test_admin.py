"""Looking at jobs and changing them from outside: get, list, edit, retry, delete, list_errors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.builders import (
    EVERYTHING,
    accept,
    add,
    add_and_claim,
    add_completed,
    add_failed,
    add_many,
    attempt,
    claim,
    claim_one,
    complete,
    counts,
    exists,
    fail,
    finish_of,
    get,
    ids,
    insert,
    make_group,
    queue,
    raw,
    snooze,
    state,
    states,
)
from windrow.clock import FakeClock
from windrow.ids import new_id
from windrow.queue.job import Job, JobState
from windrow.queue.records import Change, JobFilter
from windrow.queue.store import Store


async def listed(store: Store, **wanted) -> list[str]:
    return ids(await store.list_jobs(JobFilter(**wanted)))


# get


async def test_jobs_are_got_by_id_whatever_their_state(store: Store) -> None:
    done, failed = await add_completed(store), await add_failed(store)
    ready = await add(store)
    found = await store.get_jobs([ready, failed, done])

    assert {job_id: job.state for job_id, job in found.items()} == {
        ready: JobState.READY,
        failed: JobState.FAILED,
        done: JobState.COMPLETED,
    }


async def test_ids_that_are_not_there_are_left_out(store: Store) -> None:
    job_id = await add(store)
    found = await store.get_jobs([new_id(), job_id, "no uuid", "", "'; drop table job; --"])

    assert list(found) == [job_id]
    assert await store.get_jobs([]) == {}


async def test_many_ids_at_once(store: Store) -> None:
    job_ids = await add_many(store, 2000)

    assert set(await store.get_jobs(job_ids)) == set(job_ids)


# list


async def test_jobs_are_listed_newest_first(store: Store) -> None:
    job_ids = await add_many(store, 3)
    done = await claim_one(store)
    await complete(store, done)

    assert await listed(store) == job_ids[::-1]


async def test_list_shows_the_contents_and_no_results(store: Store) -> None:
    job_id = await add(store, "mail", {"n": 1}, headers={"h": 2}, tags=("t",), tenant="acme")
    [job] = await store.list_jobs(EVERYTHING)

    assert (job.id, job.kind, job.payload, job.tenant) == (job_id, "mail", {"n": 1}, "acme")
    assert (job.headers, job.tags, job.result_json) == ({"h": 2}, ("t",), None)


async def test_pages_follow_each_other_without_gaps(store: Store) -> None:
    job_ids = await add_many(store, 25)
    await accept(store, *[snooze(job, 60) for job in await claim(store, 5)])
    for job in await claim(store, 8):
        await complete(store, job)
    pages, after = [], None
    while page := await store.list_jobs(EVERYTHING, after=after, limit=7):
        pages.append(ids(page))
        after = page[-1].id

    assert [len(page) for page in pages] == [7, 7, 7, 4]
    assert [job_id for page in pages for job_id in page] == job_ids[::-1]


async def test_pages_are_steady_while_jobs_come_and_go(store: Store) -> None:
    job_ids = await add_many(store, 10)
    first = await store.list_jobs(EVERYTHING, limit=5)
    await add_many(store, 3)
    await store.delete_jobs([first[-1].id])
    second = await store.list_jobs(EVERYTHING, after=first[-1].id, limit=5)

    assert ids(first) + ids(second) == job_ids[::-1]


async def test_list_by_queue_kind_and_tenant(store: Store) -> None:
    a = await add(store, "mail", queue="post", tenant="acme")
    b = await add(store, "mail", queue="post")
    c = await add(store, "index", queue="post", tenant="acme")
    d = await add(store, "mail", tenant="acme")

    assert await listed(store, queue="post") == [c, b, a]
    assert await listed(store, kind="mail") == [d, b, a]
    assert await listed(store, tenant="acme") == [d, c, a]
    assert await listed(store, queue="post", kind="mail", tenant="acme") == [a]
    assert await listed(store, queue="none") == []


async def test_list_by_states_live_and_finished(store: Store) -> None:
    done, failed = await add_completed(store), await add_failed(store)
    ready, scheduled = await add(store), await add(store, delay=60)

    assert await listed(store, states=(JobState.READY,)) == [ready]
    assert await listed(store, states=(JobState.SCHEDULED, JobState.FAILED)) == [scheduled, failed]
    assert await listed(store, states=(JobState.COMPLETED, JobState.READY)) == [ready, done]
    assert await listed(store, states=()) == []


@pytest.mark.requires("groups")
async def test_list_by_group(store: Store) -> None:
    group = await make_group(store)
    done = await add_completed(store, group=(await make_group(store, is_open=True)).id)
    members = await add_many(store, 3, group=group.id)

    assert await listed(store, group=group.id) == members[::-1]
    assert await listed(store, group="no uuid") == []
    assert done not in await listed(store, group=group.id)


async def test_list_by_tag(store: Store) -> None:
    both = await add(store, tags=("red", "blue"))
    await add(store, tags=("reddish",))
    red = await add_completed_with_tags(store, "red")

    assert await listed(store, tag="red") == [red, both]
    assert await listed(store, tag='r"e%d_') == []


async def add_completed_with_tags(store: Store, *tags: str) -> str:
    job_id = await add(store, queue="aside", tags=tags)
    await complete(store, await claim_one(store, "aside"))
    return job_id


async def test_list_by_ugly_tag(store: Store) -> None:
    tag = """🏷 it's "quoted", [x] {y} \\ % _"""
    job_id = await add(store, tags=("plain", tag))

    assert await listed(store, tag=tag) == [job_id]


async def test_list_by_a_part_of_the_error(store: Store) -> None:
    refused = await add_failed(store, "connection refused by 10.0.0.1")
    percent = await add_failed(store, "100% of_all lost")
    await add_completed(store)

    assert await listed(store, error="refused") == [refused]
    assert await listed(store, error="Connection REFUSED") == [refused]
    assert await listed(store, error="0% of_a") == [percent]
    assert await listed(store, error="%") == [percent]
    assert await listed(store, error="of.all") == []


async def test_list_by_a_part_of_the_payload(store: Store) -> None:
    done = await add_completed(store, payload=["meadow", {"n": 7}])
    hay = await add(store, payload={"field": "Long Meadow", "share": "5% of_it"})
    await add(store, payload=None)

    assert await listed(store, text="MEADOW") == [hay, done]
    assert await listed(store, text='"n":7') == [done]
    assert await listed(store, text="5% of_") == [hay]
    assert await listed(store, text="%") == [hay]
    assert await listed(store, text="of.it") == []


async def test_active_jobs_are_listed_by_their_other_filters_too(store: Store) -> None:
    own = await add_and_claim(store, unique="a", tenant="acme")
    await add_and_claim(store, unique="b", tenant="globex")

    active = (JobState.ACTIVE,)
    assert await listed(store, unique="a", states=active) == [own.id]
    assert await listed(store, tenant="acme", states=active) == [own.id]
    assert await listed(store, unique="c", states=active) == []


async def test_list_by_unique_key(store: Store) -> None:
    done = await add_completed(store, unique="a")
    again = await add(store, unique="a")
    await add(store, unique="b")

    assert await listed(store, unique="a") == [again, done]


async def test_list_back_to_a_job_and_no_farther(store: Store) -> None:
    added = [await add(store) for _ in range(4)]

    assert await listed(store, since=added[1]) == added[:0:-1]
    assert ids(await store.list_jobs(JobFilter(since=added[1]), after=added[2])) == [added[1]]


@pytest.mark.requires("exact_claims")  # one line over all queues
async def test_an_id_so_many_jobs_back_is_found(store: Store) -> None:
    live = [await add(store) for _ in range(6)]
    ended = [await add_completed_with_tags(store) for _ in range(4)]

    some, none = JobFilter(states=(JobState.READY,)), JobFilter(states=(JobState.HELD,))
    assert await store.find_earlier(some, 3) == live[-4]
    assert await store.find_earlier(none, 3) == live[-4]  # those that could be
    assert await store.find_earlier(some, 3, after=live[4]) == live[0]
    assert await store.find_earlier(JobFilter(states=(JobState.COMPLETED,)), 3) == ended[0]
    assert await store.find_earlier(JobFilter(), 3) == ended[0]
    assert await store.find_earlier(JobFilter(), 9) == live[0]
    assert await store.find_earlier(JobFilter(), 10) is None


@pytest.mark.requires("exact_claims")
@pytest.mark.parametrize("line", ["tenant", "group", "unique", "states"])
async def test_so_many_jobs_back_are_counted_by_what_an_index_has(store: Store, line: str) -> None:
    group = (await make_group(store, is_open=True)).id
    own: dict[str, Any] = {"tenant": "acme"} if line == "tenant" else {}
    own |= {"group": group} if line == "group" else {}
    added = []
    for _ in range(3):
        added.append(await add_failed(store, unique="mine" if line == "unique" else None, **own))
        await add_completed(store)
        await add(store, delay=3600)
    states = (JobState.FAILED,) if line == "states" else None
    unique = "mine" if line == "unique" else None
    wanted = JobFilter(**own, unique=unique, states=states, kind="of none")

    assert await store.find_earlier(wanted, 1) == added[1]
    assert await store.find_earlier(wanted, 1, after=added[2]) == added[0]
    assert await store.find_earlier(wanted, 3) is None


async def test_newest_jobs_of_a_tenant_are_counted_by_queue_and_state(store: Store) -> None:
    await add_completed(store, tenant="acme")
    await add(store, tenant="globex")
    await add(store, tenant="acme", queue="other")
    await add(store, tenant="acme", queue="other")

    ready, ended = ("other", JobState.READY), ("default", JobState.COMPLETED)
    assert await store.count_tenant("acme", 10) == {ready: 2, ended: 1}
    assert await store.count_tenant("acme", 2) == {ready: 2}
    assert await store.count_tenant("initech", 10) == {}


async def test_filters_hold_on_every_page(store: Store) -> None:
    wanted = [await add(store, "ab"[n % 2]) for n in range(10)][::2]
    page = await store.list_jobs(JobFilter(kind="a"), limit=3)
    rest = await store.list_jobs(JobFilter(kind="a"), after=page[-1].id, limit=3)

    assert ids(page) + ids(rest) == wanted[::-1]


# edit


@pytest.mark.requires("edits")
async def test_every_field_can_be_edited(store: Store) -> None:
    job_id = await add(store, "old", {"v": 1}, tags=("old",))
    change = await store.edit_job(
        job_id,
        {
            "kind": "new",
            "payload": raw({"v": 2}),
            "headers": raw({"h": 1}),
            "tags": ("new",),
            "queue": "other",
            "priority": 9,
            "max_attempts": 2,
            "max_crashes": 3,
            "lease_seconds": 40,
            "retention_seconds": 50,
        },
    )
    job = await get(store, job_id)

    assert change == Change(job_id, JobState.READY, JobState.READY)
    assert (job.kind, job.payload, job.headers, job.tags) == ("new", {"v": 2}, {"h": 1}, ("new",))
    assert (job.queue, job.priority, job.max_attempts, job.max_crashes) == ("other", 9, 2, 3)
    assert (job.lease_seconds, job.retention_seconds) == (40, 50)


@pytest.mark.requires("edits")
async def test_fields_not_named_stay(store: Store) -> None:
    job_id = await add(store, "mail", {"v": 1}, tags=("t",), headers={"h": 1}, priority=3)
    before = await get(store, job_id)
    await store.edit_job(job_id, {"max_attempts": 9})
    after = await get(store, job_id)

    assert (after.kind, after.payload, after.tags, after.headers, after.priority) == (
        *(before.kind, before.payload, before.tags, before.headers, before.priority),
    )
    assert (after.seq, after.run_at, after.max_attempts) == (before.seq, before.run_at, 9)


@pytest.mark.requires("edits")
async def test_edited_priority_and_queue_are_claimed_by(store: Store) -> None:
    first, second, third = await add_many(store, 3)
    await store.edit_job(third, {"priority": 9})
    await store.edit_job(first, {"queue": "other"})

    assert ids(await claim(store, 9, "default")) == [third, second]
    assert await counts(store, "other") == {JobState.READY: 1}


async def test_edited_run_at_moves_the_job_in_time(store: Store, clock: FakeClock) -> None:
    job_id = await add(store)
    later = clock.now() + timedelta(seconds=60)
    change = await store.edit_job(job_id, {"run_at": later})
    assert change == Change(job_id, JobState.READY, JobState.SCHEDULED)
    assert (await get(store, job_id)).run_at == later

    change = await store.edit_job(job_id, {"run_at": clock.now()})
    assert change == Change(job_id, JobState.SCHEDULED, JobState.READY)


@pytest.mark.requires("edits")
async def test_failed_job_is_edited_and_retried(store: Store) -> None:
    """The dead letter is mended and sent again."""
    job_id = await add_failed(store, payload={"url": "htp://"})
    change = await store.edit_job(job_id, {"payload": raw({"url": "http://"}), "queue": "other"})
    assert change == Change(job_id, JobState.FAILED, JobState.FAILED)

    await store.retry_jobs([job_id])
    assert (await claim_one(store, "other")).payload == {"url": "http://"}


@pytest.mark.requires("edits")
async def test_running_and_completed_jobs_cannot_be_edited(store: Store) -> None:
    done = await add_completed(store)
    running = (await add_and_claim(store)).id
    for job_id in (done, running):
        change = await store.edit_job(job_id, {"priority": 9})
        assert change.is_refused
        assert (await get(store, job_id)).priority == 5


@pytest.mark.requires("edits")
async def test_editing_an_unknown_job_says_so(store: Store) -> None:
    for unknown in (new_id(), "no uuid"):
        change = await store.edit_job(unknown, {"priority": 9})
        assert (change.before, change.after) == (None, None)


@pytest.mark.requires("edits")
async def test_edited_payload_leaves_other_jobs_alone(store: Store) -> None:
    edited, other = await add_many(store, 2)
    await store.edit_job(edited, {"payload": raw("new"), "tags": ("new",)})
    job = await get(store, other)

    assert (job.payload, job.tags) == (None, ())


# retry


async def test_retried_job_starts_afresh_and_keeps_its_history(
    store: Store, clock: FakeClock
) -> None:
    job = await add_and_claim(store)
    await accept(store, attempt(job, message="first"))
    await fail(store, await claim_one(store), "second")
    clock.advance(5)
    changes = await store.retry_jobs([job.id])
    again = await get(store, job.id)

    assert changes == {job.id: Change(job.id, JobState.FAILED, JobState.READY)}
    assert (again.state, again.attempts, again.crashes, again.error) == (
        *(JobState.READY, 0, 0, None),
    )
    assert (again.finished_at, again.expires_at, again.lease_token) == (None, None, None)
    assert [error.message for error in again.errors] == ["first", "second"]
    assert (await claim_one(store)).id == job.id


async def test_cancelled_job_can_be_retried(store: Store) -> None:
    job_id = await add(store)
    await store.cancel_jobs([job_id], "no")
    changes = await store.retry_jobs([job_id])

    assert changes == {job_id: Change(job_id, JobState.CANCELLED, JobState.READY)}
    assert ids(await claim(store, 9)) == [job_id]


async def test_retried_job_is_no_longer_told_to_stop(store: Store) -> None:
    job = await add_and_claim(store)
    await store.cancel_jobs([job.id], "no")
    await accept(store, snooze(job))
    await store.retry_jobs([job.id])
    again = await claim_one(store)
    assert again.stop_as is None

    await accept(store, snooze(again))
    assert await state(store, job.id) == JobState.READY


async def test_retried_job_forgets_its_result(store: Store) -> None:
    job = await add_and_claim(store)
    await accept(store, finish_of(job, JobState.FAILED, result=b'"partial"'))
    await store.retry_jobs([job.id])

    assert (await get(store, job.id)).result is None


async def test_scheduled_job_is_made_due(store: Store, clock: FakeClock) -> None:
    job_id = await add(store, delay=3600)
    changes = await store.retry_jobs([job_id])

    assert changes == {job_id: Change(job_id, JobState.SCHEDULED, JobState.READY)}
    assert (await get(store, job_id)).run_at == clock.now()
    assert ids(await claim(store, 9)) == [job_id]


@pytest.mark.requires("edits")
async def test_other_states_cannot_be_retried(store: Store) -> None:
    done = await add_completed(store)
    running = (await add_and_claim(store)).id
    ready = await add(store)
    paused = await add(store)
    await store.pause_jobs([paused])
    before = await states(store, [done, running, ready, paused])
    changes = await store.retry_jobs([done, running, ready, paused])

    assert all(change.is_refused for change in changes.values())
    assert await states(store, [done, running, ready, paused]) == before


async def test_unknown_job_cannot_be_retried(store: Store) -> None:
    for unknown in (new_id(), "no uuid"):
        change = (await store.retry_jobs([unknown]))[unknown]
        assert (change.before, change.after) == (None, None)


async def test_many_failed_jobs_are_retried_in_bulk(store: Store) -> None:
    job_ids = await add_many(store, 300)
    await store.cancel_jobs(job_ids, "no")
    await store.retry_jobs(job_ids)

    assert await counts(store) == {JobState.READY: 300}


# delete


async def test_deleted_job_leaves_no_trace(store: Store) -> None:
    ready, scheduled = await add(store), await add(store, delay=60)
    changes = await store.delete_jobs([ready, scheduled])

    assert (changes[ready].before, changes[ready].after) == (JobState.READY, None)
    assert not changes[ready].is_refused
    assert await store.get_jobs([ready, scheduled]) == {}
    assert await claim(store, 9) == []
    assert await counts(store) == {}


@pytest.mark.parametrize("make", [add_completed, add_failed])
async def test_finished_job_can_be_deleted(store: Store, make) -> None:
    job_id = await make(store)
    await store.delete_jobs([job_id])

    assert not await exists(store, job_id)


@pytest.mark.requires("groups")
async def test_running_and_waiting_jobs_cannot_be_deleted(store: Store) -> None:
    running = await add_and_claim(store)
    root = await add_and_claim(store)
    await make_group(store, root=root.id)
    await complete(store, root)
    changes = await store.delete_jobs([running.id, root.id])

    assert changes == {
        running.id: Change(running.id, JobState.ACTIVE, JobState.ACTIVE, is_refused=True),
        root.id: Change(root.id, JobState.WAITING, JobState.WAITING, is_refused=True),
    }
    assert await states(store, [running.id, root.id]) == [JobState.ACTIVE, JobState.WAITING]


async def test_id_of_a_deleted_job_may_be_used_again(store: Store) -> None:
    job_id = await add_failed(store, payload="old")
    await store.delete_jobs([job_id])
    again = await insert(store, payload="new", id=job_id, may_exist=True)
    job = await get(store, job_id)

    assert (again.outcome, job.payload, job.errors, job.result) == ("inserted", "new", [], None)


async def test_unknown_job_cannot_be_deleted(store: Store) -> None:
    for unknown in (new_id(), "no uuid"):
        change = (await store.delete_jobs([unknown]))[unknown]
        assert (change.before, change.after) == (None, None)


# errors


async def test_failed_jobs_are_counted_by_error(store: Store, clock: FakeClock) -> None:
    start = clock.now()
    timeouts = []
    for _ in range(3):
        timeouts.append(await add_failed(store, "timeout"))
        clock.advance(10)
    refused = await add_failed(store, "refused")
    first, second = await store.list_errors()

    assert (first.error, first.count, second.error, second.count) == ("timeout", 3, "refused", 1)
    assert (first.first_at, first.last_at) == (start, start + timedelta(seconds=20))
    assert first.example in timeouts
    assert second.example == refused


async def test_errors_of_one_queue(store: Store) -> None:
    await add_failed(store, "here", queue="a")
    await add_failed(store, "there", queue="b")

    assert [error.error for error in await store.list_errors("a")] == ["here"]
    assert await store.list_errors("none") == []


async def test_only_the_most_frequent_errors_within_the_limit(store: Store) -> None:
    for message in ("a", "b", "b", "c", "c", "c"):
        await add_failed(store, message)

    assert [(error.error, error.count) for error in await store.list_errors(limit=2)] == [
        *(("c", 3), ("b", 2))
    ]


async def test_retried_cancelled_and_deleted_jobs_are_no_errors(store: Store) -> None:
    retried, deleted = await add_failed(store), await add_failed(store)
    await store.retry_jobs([retried])
    await store.delete_jobs([deleted])
    await store.cancel_jobs([await add(store)], "no")

    assert await store.list_errors() == []


@pytest.mark.requires("edits")
async def test_queue_of_admin_changes_is_seen_by_other_connections(
    store: Store, open_another
) -> None:
    other = await open_another()
    job_id = await add(store)
    await other.edit_job(job_id, {"priority": 7})
    job: Job = await get(store, job_id)

    assert job.priority == 7
    assert (await queue(other)).counts == {JobState.READY: 1}


async def test_kinds_at_the_front_of_each_queue(store: Store) -> None:
    urgent = await add(store, "scrape", queue="web", priority=9)
    await add_many(store, 3, kind="crawl", queue="web")
    await add(store, "index", queue="index")
    await store.pause_queue("index")

    found = await store.list_ready_kinds(limit=3)

    assert [(one.queue, one.kind, one.count) for one in found] == [
        ("index", "index", 1),
        ("web", "crawl", 2),
        ("web", "scrape", 1),
    ]
    assert found[2].example == urgent


async def test_jobs_that_wait_or_run_are_not_at_the_front(store: Store) -> None:
    await add_and_claim(store, "running")
    await add(store, "later", delay=60)
    assert await store.list_ready_kinds() == []


async def test_active_jobs_are_listed_newest_first_among_many_that_wait(store: Store) -> None:
    made = await add_many(store, 30)
    await claim(store, 5)
    running = JobFilter(states=(JobState.ACTIVE,))
    found = await store.list_jobs(running)
    assert ids(found) == list(reversed(made[:5]))
    assert {job.worker for job in found} == {"worker-1"}
    assert ids(await store.list_jobs(running, after=found[1].id, limit=2)) == ids(found[2:4])
