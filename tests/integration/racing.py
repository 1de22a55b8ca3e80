"""What the processes of the race tests do. Each is given a verb and its options, a pipe for its
standard input and one for its output. It says there that it is ready, and waits for a line before
it starts.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TextIO

from tests.builders import completion, make_group, row, snooze, wish
from windrow import Queue
from windrow.clock import Clock
from windrow.errors import QueueFull
from windrow.ids import new_id
from windrow.queue.checks import hash_group_key
from windrow.queue.events import OLDEST
from windrow.queue.job import Job, JobState
from windrow.queue.limits import make_room
from windrow.queue.opening import open_store
from windrow.queue.records import GroupRow, JobRow
from windrow.queue.store import Store

HOUR = 3600
LARGEST_BATCH = 25
IDLE_SECONDS = 0.02


async def drain(store: Store, *, log: str, seed: int, seconds: int = 60) -> None:
    """Claim batches of random sizes and finish them until nothing is left. A job is written to the
    log once its completion was accepted."""
    dice = random.Random(seed)
    with Path(log).open("a") as file:
        jobs: list[Job] = []
        while True:
            claim = wish(dice.randint(1, LARGEST_BATCH), seconds=seconds, worker=f"worker-{seed}")
            if not jobs:
                jobs = await store.claim_jobs(claim)
            if jobs:
                jobs = await finish(store, jobs, claim if dice.random() < 0.5 else None, dice, file)
            elif await is_over(store):
                return
            else:
                await store.rescue_jobs()
                await asyncio.sleep(IDLE_SECONDS)


async def finish(
    store: Store, jobs: list[Job], claim: Any, dice: random.Random, log: TextIO
) -> list[Job]:
    """Complete the jobs, hand one in twenty of the first runs back, perhaps claim the next ones."""
    back = {job.id for job in jobs if job.runs == 1 and dice.random() < 0.05}
    ends = [snooze(job) if job.id in back else completion(job, {"by": job.id}) for job in jobs]
    finished = await store.finish_jobs(ends, claim=claim)
    for job in jobs:
        if job.id not in back and job.id not in finished.lost:
            log.write(f"{job.id}\n")
    log.flush()
    return list(finished.claimed)


async def is_over(store: Store, *also: JobState) -> bool:
    """Whether no job is ready or active, or in one of these states."""
    unfinished = {JobState.READY, JobState.ACTIVE, *also}
    found = [info.counts for info in await store.list_queues()]
    return not any(unfinished & counts.keys() for counts in found)


async def drain_and_hold(store: Store, *, log: str, hold: int, seconds: int) -> None:
    """Do some work, then sit on a batch until killed."""
    with Path(log).open("a") as file:
        for size in (10, 20, 30):
            jobs = await store.claim_jobs(wish(size, seconds=seconds, worker="victim"))
            await finish(store, jobs, None, random.Random(1), file)
    held = await store.claim_jobs(wish(hold, seconds=seconds, worker="victim"))
    say([job.id for job in held])
    await asyncio.Event().wait()


async def insert_keys(store: Store, *, keys: list[str], mode: str) -> None:
    """Insert a job for each key and tell what became of it."""
    outcomes = []
    for key in keys:
        [inserted] = await store.insert_jobs([row(unique=key, on_conflict=mode)])
        outcomes.append((inserted.outcome, inserted.id))
    say(outcomes)


async def hammer(store: Store, *, seed: int, seconds: int = 60) -> None:
    """Run limited jobs, a few milliseconds each, until none is left."""
    dice = random.Random(seed)
    while True:
        claim = wish(dice.randint(1, 4), seconds=seconds, worker=f"worker-{seed}")
        jobs = await store.claim_jobs(claim)
        if jobs:
            await asyncio.sleep(dice.uniform(0, 0.004))
            back = {job.id for job in jobs if job.runs == 1 and dice.random() < 0.05}
            ends = [snooze(job) if job.id in back else completion(job) for job in jobs]
            await store.finish_jobs(ends)
            await make_room(store, [job.limits for job in jobs])
            continue
        await store.rescue_jobs()
        if not await store.promote_jobs():
            if await is_over(store, JobState.HELD):
                return
            await asyncio.sleep(IDLE_SECONDS)


async def claim_and_hold(store: Store, *, seconds: int) -> None:
    """Sit on all that can be had until killed."""
    held = await store.claim_jobs(wish(100, seconds=seconds, worker="victim"))
    say([job.id for job in held])
    await asyncio.Event().wait()


async def insert_bounded(store: Store, *, tries: int) -> None:
    """Insert one by one, and tell how many were taken."""
    taken = 0
    for _ in range(tries):
        try:
            await store.insert_jobs([row()])
        except QueueFull:
            continue
        taken += 1
    say(taken)


async def fire(store: Store, *, seconds: float) -> None:
    """Fire schedules, a few at a time, up to the slots of so many seconds from now; tell what
    became of them."""
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    outcomes: Counter[str] = Counter()
    while True:
        fired = await store.fire_schedules(2)
        outcomes.update(one.outcome for one in fired)
        if not fired:
            next_at = min(one.next_at for one in await store.list_schedules())
            if next_at > until:
                break
            await asyncio.sleep(IDLE_SECONDS)
    say(outcomes)


async def come_and_go(store: Store, *, seed: int, rounds: int) -> None:
    """Insert jobs and run most of them. Tell which are to stay and which expire as they end."""
    stay, expire = [], []
    for _ in range(rounds):
        brief = [row(queue=f"q{seed}", priority=9, retention_seconds=0) for _ in range(20)]
        long = [row(queue=f"q{seed}", retention_seconds=5 * HOUR) for _ in range(10)]
        await store.insert_jobs([*brief, *long])
        jobs = await store.claim_jobs(wish(25, f"q{seed}", worker=f"worker-{seed}"))
        await store.finish_jobs([completion(job, {"by": job.id}) for job in jobs])
        ended = {job.id for job in jobs}
        expire += [new.id for new in brief if new.id in ended]
        stay += [new.id for new in [*brief, *long] if new.id not in set(expire)]
    say({"stay": stay, "expire": expire})


async def prune(store: Store, *, batch: int) -> None:
    """Prune as if it were two hours later, until told to stop; tell how many jobs it removed."""
    told = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    store.clock = LaterClock()
    removed = 0
    while not told.done():
        removed += (await store.prune_jobs(batch)).jobs
        await asyncio.sleep(0)
    say(removed)


async def fill_groups(store: Store, *, log: str, seed: int) -> None:
    """Insert jobs, and groups member by member, until told to stop. Jobs are written to the log
    once they were taken, groups with a mark."""
    told = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    dice = random.Random(seed)
    with Path(log).open("a") as file:
        while not told.done():
            taken = await store.insert_jobs([row() for _ in range(dice.randint(1, 20))])
            group = await store.create_group(
                GroupRow(id=new_id(), then=row("finish"), is_open=True)
            )
            file.write(f"group {group.id}\n")
            for _ in range(dice.randint(1, 4)):
                taken += await store.insert_jobs([row(group=group.id)])
                await asyncio.sleep(dice.uniform(0, 0.02))
            await store.close_group(group.id)
            file.writelines(f"{one.id}\n" for one in taken)
            file.flush()
            await asyncio.sleep(dice.uniform(0, 0.1))


async def work(store: Store, *, log: str, seed: int) -> None:
    """Claim and complete until told to stop; what was accepted is written to the log."""
    told = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    dice = random.Random(seed)
    with Path(log).open("a") as file:
        while not told.done():
            jobs = await store.claim_jobs(wish(dice.randint(1, 5), worker=f"worker-{seed}"))
            await asyncio.sleep(dice.uniform(0, 0.05))
            if jobs:
                await finish(store, jobs, None, dice, file)


class LaterClock(Clock):
    """Two hours ahead: what expires now is past its time, and past the hour it may stay longer."""

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(hours=2)


async def produce(store: Store, *, seed: int, jobs: int) -> None:
    """Insert jobs in batches of random sizes, some of them members of a group."""
    dice = random.Random(seed)
    group = await make_group(store, is_open=True)
    while jobs:
        size = min(jobs, dice.choice((1, 2, 7, 60)))
        of = group.id if dice.random() < 0.3 else None
        await store.insert_jobs([row(queue=f"q{seed % 2}", group=of) for _ in range(size)])
        jobs -= size
    await store.close_group(group.id)


async def follow(store: Store, *, log: str, ends: int) -> None:
    """Write down every event, going on behind the last one that was, until so many jobs have
    finished."""
    path = Path(log)
    written = path.read_text().splitlines() if path.exists() else []
    cursor = written[-1].split()[0] if written else OLDEST
    left = ends - sum(line.split()[1] == "job.finished" for line in written)
    if not left:  # whoever was killed had written them all
        return
    with path.open("a") as file:
        async for event in Queue(store).events(cursor):
            file.write(f"{event.cursor} {event.type} {event.job_id} {event.group_id}\n")
            file.flush()
            left -= event.type == "job.finished"
            if left == 0:
                return


async def crawl(store: Store, *, group: str, keys: int, seed: int, rounds: int, log: str) -> None:
    """Add pages with random keys to one group: by inserts, and by completions of its jobs, some of
    which also claim. Write down which keys got in."""
    dice = random.Random(seed)

    def pages() -> list[JobRow]:
        chosen = dice.sample(range(keys), dice.randint(1, 12))
        return [row("page", n, group=group, group_key=hash_group_key(str(n))) for n in chosen]

    with Path(log).open("a") as file:
        jobs: list[Job] = []
        for _ in range(rounds):
            new = pages()
            if jobs:
                claim = (
                    wish(1, seconds=HOUR, worker=f"worker-{seed}") if dice.random() < 0.5 else None
                )
                ends = [completion(jobs[0], then=tuple(new)), *map(completion, jobs[1:])]
                finished = await store.finish_jobs(ends, claim=claim)
                inserted, jobs = finished.then, [*finished.claimed]
            else:
                inserted = tuple(await store.insert_jobs(new))
                jobs = await store.claim_jobs(wish(dice.randint(1, 3), seconds=HOUR))
            for one, given in zip(inserted, new, strict=True):
                if one.outcome == "inserted":
                    file.write(f"{bytes(given.payload).decode()}\n")
            kept = await store.keep_group_keys(
                group, [hash_group_key(f"kept {seed % 3}")], new_id()
            )
            file.writelines("kept\n" for _ in kept)


def say(what: Any) -> None:
    print(json.dumps(what), flush=True)


async def main(verb: Callable[..., Awaitable[None]], url: str, **options: Any) -> None:
    store = await open_store(url)
    try:
        say("ready")
        sys.stdin.readline()
        await verb(store, **options)
    finally:
        await store.close()


def race(verb: str, options: dict[str, Any], hears: Connection, says: Connection) -> None:
    """The life of a process."""
    sys.stdin = os.fdopen(os.dup(hears.fileno()), "r")
    sys.stdout = os.fdopen(os.dup(says.fileno()), "w")
    asyncio.run(main(globals()[verb], **options))
