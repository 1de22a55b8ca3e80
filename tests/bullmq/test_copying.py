"""Jobs move to BullMQ and back, with equal counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from redis import asyncio as redis

from tests.builders import boom
from tests.bullmq.conftest import add_theirs
from tests.conftest import CopyDatabase
from windrow import NewJob, Queue
from windrow.errors import ConfigError, IllegalTransition
from windrow.queue.bullmq.connection import Links
from windrow.queue.bullmq.location import parse_url
from windrow.queue.copying import CopyStore
from windrow.queue.ids import made_at
from windrow.queue.job import Job, JobState
from windrow.redaction import redact_url
from windrow.services.copying import address_of, copy_database
from windrow.services.taking_back import take_back_jobs


@pytest.fixture
def postgres(copy_database: CopyDatabase, postgres_template: str) -> Callable[[], str]:
    return lambda: copy_database(postgres_template)


async def _fill(queue: Queue) -> None:
    """Jobs as they wait and as they ended, with what they have behind them."""
    await queue.enqueue_many(
        [NewJob("page", {"n": n, "ü": [1.50]}, queue="web") for n in range(30)]
    )
    await queue.enqueue("late", {"x": 1}, delay=3600, tags=["a"], headers={"h": 1}, priority=9)
    await queue.enqueue("only", unique="key", tenant="acme", max_attempts=7, lease=40)
    await queue.enqueue("done", queue="ends")
    lease = await queue.claim(["ends"])
    await lease.complete(lease.jobs[0], {"ok": True})
    await queue.enqueue("bad", queue="ends", max_attempts=1)
    lease = await queue.claim(["ends"])
    await lease.fail(lease.jobs[0], boom("it broke").message)
    await queue.enqueue("tried", queue="ends")
    lease = await queue.claim(["ends"])
    await lease.jobs[0].step("paid", lambda: {"spent": 5})
    await lease.fail(lease.jobs[0], "once more", retry_in=3600)
    await queue.cancel((await queue.enqueue("unwanted", queue="ends")).id, reason="no need")


async def _look(url: str) -> tuple[dict[JobState, int], dict[str, Job], dict[str, object]]:
    async with Queue.open(url) as queue:
        listed = await queue.list(limit=1000)
        jobs = await queue.get_many([job.id for job in listed])
        steps = {job_id: await queue.steps(job_id) for job_id, job in jobs.items() if job.runs}
        return await queue.counts(), jobs, {key: value for key, value in steps.items() if value}


KEPT = [
    "queue", "kind", "state", "priority", "attempts", "crashes", "max_attempts", "max_crashes",
    "tenant", "unique", "tags", "headers", "payload", "result", "error", "lease_seconds",
]  # fmt: skip


async def test_a_round_trip_over_all_three_stores_loses_and_doubles_nothing(
    tmp_path: Path, postgres: Callable[[], str], url: str
) -> None:
    first, there, back = f"sqlite:///{tmp_path / 'jobs.db'}", postgres(), postgres()
    async with Queue.open(first) as queue:
        await _fill(queue)
    counts, jobs, steps = await _look(first)

    for source, target in ((first, there), (there, url), (url, back)):
        report = await copy_database(source, target, wait=5)
        assert report.is_over, report.reasons
        now_counts, now_jobs, now_steps = await _look(target)
        assert now_counts == counts
        assert now_jobs.keys() == jobs.keys()
        for job_id, job in jobs.items():
            found = now_jobs[job_id]
            assert [getattr(found, name) for name in KEPT] == [getattr(job, name) for name in KEPT]
            assert [error.message for error in found.errors] == [
                error.message for error in job.errors
            ]
            assert abs((found.run_at - job.run_at).total_seconds()) < 0.002
        assert [*now_steps] == [*steps]
        assert not any((await _look(source))[0].values())


async def test_moved_jobs_run_where_they_have_come_to(tmp_path: Path, url: str) -> None:
    first = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(first) as queue:
        await queue.enqueue_many([NewJob("n", n, priority=n % 3) for n in range(12)])
    await copy_database(first, url, wait=5)

    async with Queue.open(url) as queue:
        lease = await queue.claim(limit=100)
        ran = [job.payload for job in lease.jobs]
        for job in lease.jobs:
            await lease.complete(job)

    assert ran == sorted(range(12), key=lambda n: (-(n % 3), n))


async def test_what_bullmq_has_no_place_for_stays_behind_with_a_reason(
    tmp_path: Path, url: str
) -> None:
    first = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(first) as queue:
        limited = await queue.enqueue("limited", limits=["host"])
        await queue.enqueue("plain")
    report = await copy_database(first, url, wait=0)

    assert "limits" in report.reasons[limited.id]
    assert report.moved == {"ready": 1}
    assert report.in_transit == 1


async def test_a_job_whose_unique_key_is_held_there_waits_on_its_way_until_it_is_free(
    tmp_path: Path, url: str
) -> None:
    first = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(first) as queue:
        moved = await queue.enqueue("page", {"from": "here"}, unique="key", tenant="acme")
    async with Queue.open(url) as there:
        holder = await there.enqueue("page", {"from": "there"}, unique="key", tenant="acme")
        for _ in range(2):
            report = await copy_database(first, url, wait=0)
            assert holder.id in report.reasons[moved.id]
            assert report.in_transit == 1
        lease = await there.claim(["default"])
        await lease.complete(lease.jobs[0])

        assert (await copy_database(first, url, wait=5)).is_over
        lease = await there.claim(["default"])
        assert [job.payload for job in lease.jobs] == [{"from": "here"}]


async def test_a_unique_key_of_a_job_that_is_gone_holds_nobody_up(tmp_path: Path, url: str) -> None:
    first = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(first) as queue:
        moved = await queue.enqueue("page", unique="key")
    async with Queue.open(url) as there:
        gone = await there.enqueue("page", unique="key")
        client = redis.from_url(url.removeprefix("bullmq+").partition("?")[0])
        await client.delete(f"{parse_url(url).prefix}:default:{gone.id}")  # as an outage leaves it
        await client.aclose()

        assert (await copy_database(first, url, wait=5)).is_over
        assert (await there.get(moved.id)).state is JobState.READY


async def test_settings_that_bullmq_has_no_place_for_hold_no_job_up(
    tmp_path: Path, url: str
) -> None:
    first = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(first) as queue:
        await queue.set_limit("host", active=2)
        await queue.set_queue("default", max_depth=10)
        await queue.enqueue("plain")
        colon = await queue.enqueue("plain", queue="a:b")
    report = await copy_database(first, url, wait=0)

    assert report.moved == {"ready": 1}
    assert (report.limits, report.limits_left) == (0, 1)
    assert report.reasons == {colon.id: "BullMQ takes no colon in the name of a queue"}


async def test_jobs_on_their_way_to_one_prefix_are_not_handed_to_another(
    tmp_path: Path, make_bullmq_url: Callable[[], str]
) -> None:
    first = f"sqlite:///{tmp_path / 'jobs.db'}"
    there, elsewhere = make_bullmq_url(), make_bullmq_url()
    async with Queue.open(first) as queue:
        await queue.enqueue("limited", limits=["host"])
    assert (await copy_database(first, there, wait=0)).in_transit == 1

    with pytest.raises(ConfigError, match="on their way to"):
        await copy_database(first, elsewhere, wait=0)
    with pytest.raises(ConfigError, match="on their way to"):
        await take_back_jobs(first, elsewhere)
    assert (await take_back_jobs(first, there)).taken_back == 1


async def test_copies_while_jobs_are_claimed_take_no_job_that_runs(
    tmp_path: Path, url: str
) -> None:
    target = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(url) as queue:
        await queue.enqueue_many([NewJob("n", n) for n in range(60)])
        ran: list[int] = []

        async def work() -> None:
            while lease := await queue.claim(limit=3):
                for job in lease.jobs:
                    await asyncio.sleep(0)
                    await lease.complete(job)
                    ran.append(job.payload)

        await asyncio.gather(work(), copy_database(url, target, wait=10))

    async with Queue.open(target) as moved:
        jobs = await moved.list(limit=1000)
    waiting = [job.payload for job in jobs if job.state is JobState.READY]
    assert sorted(ran + waiting) == list(range(60))
    assert len(jobs) == 60


async def _fill_with_theirs(queue: Queue, url: str) -> None:
    """Jobs of others: three that wait, one late, one each that has ended in either way."""
    await add_theirs(url, "images", 5, attempts=3)
    await add_theirs(url, "images", delay=3_600_000)
    lease = await queue.claim(["images"], limit=2)
    await lease.complete(lease.jobs[0], {"ok": True})
    await lease.fail(lease.jobs[1], "no luck", retry=False)
    await queue.cancel("images:3")
    await add_theirs(url, "named", jobId="mine")
    await queue.enqueue("own", queue="images")


@pytest.mark.parametrize("between", ["sqlite", "postgres"])
async def test_jobs_of_node_come_back_under_their_own_ids(
    tmp_path: Path, postgres: Callable[[], str], url: str, between: str
) -> None:
    there = postgres() if between == "postgres" else f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(url) as queue:
        await queue.pause("named")  # so that it knows the queue
        await _fill_with_theirs(queue, url)
    counts, jobs, _ = await _look(url)
    assert {"images:1", "images:3", "images:6", "named:mine"} < jobs.keys()

    report = await copy_database(url, there, wait=5)
    assert report.is_over, report.reasons
    moved_counts, moved, _ = await _look(there)
    assert moved_counts == counts
    for job in moved.values():  # ids are in the order of the times there
        assert abs((made_at(job.id) - job.created_at).total_seconds()) < 1
    report = await copy_database(there, url, wait=5)
    assert report.is_over, report.reasons

    back_counts, back, _ = await _look(url)
    assert back_counts == counts
    assert back.keys() == jobs.keys()
    for job_id, job in jobs.items():
        kept = [getattr(back[job_id], name) for name in KEPT]
        assert kept == [getattr(job, name) for name in KEPT]
    assert f"images:{(await add_theirs(url, 'images'))[0]}" not in jobs


async def test_jobs_of_node_that_are_taken_back_are_what_they_were(
    url: str, postgres: Callable[[], str]
) -> None:
    target = postgres()
    async with Queue.open(url) as queue:
        await _fill_with_theirs(queue, url)
        counts, jobs, _ = await _look(url)
        source = cast(CopyStore, queue.store)
        while await source.take_jobs(address_of(redact_url(target)), 3):
            pass
        assert not any((await queue.counts()).values())

    assert (await take_back_jobs(url, target)).is_over
    back_counts, back, _ = await _look(url)
    assert (back_counts, back.keys()) == (counts, jobs.keys())


async def test_an_id_that_has_become_another_jobs_is_left_to_it(
    tmp_path: Path, url: str, make_bullmq_url: Callable[[], str]
) -> None:
    """Numbers are given by each Redis: the same one is another job elsewhere."""
    first, there = f"sqlite:///{tmp_path / 'jobs.db'}", make_bullmq_url()
    await add_theirs(url, "images", 2)
    async with Queue.open(url) as queue:
        await queue.claim(["other"])
        await queue.pause("images")
    await copy_database(url, first, wait=5)
    location = parse_url(url)
    client = redis.from_url(location.redis_url)
    await client.delete(f"{location.prefix}:images:id")  # as on a Redis that has not counted yet
    await client.aclose()
    assert await add_theirs(url, "images") == ["1"]

    assert (await copy_database(first, url, wait=5)).is_over
    _, jobs, _ = await _look(url)
    assert len(jobs) == 3
    assert sorted(job.payload["n"] for job in jobs.values()) == [0, 0, 1]
    assert "images:2" not in jobs, "BullMQ would give that number once more"

    assert (await copy_database(url, there, wait=5)).is_over
    assert len((await _look(there))[1]) == 3


async def test_the_next_job_of_a_scheduler_of_bullmqs_stays(tmp_path: Path, url: str) -> None:
    """BullMQ does not let go of it: whoever took it would have it twice."""
    location = parse_url(url)
    await add_theirs(url, "ticks", jobId="repeat:tick:1000")
    client = redis.from_url(location.redis_url)
    await client.hset(f"{location.prefix}:ticks:repeat:tick:1000", "rjk", "tick")
    await client.zadd(f"{location.prefix}:ticks:repeat", {"tick": 1000})
    await client.aclose()
    async with Queue.open(url) as queue:
        await queue.pause("ticks")
        report = await copy_database(url, f"sqlite:///{tmp_path / 'jobs.db'}", wait=0)
        assert (report.moved, report.left) == ({}, {"ticks": {"ready": 1}})
        with pytest.raises(IllegalTransition):
            await queue.cancel("ticks:repeat:tick:1000")
        with pytest.raises(IllegalTransition):
            await queue.delete("ticks:repeat:tick:1000")
        assert (await queue.get("ticks:repeat:tick:1000")).state is JobState.READY


async def test_a_forecast_says_what_bullmq_would_refuse(tmp_path: Path, url: str) -> None:
    first = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(first) as queue:
        await queue.enqueue("plain")
        for _ in range(2):
            await queue.enqueue("limited", limits=["host"])
        await queue.schedule("tick", "tick", every=60)
    forecast = await copy_database(first, url, is_dry_run=True)
    assert (forecast.moved.total(), forecast.schedules) == (1, 0)
    assert [*forecast.reasons.values()] == [
        "2 jobs would stay: BullMQ has no limits per key",
        "1 would stay: there are none there",
    ]
    report = await copy_database(first, url, wait=1)
    assert (report.moved.total(), report.schedules, report.in_transit) == (1, 0, 2)
    assert "schedules" in report.reasons["tick"]


def test_options_that_there_are_not_are_refused_in_one_sentence() -> None:
    for query in ("nonsense=1", "row=sqlite:///x.db", "ssl_ca_certs=x"):
        with pytest.raises(ConfigError, match=query.partition("=")[0]):
            parse_url(f"bullmq+redis://host/0?{query}")
    location = parse_url("bullmq+rediss://host/0?ssl_ca_certs=x&socket_timeout=2&prefix=p")
    assert location.redis_url == "rediss://host/0?ssl_ca_certs=x&socket_timeout=2"
    with pytest.raises(ConfigError, match="socket_timeout"):
        Links(parse_url("bullmq+redis://host/0?socket_timeout=soon"))
