"""litequeue on SQLite: it has no worker, so a loop of one's own pops and acknowledges."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import counting
from bench.contestant import StoreName, payload_text
from bench.floor_sqlite import path_of
from bench.record import note_text

IDLE = 0.002
LEFT = "SELECT count(*) FROM Queue WHERE status <> 2"


def make_queue(url: str) -> Any:
    from litequeue import LiteQueue

    return LiteQueue(path_of(url), timeout=30)


@dataclass
class LitequeueProducer:
    queue: Any

    async def one(self, number: int) -> None:
        self.queue.put(payload_text(number))

    async def many(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.queue.put(payload_text(number))


@dataclass
class Litequeue:
    name: str = "litequeue"
    store: StoreName = "sqlite"
    packages: Sequence[str] = ("litequeue",)
    settings: str = "defaults: WAL, NORMAL (may lose the last commits with the power)"
    has_bulk: bool = False
    most_jobs: int = 3_000

    async def setup(self, url: str) -> None:
        make_queue(url)

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[LitequeueProducer]:
        yield LitequeueProducer(make_queue(url))

    def work(self, url: str) -> None:
        queue = make_queue(url)
        while True:
            message = queue.pop()
            if message is None:
                time.sleep(IDLE)
                continue
            note_text(message.data)
            queue.done(message.message_id)

    def left(self, url: str) -> int:
        return counting.in_sqlite(url, LEFT)


CONTESTANTS = [Litequeue()]
