"""Processes killed with -9: workers, the server, and one in the middle of its transaction."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import statistics
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench.usage import cpu_seconds
from tests.api.server import Server
from tests.trust.harness import PATIENCE, Crew
from tests.trust.programs import Death
from windrow import Queue
from windrow.db.sqlite.location import parse_url
from windrow.ids import new_id

JOBS = 20_000
KILLS = 100
SPACED_KILLS = 4
JOBS_PER_KILL = 1300  # more than three workers can do while one is waited for
WORKERS = 3
LEASE = 2
BACK_SECONDS = LEASE + 5.0  # the promise
GROUPS, MEMBERS = 40, 10
LIMIT, LIMITED = 4, 400
FEWER_KILLS = 30
KEYS = tuple(f"key-{number}" for number in range(20))

DEATHS = 10
CLIENTS = 8
SERVER_KILLS = 4
ACKNOWLEDGED = 150  # between two kills of the server


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_workers_are_killed_100_times_over_20000_jobs_and_nothing_is_lost_or_done_twice(
    store_url: str, store_name: str, tmp_path: Path
) -> None:
    """N2, N3."""
    dice = random.Random(1)
    with Crew(store_url, tmp_path) as crew:
        crew.make_rows()
        async with Queue.open(store_url) as queue:
            await queue.set_limit("api", active=LIMIT)
        await crew.enqueue_groups(GROUPS, MEMBERS)
        await crew.enqueue(LIMITED, limits=["api"])
        await crew.enqueue(JOBS - LIMITED - GROUPS * MEMBERS, ("work", "work", "work", "write"))
        workers = [crew.start(lease=LEASE) for _ in range(WORKERS)]
        for kill in range(1, KILLS + 1):
            wanted = kill * JOBS * 9 // (KILLS * 10)
            await crew.until(lambda wanted=wanted: crew.done >= wanted)  # type: ignore[misc]
            victim = dice.randrange(WORKERS)
            crew.kill(workers[victim])
            workers[victim] = crew.start(lease=LEASE)
        await crew.until_drained()
        await crew.stop()
        verdict = await crew.conclude(limits={"api": LIMIT})
        back = crew.returns()
    fault = "kill -9 of workers"
    notes = {
        "exactly_once_effect": "a quarter of the jobs write a row through `job.tx`",
        "group_ends": f"{GROUPS} groups among them",
        "limits_hold": f"{LIMITED} of them under a limit of {LIMIT} at once",
    }
    for promise, note in notes.items():
        verdict.keep(promise, fault, store=store_name, faults=KILLS, note=note)
    verdict.keep(
        "at_least_once",
        fault,
        store=store_name,
        faults=KILLS,
        recovery=back,
        note="recovery: until the last job it had was claimed again, those with limits aside; so "
        "many kills in a row often hit whoever had just begun to lead",
    )


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_keys_slots_and_the_order_hold_while_workers_are_killed(
    store_url: str, store_name: str, tmp_path: Path
) -> None:
    """Producers that ask for the same keys, others whose jobs stand in a line by priority, and a
    schedule. Workers are killed, among them those who lead and fire it, and who claims from the
    line."""
    dice = random.Random(5)
    some: dict[str, Any] = {"kinds": ("work",), "pause": 0.1, "batch": 5}
    with Crew(store_url, tmp_path) as crew:
        await crew.schedule("each second", every=1)
        producers = [crew.start("produce", keys=KEYS, **some) for _ in range(2)]
        producers += [crew.start("produce", priorities=(1, 5, 9), **some) for _ in range(2)]
        programs: dict[str, dict[str, Any]] = {"work": {"queues": ["default"]}, "take_turns": {}}
        workers = [
            (program, crew.start(program, lease=LEASE, **options))
            for program, options in programs.items()
            for _ in range(2)
        ]
        for _ in range(FEWER_KILLS):
            before = crew.done
            await crew.until(lambda before=before: crew.done >= before + 40)  # type: ignore[misc]
            victim = dice.randrange(len(workers))
            program, member = workers[victim]
            crew.kill(member)
            workers[victim] = (program, crew.start(program, lease=LEASE, **programs[program]))
        for producer in producers:
            await crew.dismiss(producer)
        await crew.pause_schedules()
        await crew.until_drained(2 * PATIENCE)
        await crew.stop()
        verdict = await crew.conclude()
    counts = Counter(entry.what for entry in verdict.entries)
    asked = [one for one in verdict.entries if one.what == "enqueued" and one.key]
    refused = sum(one.outcome == "existing" for one in asked)
    in_line = sum(one.what == "enqueued" and one.priority is not None for one in verdict.entries)
    assert counts["due"] > 4  # one each second: on a fast machine it takes ten in all
    assert refused
    notes = {
        "unique_holds": f"{len(asked):,} times one of {len(KEYS)} keys was asked for, {refused:,} "
        "times it was taken",
        "schedules_fire_once": f"{counts['due']} slots of a schedule",
        "order_kept": f"{in_line:,} jobs of three priorities in one line",
    }
    for promise, note in notes.items():
        verdict.keep(
            promise,
            "kill -9 of workers, leaders among them",
            store=store_name,
            faults=FEWER_KILLS,
            note=note,
        )


@pytest.mark.chaos
async def test_jobs_of_a_killed_worker_run_again_within_its_lease_and_five_seconds(
    store_url: str, store_name: str, tmp_path: Path
) -> None:
    """N2: whoever of three is killed, the leader too; the next one when all is well again."""
    back = []
    with Crew(store_url, tmp_path) as crew:
        workers = [crew.start(lease=LEASE, seconds=0.2) for _ in range(WORKERS)]
        await crew.enqueue(SPACED_KILLS * JOBS_PER_KILL)
        for _ in range(SPACED_KILLS):
            before = crew.done
            await crew.until(lambda before=before: crew.done >= before + 60)  # type: ignore[misc]
            victim = workers.pop(0)
            killed_at = crew.kill(victim)
            workers.append(crew.start(lease=LEASE, seconds=0.2))
            await asyncio.sleep(BACK_SECONDS)
            back.append(crew.took_over(victim.by, killed_at))
        await crew.until_drained()
        await crew.stop()
        verdict = await crew.conclude()
    recovery = [seconds for seconds in back if seconds is not None]
    verdict.keep(
        "killed_worker",
        "kill -9 of one worker after the other",
        store=store_name,
        faults=SPACED_KILLS,
        recovery=recovery,
        note=f"recovery: until the last job it had was claimed again; lease {LEASE} s, so the "
        f"promise is {BACK_SECONDS:.0f} s",
    )
    assert len(recovery) == SPACED_KILLS
    assert max(recovery) <= BACK_SECONDS


@pytest.mark.chaos
@pytest.mark.parametrize("dies", ["before", "amid", "after"])
async def test_processes_that_die_around_the_commit_of_an_end_leave_it_done_once(
    store_url: str, store_name: str, tmp_path: Path, dies: Death
) -> None:
    """Each worker kills itself: before it sends an end, some moment after, or with the answer in
    its hands. On SQLite the file is whole after each of them."""
    with Crew(store_url, tmp_path) as crew:
        crew.make_rows()
        await crew.enqueue(600, ("write", "work"))
        for _ in range(2):
            crew.start(lease=1, dies=dies)
        deaths = 0
        while deaths < DEATHS:
            await crew.until(lambda: any(not one.is_alive for one in crew.members[-2:]))
            check_file(store_url)
            deaths += crew.replace_the_dead(lease=1, dies=dies)
        crew.start(lease=1)
        await crew.until_drained()
        verdict = await crew.conclude()
    moment = {"before": "before", "amid": "in the middle of", "after": "after"}[dies]
    verdict.keep(
        "exactly_once_effect",
        f"killed {moment} the write of an end",
        store=store_name,
        faults=deaths,
        note="`PRAGMA integrity_check` after each" if store_name == "sqlite" else "",
    )


def check_file(url: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(parse_url(url).path, timeout=30)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.chaos
async def test_jobs_that_the_server_acknowledged_are_there_when_it_is_killed(
    store_url: str, store_name: str, tmp_path: Path
) -> None:
    """A client that got no answer asks again under the same id; that makes no second job."""
    server = Server(tmp_path, "--no-worker")
    server.database = store_url
    recovery, starting = [], []
    with Crew(store_url, tmp_path) as crew, server:
        async with aiohttp.ClientSession(server.url) as session:
            over = asyncio.Event()
            clients = [asyncio.create_task(ask(crew, session, over)) for _ in range(CLIENTS)]
            for _ in range(SERVER_KILLS):
                await until_acknowledged(crew, ACKNOWLEDGED)
                server.kill()
                killed_at = time.monotonic()
                await asyncio.to_thread(server.start)
                starting.append(cpu_seconds(server.process.pid))
                await until_acknowledged(crew, 1)
                recovery.append(time.monotonic() - killed_at)
            over.set()
            await asyncio.gather(*clients)
        crew.start()
        await crew.until_drained()
        verdict = await crew.conclude()
    verdict.keep(
        "durable",
        "kill -9 of the API server",
        store=store_name,
        faults=SERVER_KILLS,
        recovery=recovery,
        note=f"{CLIENTS} clients; recovery: to the next acknowledgement, its start included, which "
        f"is {statistics.median(starting):.1f} s of CPU",
    )


async def ask(crew: Crew, session: aiohttp.ClientSession, over: asyncio.Event) -> None:
    """Enqueue one job after the other, each until it is acknowledged."""
    while not over.is_set():
        job_id = new_id()
        crew.history.write("offered", job_id)
        body = {"kind": "work", "id": job_id}
        while True:
            try:
                async with session.post("/queue/jobs", json=body) as answer:
                    answer.raise_for_status()
                    await answer.read()
                break
            except (aiohttp.ClientError, ConnectionError):
                await asyncio.sleep(0.02)
        crew.history.write("enqueued", job_id)


async def until_acknowledged(crew: Crew, more: int) -> None:
    wanted = crew.acknowledged + more
    await crew.until(lambda: crew.acknowledged >= wanted)
