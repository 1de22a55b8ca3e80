"""insert_jobs: what is handed in is what is read back, at once and whole."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import asdict

from tests.builders import add, add_and_claim, complete, exists, get, insert, make_group, row
from windrow.clock import Clock, FakeClock
from windrow.errors import GroupEnded, GroupNotFound
from windrow.ids import new_id
from windrow.queue.job import JobState
from windrow.queue.records import FOREVER
from windrow.queue.store import Store

UGLY = {
    "emoji": "👩‍👩‍👧‍👦🏴‍☠️ 🇺🇳",
    "right to left": "שלום \u202eעולם\u202c مرحبا",
    "cjk": "漢字 かな カナ 한글 𠮷野家",
    "four bytes": "\U0001f600\U00020bb7\U0010ffff",
    "control": "\t\n\r\x01\x1f\x7f\u2028\u2029\ufeff",
    "key.with.\"dots\" and 'quotes' \\ { } [ ] $1 :name %s ?": "x'; drop table job; --",
    "": "the empty key",
    "combining": "e\u0301 ≠ é, Z̴̢̛̖̪",
}


async def test_inserted_job_is_ready_and_reports_its_place(store: Store, clock: FakeClock) -> None:
    new = row("mail", {"to": "a"})
    [inserted] = await store.insert_jobs([new])

    assert (inserted.id, inserted.outcome, inserted.state) == (new.id, "inserted", JobState.READY)
    assert inserted.seq > 0
    assert (inserted.run_at, inserted.created_at) == (clock.now(), clock.now())


async def test_every_field_is_read_back(store: Store) -> None:
    job_id = await add(
        store,
        "mail",
        {"to": ["a", "b"]},
        queue="post",
        priority=8,
        headers={"trace": "t-1"},
        tags=("red", "blue"),
        unique="mail:1",
        tenant="acme",
        max_attempts=3,
        max_crashes=2,
        lease_seconds=45,
        retention_seconds=90,
    )
    job = await get(store, job_id)

    assert (job.kind, job.payload, job.queue, job.priority) == (
        "mail",
        {"to": ["a", "b"]},
        "post",
        8,
    )
    assert (job.headers, set(job.tags)) == ({"trace": "t-1"}, {"red", "blue"})
    assert (job.unique, job.tenant, job.group, job.root_of) == ("mail:1", "acme", None, None)
    assert (job.max_attempts, job.max_crashes) == (3, 2)
    assert (job.lease_seconds, job.retention_seconds) == (45, 90)


async def test_new_job_has_not_run(store: Store, clock: FakeClock) -> None:
    job = await get(store, await add(store))

    assert (job.attempts, job.crashes, job.runs) == (0, 0, 0)
    assert (job.created_at, job.run_at) == (clock.now(), clock.now())
    assert (job.started_at, job.finished_at, job.expires_at) == (None, None, None)
    assert (job.worker, job.lease_token, job.lease_expires_at, job.stop_as) == (None,) * 4
    assert (job.error, job.errors, job.progress, job.result) == (None, [], None, None)
    assert (job.headers, job.tags, job.is_cleaned) == ({}, (), False)


async def test_times_are_aware_utc(store: Store) -> None:
    job = await get(store, await add(store))

    assert job.created_at.utcoffset() == job.run_at.utcoffset() == timedelta(0)


async def test_retention_for_ever_is_read_back(store: Store) -> None:
    job = await get(store, await add(store, retention_seconds=FOREVER))

    assert job.retention_seconds == FOREVER


async def test_nothing_to_insert_is_no_error(store: Store) -> None:
    assert await store.insert_jobs([]) == []


async def test_seq_grows_in_the_order_of_the_rows_and_of_the_calls(store: Store) -> None:
    rows = [row() for _ in range(20)]
    inserted = await store.insert_jobs(rows)
    later = await insert(store)

    assert [one.id for one in inserted] == [new.id for new in rows]
    seqs = [one.seq for one in (*inserted, later)]
    assert seqs == sorted(set(seqs))


async def test_delayed_job_is_scheduled(store: Store, clock: FakeClock) -> None:
    inserted = await insert(store, delay=90.5)

    assert inserted.state == JobState.SCHEDULED
    assert inserted.run_at == clock.now() + timedelta(seconds=90.5)
    assert (await get(store, inserted.id)).run_at == inserted.run_at


async def test_run_at_in_the_future_is_scheduled_and_exact_to_the_microsecond(
    store: Store, clock: FakeClock
) -> None:
    at = clock.now() + timedelta(days=4000, microseconds=123_457)
    inserted = await insert(store, run_at=at)

    assert (inserted.state, inserted.run_at) == (JobState.SCHEDULED, at)


@pytest.mark.parametrize("ago", [0, 1, 86_400])
async def test_run_at_now_or_earlier_is_ready(store: Store, clock: FakeClock, ago: int) -> None:
    inserted = await insert(store, run_at=clock.now() - timedelta(seconds=ago))

    assert inserted.state == JobState.READY


@pytest.mark.parametrize("payload", [UGLY, "", 0, False, [], {}, None, 1.5, -(2**53), [None, [[]]]])
async def test_any_json_is_kept_exactly(store: Store, payload: object) -> None:
    job = await get(store, await add(store, payload=payload, headers=UGLY))

    assert job.payload == payload
    assert type(job.payload) is type(payload)
    assert job.headers == UGLY


@pytest.mark.requires("replaces")
@pytest.mark.parametrize("text", UGLY.values())
async def test_ugly_text_is_kept_in_every_text_field(store: Store, text: str) -> None:
    names = {"queue": text, "unique": text, "tenant": text, "tags": (text, "plain")}
    job_id = await add(store, text, **names)
    job = await get(store, job_id)

    assert (job.kind, job.queue, job.unique, job.tenant) == (text,) * 4
    assert set(job.tags) == {text, "plain"}
    assert (await insert(store, unique=text, tenant=text)).id == job_id


async def test_very_long_text_is_kept(store: Store) -> None:
    text = "ü𠮷" * 50_000
    job = await get(store, await add(store, payload={"text": text}, headers={"h": text}))

    assert (job.payload["text"], job.headers["h"]) == (text, text)


async def test_payload_of_a_mebibyte_is_kept(store: Store) -> None:
    payload = {"body": "abcdefgh" * (1 << 17), "tail": 1}

    assert (await get(store, await add(store, payload=payload))).payload == payload


async def test_deep_json_is_kept(store: Store) -> None:
    payload: object = "bottom"
    for depth in range(200):
        payload = {"down": payload} if depth % 2 else [payload]

    assert (await get(store, await add(store, payload=payload))).payload == payload


async def test_numbers_keep_their_spelling(store: Store) -> None:
    payload = [2**63, 2**64 - 1, -(2**63), 1e-300, 0.1, 1e100]

    assert (await get(store, await add(store, payload=payload))).payload == payload


async def test_cleaned_payload_is_flagged(store: Store) -> None:
    assert (await get(store, await add(store, is_cleaned=True))).is_cleaned


@pytest.mark.parametrize("priority", [0, -1, -(2**31), 2**31 - 1])
async def test_any_priority_is_kept(store: Store, priority: int) -> None:
    assert (await get(store, await add(store, priority=priority))).priority == priority


async def test_four_thousand_rows_in_one_call(store: Store) -> None:
    rows = [row(payload={"n": n}, queue=f"q{n % 3}") for n in range(4000)]
    inserted = await store.insert_jobs(rows)

    assert [one.id for one in inserted] == [new.id for new in rows]
    assert {one.outcome for one in inserted} == {"inserted"}
    assert [one.seq for one in inserted] == sorted({one.seq for one in inserted})
    assert (await get(store, rows[3777].id)).payload == {"n": 3777}
    assert sum(sum(info.counts.values()) for info in await store.list_queues()) == 4000


@pytest.mark.parametrize(("count", "size"), [(2, 10), (60, 10), (60, 40_000)])
async def test_rows_that_differ_in_their_payloads_only_are_read_back(
    store: Store, clock: FakeClock, count: int, size: int
) -> None:
    shared: dict[str, Any] = {
        "queue": "post",
        "priority": 8,
        "headers": {"trace": "t-1"},
        "tags": ("red", "blue"),
        "delay": 60.0,
        "tenant": "acme",
        "max_attempts": 3,
        "max_crashes": 2,
        "lease_seconds": 45,
        "retention_seconds": 90,
        "limits": ("site", "host"),
        "max_hold_seconds": 120,
    }
    rows = [row("mail", {"n": n, "text": "ü" * size}, **shared) for n in range(count)]
    inserted = await store.insert_jobs(rows)

    assert [one.id for one in inserted] == [new.id for new in rows]
    assert [one.seq for one in inserted] == sorted({one.seq for one in inserted})
    assert {one.state for one in inserted} == {JobState.SCHEDULED}
    jobs = await store.get_jobs([new.id for new in rows])
    last = jobs[rows[-1].id]
    assert [jobs[new.id].payload["n"] for new in rows] == [*range(count)]
    assert (last.queue, last.kind, last.priority, last.tenant) == ("post", "mail", 8, "acme")
    assert (last.headers, set(last.tags)) == ({"trace": "t-1"}, {"red", "blue"})
    assert (last.limits, last.max_hold_seconds) == (("site", "host"), 120)
    assert (last.max_attempts, last.max_crashes, last.lease_seconds) == (3, 2, 45)
    assert (last.retention_seconds, last.run_at) == (90, inserted[-1].run_at)
    assert last.run_at == clock.now() + timedelta(seconds=60)
    assert [info.counts for info in await store.list_queues()] == [{JobState.SCHEDULED: count}]


async def test_repeated_insert_of_an_id_that_may_exist_changes_nothing(store: Store) -> None:
    first = row("old", may_exist=True)
    [inserted] = await store.insert_jobs([first])
    [again] = await store.insert_jobs([row("new", id=first.id, may_exist=True)])

    assert (again.id, again.outcome, again.seq) == (first.id, "existing", inserted.seq)
    assert (await get(store, first.id)).kind == "old"


async def test_repeated_insert_is_recognised_after_the_job_has_finished(store: Store) -> None:
    job = await add_and_claim(store)
    await complete(store, job)
    [again] = await store.insert_jobs([row(id=job.id, may_exist=True)])

    assert (again.id, again.outcome, again.state) == (job.id, "existing", JobState.COMPLETED)


async def test_only_the_rows_that_exist_are_left_out_of_a_repeated_batch(store: Store) -> None:
    old = await add(store)
    new = [row(id=old, may_exist=True), row(may_exist=True)]

    assert [one.outcome for one in await store.insert_jobs(new)] == ["existing", "inserted"]


async def test_one_id_twice_in_a_batch_is_inserted_once(store: Store) -> None:
    job_id = new_id()
    rows = [row(id=job_id, may_exist=True), row(id=job_id, may_exist=True)]

    assert [one.outcome for one in await store.insert_jobs(rows)] == ["inserted", "existing"]


@pytest.mark.requires("groups")
async def test_unknown_group_is_refused_and_nothing_inserted(store: Store) -> None:
    good, bad = row(), row(group=new_id())
    with pytest.raises(GroupNotFound):
        await store.insert_jobs([good, bad])

    assert not await exists(store, good.id)


@pytest.mark.requires("groups")
async def test_ended_group_is_refused_and_nothing_inserted(store: Store) -> None:
    """N5: a group that has ended takes no more."""
    ended = await make_group(store)
    await store.close_group(ended.id)
    good, bad = row(), row(group=ended.id)
    with pytest.raises(GroupEnded) as refused:
        await store.insert_jobs([good, bad])

    assert refused.value.group_id == ended.id
    assert not await exists(store, good.id)


async def test_database_clock_is_used_when_the_store_is_given_none(open_another) -> None:
    real = await open_another(Clock())
    due, late = await insert(real), await insert(real, delay=3600)

    assert (due.state, late.state) == (JobState.READY, JobState.SCHEDULED)
    assert due.run_at is not None
    assert late.run_at is not None
    assert timedelta(seconds=3590) < late.run_at - due.run_at < timedelta(seconds=3610)


# The fields in which jobs of one call may differ, with two values each and what is read back.
FIELDS: dict[str, list[Any]] = {
    "queue": ["q", "other"],
    "kind": ["work", "mail"],
    "headers": [None, {"trace": "\"a\\b'"}],
    "tags": [(), ("a", '"{,}\\', "NULL", "")],
    "priority": [5, 9],
    "run_at": [None, datetime(2031, 2, 3, tzinfo=UTC)],
    "delay": [0.0, 90.5],
    "tenant": [None, "acme"],
    "max_attempts": [5, 2],
    "max_crashes": [5, 1],
    "lease_seconds": [None, 45],
    "retention_seconds": [None, FOREVER],
    "limits": [(), ("site:{a,b}", '"quoted"')],
    "max_hold_seconds": [None, 70],
    "is_cleaned": [False, True],
}


@pytest.mark.parametrize("field", FIELDS)
async def test_jobs_of_one_call_that_differ_in_a_field_keep_their_own(
    store: Store, field: str
) -> None:
    rows = [row(payload={"n": n}, **{field: FIELDS[field][n % 2]}) for n in range(4)]
    alone = [row(payload={"n": n}, **{field: FIELDS[field][n % 2]}) for n in range(4)]
    inserted = await store.insert_jobs(rows)
    one_by_one = [(await store.insert_jobs([one]))[0] for one in alone]
    jobs = await store.get_jobs([one.id for one in [*rows, *alone]])

    assert [one.id for one in inserted] == [one.id for one in rows]
    assert [one.seq for one in inserted] == sorted(one.seq for one in inserted)
    for together, apart in zip(inserted, one_by_one, strict=True):
        expected = asdict(jobs[apart.id]) | {"id": together.id, "seq": together.seq}
        assert asdict(jobs[together.id]) == expected
        assert (together.state, together.run_at) == (apart.state, apart.run_at)
    counts = {
        info.name: {state: n for state, n in info.counts.items() if n}
        for info in await store.list_queues()
    }
    found = Counter((job.queue, job.state) for job in jobs.values())
    assert counts == {
        queue: {state: n for (of, state), n in found.items() if of == queue}
        for queue in {queue for queue, _ in found}
    }
