"""The stream of events: complete, in order, read from any place on, and pruned from its front."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from tests.builders import (
    accept,
    add,
    add_and_claim,
    add_many,
    attempt,
    cancellation,
    claim,
    claim_one,
    complete,
    completion,
    fail,
    make_group,
    raw,
    row,
    wish,
)
from tests.callers import Caller
from tests.conformance.conftest import RunSql, connect_beside
from tests.conftest import OpenAnother
from tests.faults import FaultyStore
from windrow import Queue
from windrow.clock import FakeClock
from windrow.errors import EventsPruned, InvalidCursor, InvalidJob, StoreUnavailable
from windrow.ids import new_id
from windrow.queue.events import OLDEST, Event, EventReader, EventType
from windrow.queue.job import JobState
from windrow.queue.records import ProgressReport, ScheduleRow
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("events")

DAY = 86_400
LONG = 20.0  # seconds; only a failing test waits for it


async def all_events(store: Store, after: str = OLDEST, **wanted: Any) -> list[Event]:
    reader = Queue(store).events(after, follow=False, **wanted)
    return [event async for event in reader]


async def told(store: Store, job_id: str) -> list[tuple[str, str]]:
    return [(event.type, event.state) for event in await all_events(store, job=job_id)]


@pytest.fixture
async def reader(store: Store) -> AsyncIterator[EventReader]:
    async with Queue(store).events() as opened:
        yield opened


async def next_of(reader: EventReader) -> Event:
    async with asyncio.timeout(LONG):
        return await anext(reader)


async def test_a_jobs_life_is_told_in_order(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store, "resize", queue="images", tenant="acme")
    clock.advance(5)
    assert job.lease_token
    await store.report_progress(
        [ProgressReport(job.id, job.lease_token, 40, "page 4", {"pages": 4})]
    )
    await complete(store, job)
    events = await all_events(store)

    assert [event.type for event in events] == [
        EventType.JOB_CREATED,
        EventType.JOB_STARTED,
        EventType.JOB_PROGRESS,
        EventType.JOB_FINISHED,
    ]
    assert [event.state for event in events] == ["ready", "active", "active", "completed"]
    assert {(e.job_id, e.queue, e.kind, e.tenant, e.group_id) for e in events} == {
        (job.id, "images", "resize", "acme", None)
    }
    assert events[2].details == {"percent": 40, "message": "page 4", "counters": {"pages": 4}}
    assert events[3].at == clock.now()
    assert (events[3].at - events[0].at).total_seconds() == 5


async def test_a_group_tells_how_far_it_is_and_that_it_ended(store: Store) -> None:
    group = await make_group(store, then=row("finish"))
    first, second = await add_many(store, 2, group=group.id)
    for job in await claim(store, 2):
        if job.id == first:
            await complete(store, job)
        else:
            await fail(store, job)
    events = await all_events(store)
    of_group = [e for e in events if e.job_id is None]
    places = {(str(e.type), e.job_id): number for number, e in enumerate(events)}
    finish_job = next(e for e in events if e.kind == "finish")

    assert [(e.type, e.state, e.group_id) for e in of_group] == [
        ("group.progress", "active", group.id),
        ("group.ended", "completed", group.id),
    ]
    assert of_group[0].details["total"] == 2
    assert of_group[1].details == {"total": 2, "completed": 1, "failed": 1, "cancelled": 0}
    assert places["job.finished", second] < places["group.ended", None]
    assert places["group.ended", None] < places["job.created", finish_job.job_id]


async def test_a_cancelled_and_an_empty_group_end_too(store: Store) -> None:
    cancelled, empty = await make_group(store), await make_group(store)
    members = await add_many(store, 3, group=cancelled.id)
    await store.cancel_group(cancelled.id, "not wanted")
    await store.close_group(empty.id)
    ended = await all_events(store, types="group.ended")

    assert [(e.group_id, e.state) for e in ended] == [
        (cancelled.id, "cancelled"),
        (empty.id, "completed"),
    ]
    for member in members:
        assert await told(store, member) == [
            ("job.created", "ready"),
            ("job.finished", "cancelled"),
        ]


async def test_the_root_of_a_group_finishes_when_the_group_ends(store: Store) -> None:
    root = await add_and_claim(store)
    group = await make_group(store, root=root.id)
    await add(store, group=group.id)
    await complete(store, root)
    assert (await told(store, root.id))[-1] == ("job.started", "active")
    await complete(store, await claim_one(store))

    assert (await told(store, root.id))[-1] == ("job.finished", "completed")


@pytest.mark.parametrize("count", [1, 3, 60])
async def test_every_way_in_tells_of_every_job(store: Store, count: int) -> None:
    job_ids = await add_many(store, count)
    events = await all_events(store)

    assert [event.job_id for event in events] == job_ids
    assert {(e.type, e.state) for e in events} == {("job.created", "ready")}


async def test_created_events_tell_where_a_job_waits(store: Store) -> None:
    later = await add(store, delay=60.0)
    held = await add(store, limits=("key",))

    assert await told(store, later) == [("job.created", "scheduled")]
    assert await told(store, held) == [("job.created", "held")]


async def test_a_schedule_and_a_follow_up_are_told_of(store: Store, clock: FakeClock) -> None:
    await store.put_schedule(ScheduleRow(name="hourly", every_seconds=3600, job=row("report")))
    clock.advance(3600)
    [fired] = await store.fire_schedules()
    job = await claim_one(store)
    follow_up = row("next")
    await accept(store, completion(job, then=(follow_up,)))

    assert job.id == fired.id
    kinds = [(e.type, e.kind) for e in await all_events(store)]
    assert kinds == [
        ("job.created", "report"),
        ("job.started", "report"),
        ("job.finished", "report"),
        ("job.created", "next"),
    ]


async def test_each_end_tells_its_state(store: Store, clock: FakeClock) -> None:
    failed, stopped, retried = await add_many(store, 3)
    jobs = {job.id: job for job in await claim(store, 3)}
    await fail(store, jobs[failed])
    await accept(store, cancellation(jobs[stopped]))
    await accept(store, attempt(jobs[retried]))
    again = await claim_one(store)
    await complete(store, again)
    unclaimed = await add(store)
    await store.cancel_jobs([unclaimed], "not wanted")
    crashing = await add(store, max_crashes=1)
    await claim_one(store)
    clock.advance(61)
    await store.rescue_jobs()

    assert (await told(store, failed))[-1] == ("job.finished", "failed")
    assert (await told(store, stopped))[-1] == ("job.finished", "cancelled")
    assert (await told(store, retried))[1:] == [
        ("job.started", "active"),
        ("job.started", "active"),
        ("job.finished", "completed"),
    ]
    assert (await told(store, unclaimed))[-1] == ("job.finished", "cancelled")
    assert (await told(store, crashing))[-1] == ("job.finished", "failed")


async def test_finishing_and_claiming_at_once_tells_of_both(store: Store) -> None:
    first, second = await add_many(store, 2)
    job = await claim_one(store)
    await store.finish_jobs([completion(job)], claim=wish(1))

    assert [(e.type, e.job_id) for e in await all_events(store)][2:] == [
        ("job.started", first),
        ("job.finished", first),
        ("job.started", second),
    ]


async def test_a_reader_that_comes_back_at_any_cursor_sees_exactly_the_rest(store: Store) -> None:
    group = await make_group(store)
    await add_many(store, 7, group=group.id)
    await add_many(store, 60, queue="other")
    jobs = await claim(store, 10)
    await accept(store, *map(completion, jobs[:4]), cancellation(jobs[4]))
    events = await all_events(store)

    assert len(events) > 80
    assert len({event.cursor for event in events}) == len(events)
    for number, event in enumerate(events):
        assert await all_events(store, event.cursor) == events[number + 1 :]


async def test_a_refused_or_failing_insert_leaves_no_event(store: Store) -> None:
    group = await make_group(store)
    await store.close_group(group.id)
    await add(store, unique="one")
    before = await all_events(store)
    with pytest.raises(Exception, match="ended"):
        await store.insert_jobs([row(), row(group=group.id)])
    await store.insert_jobs([row(unique="one"), row(unique="one", on_conflict="reject")])

    assert await all_events(store) == before


@pytest.mark.requires("transactional_insert")
async def test_a_callers_transaction_is_told_of_when_it_commits(
    store: Store, caller: Caller
) -> None:
    job_row = row()
    await store.insert_jobs([job_row], tx=caller.connection)
    assert await all_events(store) == []
    await caller.commit()

    assert await told(store, job_row.id) == [("job.created", "ready")]


@pytest.mark.requires("transactional_insert")
async def test_a_rolled_back_transaction_is_not_told_of(store: Store, caller: Caller) -> None:
    await store.insert_jobs([row()], tx=caller.connection)
    await caller.rollback()
    known = await add(store)

    assert [event.job_id for event in await all_events(store)] == [known]


@pytest.mark.requires("many_machines")
async def test_a_callers_long_transaction_keeps_no_reader_waiting(
    store: Store, caller: Caller
) -> None:
    await store.insert_jobs([row("late")], tx=caller.connection)
    known = await add(store)
    seen = await all_events(store)
    await caller.commit()
    rest = await all_events(store, seen[-1].cursor)

    assert [event.job_id for event in seen] == [known]
    assert [event.kind for event in rest] == ["late"]


@pytest.mark.requires("many_machines")
async def test_a_late_commit_is_not_missed(store: Store, store_name: str, store_url: str) -> None:
    """The one with the smaller number commits last."""
    early = await store.begin()
    late_id = new_id()
    await early.execute(
        "INSERT INTO windrow.event (at, leaf, type, state, queue, kind, job_ids)"
        " VALUES (now(), windrow.event_leaf(now()), 'job.created', 'ready', 'q', 'late',"
        " ARRAY[$1::uuid])",
        late_id,
    )
    known = await add(store)
    seen = await all_events(store)
    connection: Any = connect_beside(store_name, store_url)
    [(numbered,)] = connection.execute("SELECT count(*) FROM windrow.event").fetchall()
    connection.close()
    assert (numbered, seen) == (1, []), "what comes later waits"

    await early.commit()  # type: ignore[attr-defined]
    events = await all_events(store)
    assert [event.job_id for event in events] == [late_id, known]


@pytest.mark.requires("many_machines")
async def test_many_writers_and_a_reader_miss_nothing(
    store: Store, open_another: OpenAnother
) -> None:
    writers = [await open_another() for _ in range(4)]
    seen: list[str] = []

    async def write(writer: Store, number: int) -> list[str]:
        made = []
        for step in range(25):
            made += await add_many(writer, 1 + (number + step) % 3)
            if step % 3 == 0:
                jobs = await claim(writer, 2)
                await writer.finish_jobs([completion(job) for job in jobs])
        return made

    async def read() -> None:
        reader = Queue(store).events(OLDEST, types="job.created")
        while event := await anext(reader):
            seen.append(str(event.job_id))

    reading = asyncio.create_task(read())
    made = await asyncio.gather(*(write(w, number) for number, w in enumerate(writers)))
    wanted = sorted(job_id for part in made for job_id in part)
    async with asyncio.timeout(LONG):
        while len(seen) < len(wanted):
            await asyncio.sleep(0.02)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)

    assert sorted(seen) == wanted
    order = defaultdict(list)
    for event in await all_events(store):
        order[event.job_id].append(event.type)
    assert {tuple(types) for types in order.values()} <= {
        ("job.created",),
        ("job.created", "job.started", "job.finished"),
    }


async def test_a_finish_repeated_after_a_lost_reply_is_told_once(store: Store) -> None:
    faulty = FaultyStore(store)
    faulty.lose_reply("finish_jobs")
    job = await add_and_claim(store)
    with pytest.raises(StoreUnavailable):
        await faulty.finish_jobs([completion(job)])
    assert (await faulty.finish_jobs([completion(job)])).lost == ()

    assert await told(store, job.id) == [
        ("job.created", "ready"),
        ("job.started", "active"),
        ("job.finished", "completed"),
    ]


async def test_an_insert_repeated_after_a_lost_reply_is_told_once(store: Store) -> None:
    faulty = FaultyStore(store)
    faulty.lose_reply("insert_jobs")
    queue = Queue(faulty)
    job = await queue.enqueue("work")

    assert await told(store, job.id) == [("job.created", "ready")]


async def test_a_stale_worker_makes_no_event(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    clock.advance(61)
    await store.rescue_jobs()
    before = await all_events(store)
    assert job.lease_token
    await store.finish_jobs([completion(job)])
    await store.report_progress([ProgressReport(job.id, job.lease_token, 50)])

    assert await all_events(store) == before


async def test_a_reader_survives_a_database_that_was_away(store: Store) -> None:
    faulty = FaultyStore(store)
    job_id = await add(store)
    reader = Queue(faulty).events(OLDEST, follow=False)
    faulty.fail_before("read_events")
    with pytest.raises(StoreUnavailable):
        await anext(reader)

    assert (await anext(reader)).job_id == job_id


async def test_following_begins_with_what_happens_next(store: Store, reader: EventReader) -> None:
    job_id = await add(store)
    event = await next_of(reader)

    assert (event.type, event.job_id) == ("job.created", job_id)
    assert reader.cursor == event.cursor


async def test_a_sleeping_reader_hears_of_another_store(
    store: Store, reader: EventReader, open_another: OpenAnother
) -> None:
    other = await open_another()
    following = asyncio.create_task(next_of(reader))
    await asyncio.sleep(0.1)
    job_id = await add(other)

    assert (await following).job_id == job_id


async def test_several_readers_each_see_everything(store: Store, open_another: OpenAnother) -> None:
    other = await open_another()
    async with (
        Queue(store).events() as first,
        Queue(store).events(types=["job.finished"]) as second,
        Queue(other).events() as third,
    ):
        job = await add_and_claim(store)
        await complete(store, job)
        everything = [await next_of(first) for _ in range(3)]

        assert everything == [await next_of(third) for _ in range(3)]
        assert await next_of(second) == everything[-1]


async def test_filters_choose_by_type_queue_group_and_job(store: Store) -> None:
    group = await make_group(store)
    member = await add(store, group=group.id, queue="a")
    others = await add_many(store, 5, queue="b")
    await complete(store, await claim_one(store, "a"))

    assert {e.job_id for e in await all_events(store, group=group.id)} == {member, None}
    assert [e.job_id for e in await all_events(store, queue="b")] == others
    assert [e.job_id for e in await all_events(store, job=others[3])] == [others[3]]
    assert [e.job_id for e in await all_events(store, types=["job.started"])] == [member]
    assert await all_events(store, types=["job.started"], queue="b") == []
    with pytest.raises(InvalidJob, match=r"job\.born"):
        Queue(store).events(types=["job.born"])


async def test_a_reader_of_rare_events_keeps_up_its_cursor(store: Store) -> None:
    reader = Queue(store).events(OLDEST, types="group.ended", follow=False)
    await add_many(store, 3)
    assert [event async for event in reader] == []
    last = (await all_events(store))[-1]

    assert reader.cursor == last.cursor
    assert await all_events(store, reader.cursor or "") == []


async def test_old_events_are_removed_and_the_rest_can_be_read(
    store: Store, clock: FakeClock
) -> None:
    await add_many(store, 3)
    old = await all_events(store)
    clock.advance(DAY + 6 * 3600)
    job_id = await add(store)
    kept = [event for event in await all_events(store) if event.job_id == job_id]
    while not await store.prune_events(DAY):
        pass

    assert await all_events(store) == kept
    assert await all_events(store, old[-1].cursor) == kept
    with pytest.raises(EventsPruned) as caught:
        await all_events(store, old[0].cursor)
    assert await all_events(store, caught.value.oldest) == kept


async def test_events_are_kept_for_their_time(store: Store, clock: FakeClock) -> None:
    await add(store)
    clock.advance(DAY - 1)
    assert await store.prune_events(DAY)

    assert len(await all_events(store)) == 1


async def test_a_stream_that_was_emptied_goes_on(store: Store, clock: FakeClock) -> None:
    await add(store)
    [old] = await all_events(store)
    clock.advance(2 * DAY)
    while not await store.prune_events(DAY):
        pass
    assert await all_events(store) == []
    assert await all_events(store, old.cursor) == []
    job_id = await add(store)

    assert [event.job_id for event in await all_events(store, old.cursor)] == [job_id]


async def test_pruning_the_queue_prunes_its_events(store: Store, clock: FakeClock) -> None:
    queue = Queue(store)
    await add(store)
    clock.advance(2 * DAY)
    await queue.prune()
    assert await all_events(store) == []
    await add(store)
    clock.advance(2 * DAY)
    await queue.tend()

    assert await all_events(store) == []


async def test_a_reader_that_is_overtaken_by_the_prune_is_told(
    store: Store, clock: FakeClock
) -> None:
    await add_many(store, 2)
    async with aclosing(Queue(store).events(OLDEST, follow=False)) as reader:
        [first, second] = [await anext(reader), await anext(reader)]
        await add(store)
        clock.advance(2 * DAY)
        assert await store.prune_events(DAY)
        with pytest.raises(EventsPruned, match=second.cursor):
            await anext(reader)
    assert first.cursor != second.cursor


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.", "1.x", "1.2.3", "1,5", "９", "9" * 30])
async def test_what_is_no_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        await all_events(store, cursor)


async def test_a_cursor_of_another_database_is_refused(store: Store) -> None:
    with pytest.raises(InvalidCursor, match="after all"):
        await all_events(store, "1000000")


async def test_deleted_and_moved_jobs_leave_their_events(store: Store, run_sql: RunSql) -> None:
    job_id = await add(store)
    await store.delete_jobs([job_id])

    assert await told(store, job_id) == [("job.created", "ready")]
    [(count,)] = run_sql("SELECT count(*) FROM windrow.event")
    assert count == 1


async def test_states_told_are_words_of_jobs_and_groups(store: Store) -> None:
    await add_and_claim(store, payload=bytes(raw({})).decode())
    words = {event.state for event in await all_events(store)}

    assert words <= {str(state) for state in JobState}
