"""Everything moves from one database to the other, and back, while it is in use."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from tests.builders import (
    EVERYTHING,
    accept,
    add,
    add_and_claim,
    add_many,
    attempt,
    claim,
    claim_one,
    complete,
    completion,
    counted,
    fail,
    get,
    get_group,
    ids,
    insert,
    make_group,
    row,
    state,
    states,
    tallied,
    wish,
)
from tests.faults import FaultyStore
from tests.integration.moving import move
from tests.integration.test_race import Racer
from tests.migrations import make_development_database, traces
from tests.processes import ROOT, Command, run
from windrow import NewJob, Queue
from windrow.errors import ConfigError, SchemaTooOld, StoreUnavailable
from windrow.queue import copying
from windrow.queue.checks import hash_group_key
from windrow.queue.copying import CopyStore
from windrow.queue.job import Job, JobState
from windrow.queue.records import GroupRow, LimitRow, ProgressReport, ScheduleRow
from windrow.queue.store import Store
from windrow.services import copying as services
from windrow.services.copying import Copy, CopyReport, copy_database
from windrow.services.database import database_status

ROUNDS = 10
KILLS = 5
BIG = "x" * 1_500_000
NOT_KEPT = {"seq", "lease_token", "_binding", "_tx", "_leased_run", "_payload", "_result"}


async def fill(store: Store) -> dict[str, Job]:
    """Jobs in every state but active, with everything a job can have."""
    now = datetime.now(UTC)
    await add(store, "plain", {"n": 1.50, "text": "ü\u2028"}, queue="b", priority=9)
    await add(store, "later", run_at=now + timedelta(hours=1), tags=("a", "b"), headers={"h": [1]})
    await store.pause_jobs([await add(store, "paused", tenant="t", unique="k1")])
    await add(store, "limited", limits=("host:x",), max_hold_seconds=3600)
    done = await add(store, "done", [1], priority=99, retention_seconds=-1)
    job = await claim_one(store)
    assert job.id == done
    token = job.lease_token or ""
    await store.report_progress([ProgressReport(job.id, token, 40, "half", {"pages": 3})])
    await complete(store, job, {"big": BIG})
    await add(store, "bad", {}, priority=99, max_attempts=2, lease_seconds=33)
    await accept(store, attempt(await claim_one(store), message="first"))
    await fail(store, await claim_one(store), "second\nline")
    await add(store, "tried", priority=98)
    tried = await claim_one(store)
    for name, result in (("fetch", '{"n": 1.50}'), ("big", f'"{BIG}"'), ("nothing", "null")):
        await store.save_step(tried.id, tried.lease_token or "", name, result)
    await accept(store, attempt(tried, delay=500))
    await store.cancel_jobs([await add(store, "unwanted")], "no longer")
    found = await store.list_jobs(EVERYTHING, limit=1000)
    return await store.get_jobs(ids(found))


def kept(job: Job) -> dict[str, Any]:
    """All that must survive."""
    shown = {name: getattr(job, name) for name in job.__struct_fields__}
    shown |= {"result_json": job.result, "payload_json": _text(job.payload_json)}
    return {name: value for name, value in shown.items() if name not in NOT_KEPT}


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


async def test_everything_of_a_job_survives(both: tuple[Store, Store]) -> None:
    source, target = both
    before = await fill(source)
    steps = {job_id: await source.get_steps(job_id) for job_id in before}
    assert sorted(map(len, steps.values()))[-2:] == [0, 3]

    report = await move(source, target)

    after = await target.get_jobs(list(before))
    assert {job_id: await target.get_steps(job_id) for job_id in before} == steps
    assert not any([await source.get_steps(job_id) for job_id in before])
    assert {i: kept(job) for i, job in after.items()} == {i: kept(j) for i, j in before.items()}
    assert await source.list_jobs(EVERYTHING) == []
    assert report.is_over
    assert report.checked == len(before)
    assert report.sent == report.received
    assert report.moved.total() == len(before)


async def test_jobs_are_claimed_in_the_same_order(both: tuple[Store, Store]) -> None:
    source, target = both
    dice = random.Random(7)
    rows = [row(priority=dice.randint(1, 3), queue=dice.choice("ab")) for _ in range(450)]
    group = await make_group(source)
    for one in rows:
        dressed = {"group": group.id} if dice.random() < 0.2 else {}
        await source.insert_jobs([one.__class__(**_fields(one) | dressed)])

    await move(source, target)
    late = await add(target, priority=1, queue="a")

    expected = [one.id for one in sorted(rows, key=lambda one: -one.priority)]
    claimed = [job.id for _ in range(46) for job in await claim(target, 10)]
    assert claimed == [*expected, late]


def _fields(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}


async def test_unique_keys_hold_after_the_move(both: tuple[Store, Store]) -> None:
    source, target = both
    first = await add(source, unique="k", tenant="t")
    await move(source, target)
    assert (await insert(target, unique="k", tenant="t")).id == first

    second = await add(source, unique="k", tenant="t")  # the source no longer knows the key
    third_report = await move(source, target)
    assert third_report.is_over
    assert await state(target, second) is JobState.HELD
    third = await add(source, unique="k", tenant="t")
    refused = await move(source, target)
    assert not refused.is_over
    assert refused.in_transit == 1
    assert first in refused.reasons[third] or second in refused.reasons[third]

    await complete(target, await claim_one(target))
    assert (await claim_one(target)).id == second  # the follower took the place
    assert (await move(source, target)).is_over
    assert await state(target, third) is JobState.HELD


async def test_a_group_moves_as_a_whole_and_ends_once(both: tuple[Store, Store]) -> None:
    source, target = both
    root = await add_and_claim(source, "root")
    group = await make_group(source, root=root.id, then=row("finish"))
    members = await add_many(source, 3, group=group.id)
    await complete(source, root, {"found": 3})
    running = await claim_one(source)

    report = await move(source, target)
    assert not report.is_over
    assert await target.get_group(group.id) is None

    await complete(source, running)
    assert (await move(source, target)).is_over
    assert await source.get_group(group.id) is None
    moved = await get_group(target, group.id)
    assert (moved.pending, moved.state) == (2, "active")
    assert await state(target, root.id) is JobState.WAITING

    for job in await claim(target, 10):
        assert job.id in members
        await complete(target, job)
    assert (await get_group(target, group.id)).state == "completed"
    ended = await get(target, root.id)
    assert (ended.state, ended.result) == (JobState.COMPLETED, {"found": 3})
    finish_jobs = [job for job in await target.list_jobs(EVERYTHING) if job.kind == "finish"]
    assert len(finish_jobs) == 1


async def test_groups_that_hang_together_move_together(both: tuple[Store, Store]) -> None:
    source, target = both
    outer_root = await add_and_claim(source, "outer")
    outer = await make_group(source, root=outer_root.id)
    inner_root = await add_and_claim(source, "inner", group=outer.id)
    inner = await make_group(source, root=inner_root.id)
    await add(source, "leaf", group=inner.id)
    await complete(source, outer_root)

    assert not (await move(source, target)).is_over  # the inner root runs
    assert await target.list_jobs(EVERYTHING) == []
    await complete(source, inner_root)
    assert (await move(source, target)).is_over

    await complete(target, await claim_one(target))
    roots = [outer_root.id, inner_root.id]
    assert await states(target, roots) == [JobState.COMPLETED, JobState.COMPLETED]


async def test_settings_limits_and_schedules_move(both: tuple[Store, Store]) -> None:
    source, target = both
    await source.pause_queue("slow")
    await source.set_queue("slow", 10, "reject")
    await source.set_retention("slow", {"failed": 60})
    await add_many(source, 2, queue="busy")
    await source.set_limit(LimitRow("host:x", active=3, per_second=2.0))
    schedule = await source.put_schedule(
        ScheduleRow(name="nightly", job=row("tick", headers={"a": 1}), cron="0 3 * * *")
    )

    await move(source, target, drains=True)
    await move(source, target, drains=True)

    found = {info.name: info for info in await target.list_queues()}
    assert (found["slow"].is_paused, found["slow"].max_depth) == (True, 10)
    assert not found["busy"].is_paused
    assert (await target.list_retention())["slow"].failed == 60
    [limit] = [limit for limit in await target.list_limits() if limit.key == "host:x"]
    assert (limit.active, limit.per_second) == (3, 2.0)
    assert [(s.name, s.next_at) for s in await target.list_schedules()] == [
        ("nightly", schedule.next_at)
    ]
    assert await source.list_schedules() == []


async def test_a_running_job_is_waited_for_or_named(both: tuple[Store, Store]) -> None:
    source, target = both
    job = await add_and_claim(source)
    report = await move(source, target)
    assert report.left == {"default": {"active": 1}}
    assert "worker-1" in report.reasons[job.id]

    async def finish_soon() -> None:
        await asyncio.sleep(0.3)
        await complete(source, job, {"ok": True})

    _, report = await asyncio.gather(finish_soon(), move(source, target, wait=30))
    assert report.is_over
    assert (await get(target, job.id)).result == {"ok": True}


async def test_jobs_that_were_there_before_stay_as_they_are(both: tuple[Store, Store]) -> None:
    source, target = both
    one = row(payload="here")
    await source.insert_jobs([one])
    await target.insert_jobs([row(id=one.id, payload="there")])
    report = await move(source, target)
    assert report.known == 1
    assert report.is_over
    assert (await get(target, one.id)).payload == "there"


async def test_a_dry_run_changes_nothing(urls: tuple[str, str], both: tuple[Store, Store]) -> None:
    source, target = both
    before = await fill(source)
    report = await copy_database(*urls, is_dry_run=True)
    assert report.moved.total() == len(before)
    assert await target.list_jobs(EVERYTHING) == []
    assert len(await source.list_jobs(EVERYTHING)) == len(before)


@pytest.mark.parametrize("is_dry_run", [True, False])
async def test_a_database_of_a_development_version_is_no_target(
    urls: tuple[str, str], tmp_path: Path, is_dry_run: bool
) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as beside:
        make_development_database("sqlite", beside)
        before = traces("sqlite", beside)
        with pytest.raises(SchemaTooOld):
            await copy_database(urls[0], f"sqlite:///{tmp_path / 'old.db'}", is_dry_run=is_dry_run)
        assert traces("sqlite", beside) == before


async def test_an_unfinished_copy_to_one_place_is_not_finished_in_another(
    urls: tuple[str, str], both: tuple[Store, Store]
) -> None:
    source, target = both
    job_id = await add(source)
    await cast(CopyStore, source).take_jobs("elsewhere", 10)
    assert (await database_status(urls[0])).leaving_for == ("elsewhere",)
    with pytest.raises(ConfigError, match="on their way to elsewhere"):
        await move(source, target)
    report = CopyReport("here", "elsewhere", False)
    await Copy(cast(CopyStore, source), cast(CopyStore, target), report).run(0, False)
    assert report.resumed == 1
    assert await state(target, job_id) is JobState.READY


async def test_a_database_is_not_copied_to_itself(urls: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="same database"):
        await copy_database(urls[0], urls[0])


Verb = tuple[str, str]
BOUNDARIES: list[Verb] = [
    ("source", "take_jobs"),
    ("source", "take_groups"),
    ("target", "receive_parcel"),
    ("source", "drop_parcel"),
]


@pytest.mark.parametrize(("side", "verb"), BOUNDARIES)
@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
async def test_a_copy_goes_on_after_a_fault_at_each_commit(
    both: tuple[Store, Store], side: str, verb: str, is_written: bool
) -> None:
    source, target = both
    group = await make_group(source, then=row("finish"))
    members = await add_many(source, 5, group=group.id)
    single = await add_many(source, 450)
    faulty = FaultyStore(source if side == "source" else target)
    # The first parcel a target receives is the one that proves that it is not the source.
    call = 2 if verb == "receive_parcel" else 1
    (faulty.lose_reply if is_written else faulty.fail_before)(verb, call)
    with pytest.raises(StoreUnavailable):
        await move(faulty if side == "source" else source, faulty if side == "target" else target)

    # Jobs that reached the target run there meanwhile, and are even forgotten.
    done = [job.id for job in await claim(target, 20)]
    for job_id in done:
        [job] = [await get(target, job_id)]
        await complete(target, job)
    await target.delete_jobs(done)

    assert (await move(source, target)).is_over
    left = {job.id for job in await target.list_jobs(EVERYTHING, limit=1000)}
    assert left.isdisjoint(done)
    assert left | set(done) >= {*members, *single}
    assert len(left) + len(done) - len({*members, *single}) <= 1  # the finish job, if they ended


async def test_two_copies_at_once_share_the_work(both: tuple[Store, Store]) -> None:
    source, target = both
    wanted = await add_many(source, 1500)
    await asyncio.gather(*(move(source, target, wait=5) for _ in range(3)))
    assert await source.list_jobs(EVERYTHING) == []
    found = [job.id for job in await target.list_jobs(EVERYTHING, limit=5000)]
    assert sorted(found) == sorted(wanted)


async def test_a_group_that_something_has_just_come_to_stays(both: tuple[Store, Store]) -> None:
    """Whoever is filling it finds it where it was made."""
    source, target = both
    empty = await make_group(source)
    group = await make_group(source)
    await add(source, group=group.id)
    report = await move(source, target, settle=60)
    assert not report.is_over
    assert report.groups_left == 2
    assert {empty.id, group.id} <= report.reasons.keys()
    await add(source, group=empty.id)  # no GroupNotFound
    assert await target.list_jobs(EVERYTHING) == []

    assert (await move(source, target, settle=0)).is_over
    assert (await get_group(target, empty.id)).pending == 1
    assert (await get_group(target, group.id)).pending == 1


async def test_a_large_group_moves_in_parts_and_ends_once_when_all_have_come(
    both: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "PARCEL_JOBS", 40)
    source, target = both
    root = await add_and_claim(source, "root")
    group = await make_group(source, root=root.id, then=row("finish"))
    members = await add_many(source, 130, group=group.id)
    single = await add_many(source, 3)
    await complete(source, root)

    faulty = FaultyStore(target)
    faulty.fail_before("receive_parcel", 4)  # the proof, the single jobs, the first part
    with pytest.raises(StoreUnavailable):
        await move(source, faulty)
    assert await source.get_group(group.id) is None
    assert await claim(source, 10) == []
    early = {job.id for job in await claim(target, 1000)}
    assert len(early & set(members)) == 40
    for job in (await target.get_jobs(sorted(early))).values():
        await complete(target, job)
    assert (await get_group(target, group.id)).pending == 130 - 40
    assert await state(target, root.id) is JobState.WAITING

    report = await move(source, target)
    assert report.is_over
    assert (report.resumed, report.groups) == (4, 1)
    while jobs := [job for job in await claim(target, 100) if job.kind != "finish"]:
        for job in jobs:
            await complete(target, job)
    assert (await get_group(target, group.id)).state == "completed"
    assert await state(target, root.id) is JobState.COMPLETED
    found = await target.list_jobs(EVERYTHING, limit=1000)
    finish_jobs = [job.id for job in found if job.kind == "finish"]
    assert len(finish_jobs) == 1
    assert sorted(ids(found)) == sorted([*members, *single, root.id, *finish_jobs])


async def test_keys_and_the_cap_of_a_group_move_with_it(
    both: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "KEYS_PER_ITEM", 2)
    source, target = both
    group = await make_group(source, max_jobs=5, is_open=True)
    keys = [hash_group_key(str(n)) for n in range(3)]
    pages = [await add(source, group=group.id, group_key=key) for key in keys]
    await source.delete_jobs(pages[:1])
    reserved = hash_group_key("reserved")
    await source.keep_group_keys(group.id, [reserved], pages[1])

    assert (await move(source, target)).is_over
    for key, job_id in zip([*keys, reserved], [*pages, pages[1]], strict=True):
        again = await insert(target, group=group.id, group_key=key)
        assert (again.outcome, again.id) == ("left_out", job_id)
    more = [row(group=group.id, group_key=hash_group_key(f"new {n}")) for n in range(3)]
    taken = [one.outcome for one in await target.insert_jobs(more)]
    assert taken == ["inserted", "inserted", "left_out"]


async def test_a_large_group_that_is_refused_stays_as_a_whole(
    both: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "PARCEL_JOBS", 10)
    source, target = both
    group = await make_group(source)
    await add_many(source, 35, group=group.id)
    await target.create_group(GroupRow(id=group.id))  # somebody made one of that id there
    for _ in range(2):
        report = await move(source, target)
        assert report.in_transit == 35
        assert "in the target already" in report.reasons[group.id]
        assert await target.list_jobs(EVERYTHING) == []


async def count_all(store: Store) -> int:
    return sum(sum(counts.values()) for counts in (await tallied(store)).values())


def start_copy(source: str, target: str, *words: str) -> Command:
    return Command(
        *("db", "copy", "--to", target, "--yes", "--json", *words),
        cwd=ROOT,
        environment=os.environ | {"WINDROW_DATABASE_URL": source},
    )


def test_the_command_reports_and_exits_with_3_when_something_is_left(
    urls: tuple[str, str],
) -> None:
    with Queue.sync(urls[0]) as queue:
        queue.enqueue_many([NewJob("work") for _ in range(3)])
        lease = queue.claim()
        words = ("db", "copy", "-d", urls[0], "--to", urls[1], "--yes")
        printed = run(*words, "--wait", "0", cwd=ROOT, environment=os.environ)
        assert printed.returncode == 3, printed.stderr
        assert "moved 2 jobs: 2 ready" in printed.stdout
        assert lease.jobs[0].id in printed.stdout
        lease.complete(lease.jobs[0])
    printed = run(*words, cwd=ROOT, environment=os.environ)
    assert printed.returncode == 0, printed.stderr
    assert "moved 1 jobs: 1 completed" in printed.stdout


async def stop_with_jobs_on_their_way(
    process: Command, both: tuple[Store, Store], count: int
) -> None:
    """Stop a copy when some of so many jobs are in neither database, if it is not over before."""
    while process.poll() is None:
        process.send_signal(signal.SIGSTOP)
        if sum([await count_all(store) for store in both]) < count:
            return
        process.send_signal(signal.SIGCONT)
        await asyncio.sleep(0.001)


async def test_copies_killed_at_any_moment_lose_and_double_nothing(
    urls: tuple[str, str], both: tuple[Store, Store]
) -> None:
    source, target = both
    dice = random.Random(11)
    groups = [await make_group(source, then=row("finish")) for _ in range(20)]
    wanted = await add_many(source, 8000)
    for group in groups:
        wanted += await add_many(source, 10, group=group.id)
    halfway = stranded = 0  # kills that found jobs on both sides; that left some on their way
    for number in range(ROUNDS):
        before = await count_all(source)
        process = start_copy(*urls)
        while process.poll() is None and await count_all(source) == before:
            await asyncio.sleep(0.005)
        if number % 2 == 0:
            await stop_with_jobs_on_their_way(process, both, len(wanted))
        else:
            await asyncio.sleep(dice.uniform(0, 0.3))
        process.kill()
        process.wait()
        here, there = [await count_all(store) for store in both]
        halfway += here > 0 and there > 0
        stranded += here + there < len(wanted)
    process = start_copy(*urls)
    printed = process.communicate(timeout=120)
    assert process.wait() == 0, printed
    assert json.loads(printed)["is_over"]
    assert halfway > 0
    assert stranded > 0
    assert await source.list_jobs(EVERYTHING) == []
    found = [job.id for job in await target.list_jobs(EVERYTHING, limit=20_000)]
    assert sorted(found) == sorted(wanted)
    assert [(await get_group(target, group.id)).pending for group in groups] == [10] * 20


async def test_a_copy_under_load_ends_every_job_exactly_once(
    urls: tuple[str, str], both: tuple[Store, Store]
) -> None:
    source, target = both
    enqueued: list[str] = []
    ended: list[str] = []
    produced = asyncio.Event()

    async def produce() -> None:
        for _ in range(60):
            enqueued.extend(await add_many(source, 20))
            group = await make_group(source)
            enqueued.extend(await add_many(source, 3, group=group.id))
            await asyncio.sleep(0.01)
        produced.set()

    async def work(store: Store, until: Callable[[], Awaitable[bool]]) -> None:
        while True:
            jobs = await store.claim_jobs(wish(7))
            if jobs:
                await asyncio.sleep(0.002)
                finished = await store.finish_jobs([completion(job) for job in jobs])
                ended.extend(job.id for job in jobs if job.id not in finished.lost)
            elif await until():
                return
            else:
                await asyncio.sleep(0.01)

    async def nothing_more_here() -> bool:
        return produced.is_set()

    copying = asyncio.create_task(copy_database(*urls, wait=60, settle=1))
    await asyncio.gather(
        produce(), work(source, nothing_more_here), work(source, nothing_more_here), copying
    )
    assert (await copy_database(*urls, wait=60, settle=1)).is_over

    async def all_have_ended() -> bool:
        return not (await counted(target)).get("default", {}).keys() - {JobState.COMPLETED}

    in_source = len(ended)
    await work(target, all_have_ended)
    assert await source.list_jobs(EVERYTHING) == []
    assert sorted(ended) == sorted(enqueued)
    moved = await target.list_jobs(EVERYTHING, limit=100_000)
    assert sorted(ids(moved)) == sorted(enqueued)
    assert 0 < in_source < len(enqueued)


@contextmanager
def racers(*asked: tuple[str, dict[str, Any]]) -> Iterator[list[Racer]]:
    """Processes at work, which are told to stop at the end and must have met no error."""
    started = [Racer(verb, **options) for verb, options in asked]
    try:
        assert {racer.hear() for racer in started} == {"ready"}
        for racer in started:
            racer.go()
        yield started
        for racer in started:
            racer.go()
        assert [racer.end() for racer in started] == [0] * len(started)
    finally:
        for racer in started:
            racer.kill()


@pytest.mark.chaos
async def test_copies_killed_beside_producers_and_workers_of_other_processes(
    urls: tuple[str, str], both: tuple[Store, Store], tmp_path: Path
) -> None:
    """Two processes enqueue, groups member by member, two work, and a copy is killed over and over
    and run again. What was acknowledged ends exactly once, and each group."""
    source, target = both
    dice = random.Random(3)
    logs = {name: str(tmp_path / name) for name in ("taken", "ended")}
    there = 0
    with racers(
        *(
            ("fill_groups", {"url": urls[0], "log": f"{logs['taken']}-{n}", "seed": n})
            for n in (1, 2)
        ),
        *(("work", {"url": urls[0], "log": f"{logs['ended']}-{n}", "seed": n}) for n in (3, 4)),
    ) as started:
        for _ in range(KILLS):
            process = start_copy(*urls, "--wait", "60", "--settle", "3")
            while process.poll() is None and await count_all(target) == there:
                await asyncio.sleep(0.01)
            await asyncio.sleep(dice.uniform(0, 0.8))
            process.kill()
            process.wait()
            there = await count_all(target)
        for racer in started[:2]:  # the producers; workers of the source go on for a while
            racer.go()
            assert racer.end() == 0
        started[:] = started[2:]
    process = start_copy(*urls, "--settle", "0")
    printed = process.communicate(timeout=120)
    assert process.wait() == 0, printed

    drainer = Racer("drain", url=urls[1], log=f"{logs['ended']}-5", seed=5)
    assert drainer.hear() == "ready"
    drainer.go()
    assert drainer.end() == 0
    written = [
        line for n in (1, 2) for line in Path(f"{logs['taken']}-{n}").read_text().split("\n")
    ]
    groups = [line.split()[1] for line in written if line.startswith("group")]
    taken = {line for line in written if line and not line.startswith("group")}
    runs = [Path(f"{logs['ended']}-{n}").read_text().split() for n in (3, 4, 5)]
    ended = [job_id for run in runs for job_id in run]
    found = await target.list_jobs(EVERYTHING, limit=100_000)
    finish_jobs = {job.id for job in found if job.kind == "finish"}

    assert there > 0
    assert all(runs)
    assert await source.list_jobs(EVERYTHING) == []
    assert len(ended) == len(set(ended))
    assert set(ended) == taken | finish_jobs
    assert sorted(ids(found)) == sorted(ended)
    assert len(finish_jobs) == len(groups)
    assert {(await get_group(target, group)).state for group in groups} == {"completed"}
