"""`python -m bench.process`: one contestant's part, in a process of its own.

`setup`, `one` and `bulk` enqueue and print seconds as JSON; `pickup` prints when each job was asked
for; `occupy` takes jobs and keeps them; `work` is a worker until it is terminated.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from bench.contestant import Contestant, contestants

CHUNK = 1000
PAUSE = 0.02  # seconds between two jobs of `pickup`: 50 a second
LONGEST = 2.0  # seconds of single enqueues


async def enqueue_one(contestant: Contestant, url: str, first: int, jobs: int) -> dict[str, float]:
    async with contestant.produce(url) as producer:
        await producer.one(first)  # connects, imports, prepares: not timed
        began = time.perf_counter()
        done = 1
        while done < jobs and time.perf_counter() - began < LONGEST:
            await producer.one(first + done)
            done += 1
        return {"stored": done, "jobs": done - 1, "seconds": time.perf_counter() - began}


async def enqueue_bulk(contestant: Contestant, url: str, first: int, jobs: int) -> dict[str, float]:
    async with contestant.produce(url) as producer:
        await producer.one(first)  # connects, imports, prepares: not timed
        began = time.perf_counter()
        for start in range(first + 1, first + jobs, CHUNK):
            await producer.many(range(start, min(start + CHUNK, first + jobs)))
        return {"jobs": jobs - 1, "seconds": time.perf_counter() - began}


async def pickup(contestant: Contestant, url: str, first: int, jobs: int) -> dict[str, list[float]]:
    asked = []
    async with contestant.produce(url) as producer:
        for number in range(first, first + jobs):
            await asyncio.sleep(PAUSE)
            asked.append(time.monotonic())
            await producer.one(number)
    return {"asked": asked}


PARTS = {"one": enqueue_one, "bulk": enqueue_bulk, "pickup": pickup}


def main() -> None:
    part, name, url, *numbers = sys.argv[1:]
    contestant = contestants()[name]
    if part == "setup":
        asyncio.run(contestant.setup(url))
    elif part == "work":
        contestant.work(url)
    elif part == "occupy":
        asyncio.run(contestant.occupy(url, int(numbers[0])))
    else:
        first, jobs = map(int, numbers)
        print(json.dumps(asyncio.run(PARTS[part](contestant, url, first, jobs))))


if __name__ == "__main__":
    main()
