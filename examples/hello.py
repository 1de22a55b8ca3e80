"""The smallest program: one kind of job, a few of them, and a worker that ends when all is done.

python examples/hello.py                       on a temporary SQLite file
python examples/hello.py sqlite:///hello.db    on a file that stays
"""

from __future__ import annotations

import asyncio
import sys
from tempfile import TemporaryDirectory
from typing import Any

from windrow import Job, Queue, Worker, handler


@handler("greet")
async def greet(job: Job, payload: dict[str, Any]) -> str:
    return f"Hello, {payload['name']}!"


async def main(url: str) -> None:
    async with Queue.open(url) as queue:
        jobs = [await queue.enqueue("greet", {"name": name}) for name in ("Ada", "Grace", "Edsger")]
        await Worker(queue, [greet]).run(until_idle=True)
        for job in jobs:
            ended = await queue.get(job.id)
            print(f"{ended.state}: {ended.result}")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/jobs.db"))
