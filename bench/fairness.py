"""`python -m bench.fairness`: how long ten jobs of one key wait behind very many of another.

What is told is the order of completion, which does not depend on how fast the machine is: after how
many ends in all the last of the ten was done. The ten are enqueued last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

import msgspec

from tests.postgres_server import PostgresServer, create_database
from windrow.ids import new_id
from windrow.queue.job import Job, JobState
from windrow.queue.opening import open_store
from windrow.queue.records import Claim, Finish, JobRow, LimitRow
from windrow.queue.store import Store

FEW = 10
EMPTY = msgspec.Raw(b"null")
BATCH = 5000
AT_ONCE = 10  # jobs claimed together


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    jobs = parser.parse_args().jobs
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        found["sqlite"] = await measure(f"sqlite:///{Path(folder) / 'fair.db'}", jobs)
    server = PostgresServer()
    server.start()
    try:
        found["postgres"] = await measure(create_database(server.url()), jobs)
    finally:
        server.stop()
    print(json.dumps({"jobs": jobs, "few": FEW, "stores": found}, indent=2))


async def measure(url: str, jobs: int) -> dict[str, object]:
    store = await open_store(url)
    try:
        await store.migrate()
        await fill(store, "many", jobs)
        return {
            "last of the few is done after": await last_of_few(store),
            "one at a time, of both": await last_of_few(store, at_once=1),
        }
    finally:
        await store.close()


async def last_of_few(store: Store, at_once: int = AT_ONCE) -> int:
    key = f"few-{at_once}"
    if at_once == 1:
        await store.set_limit(LimitRow("many", active=1))
        await store.set_limit(LimitRow(key, active=1))
    await fill(store, key, FEW)
    left, ends = FEW, 0
    while left:
        done = await run_some(store, at_once)
        for job in done:
            ends += 1
            left -= job.limits[0] == key
            if not left:
                break
    await store.remove_limit("many")
    return ends


async def fill(store: Store, key: str, count: int) -> None:
    for first in range(0, count, BATCH):
        rows = [new_row(key) for _ in range(min(BATCH, count - first))]
        await store.insert_jobs(rows)
    await store.promote_jobs()


def new_row(key: str) -> JobRow:
    return JobRow(
        id=new_id(),
        queue="fair",
        kind="work",
        payload=EMPTY,
        priority=5,
        max_attempts=5,
        max_crashes=5,
        limits=(key,),
    )


async def run_some(store: Store, limit: int) -> list[Job]:
    jobs = await store.claim_jobs(Claim(("fair",), limit, 60, "bench"))
    ends = [Finish(job.id, job.lease_token or "", JobState.COMPLETED) for job in jobs]
    await store.finish_jobs(ends)
    await store.promote_jobs()
    return jobs


if __name__ == "__main__":
    asyncio.run(main())
