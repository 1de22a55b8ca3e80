"""Who is measured: the floors, Windrow and its peers, all behind one small protocol.

A contestant's module imports its library inside its methods, so that all of them can be listed
where none is installed. All methods but `left` run in a process of their own (`bench.process`).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, Protocol

StoreName = Literal["postgres", "sqlite", "redis"]

MODULES = (
    "bench.floor_postgres",
    "bench.floor_sqlite",
    "bench.own",
    "bench.peers.pgmq",
    "bench.peers.pgqueuer",
    "bench.peers.procrastinate",
    "bench.peers.saq",
    "bench.peers.chancy",
    "bench.peers.dbos",
    "bench.peers.awa",
    "bench.peers.absurd",
    "bench.peers.huey",
    "bench.peers.litequeue",
    "bench.peers.celery",
    "bench.peers.dramatiq",
    "bench.peers.rq",
    "bench.peers.streaq",
    "bench.peers.taskiq",
    "bench.peers.bullmq",
)
TEXT = "x" * 150  # with the number and the names about 200 bytes


class Producer(Protocol):
    """Enqueues jobs by their number, over a connection that is open."""

    async def one(self, number: int) -> None: ...
    async def many(self, numbers: Sequence[int]) -> None:
        """By the bulk call; where there is none, one after the other."""


class Contestant(Protocol):
    name: str
    store: StoreName
    packages: Sequence[str]  # whose versions are recorded; the first is the library itself
    settings: str  # the configuration that was measured, and what differs from the default
    has_bulk: bool

    async def setup(self, url: str) -> None:
        """Make tables, queues, whatever is needed once."""

    def produce(self, url: str) -> AbstractAsyncContextManager[Producer]: ...

    def work(self, url: str) -> None:
        """Be a worker process, until terminated: `record.note` the number of every job."""

    def left(self, url: str) -> int:
        """Jobs that are stored and not recorded as finished."""


def payload(number: int) -> dict[str, Any]:
    return {"n": number, "url": "https://example.org/page", "text": TEXT}


def payload_text(number: int) -> str:
    return json.dumps(payload(number))


def contestants() -> dict[str, Contestant]:
    """All there are, by name, in the order in which they are shown."""
    found = [one for module in MODULES for one in importlib.import_module(module).CONTESTANTS]
    return {one.name: one for one in found}


def missing(contestant: Contestant) -> str | None:
    """What it needs that is not here; None if it can be measured."""
    absent = [name for name in contestant.packages if package_version(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    lacks: Callable[[], str | None] = getattr(contestant, "lacks", lambda: None)
    return lacks()


def package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
