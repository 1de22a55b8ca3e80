"""Huey on SQLite: one thread, which takes a job out before it runs it (at most once)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench import counting
from bench.contestant import StoreName, payload
from bench.floor_sqlite import path_of
from bench.record import note

DELAY = 0.01
LEFT = "SELECT count(*) FROM task"


def make_task(url: str) -> Any:
    from huey import SqliteHuey

    huey = SqliteHuey("bench", filename=path_of(url), results=False, timeout=30)

    @huey.task()
    def noop(n: int, url: str, text: str) -> None:
        note(n)

    return huey, noop


@dataclass
class HueyProducer:
    task: Any

    async def one(self, number: int) -> None:
        self.task(**payload(number))

    async def many(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.task(**payload(number))


@dataclass
class Huey:
    name: str = "huey"
    store: StoreName = "sqlite"
    packages: Sequence[str] = ("huey",)
    settings: str = f"one thread, no results, polls from {DELAY} s (default 0.1); WAL, FULL"
    has_bulk: bool = False
    most_jobs: int = 6_000

    async def setup(self, url: str) -> None:
        make_task(url)

    @asynccontextmanager
    async def produce(self, url: str) -> AsyncIterator[HueyProducer]:
        _, task = make_task(url)
        yield HueyProducer(task)

    def work(self, url: str) -> None:
        huey, _ = make_task(url)
        huey.create_consumer(workers=1, initial_delay=DELAY, max_delay=DELAY, periodic=False).run()

    def left(self, url: str) -> int:
        return counting.in_sqlite(url, LEFT)


CONTESTANTS = [Huey()]
