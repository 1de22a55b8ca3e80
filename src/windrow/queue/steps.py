"""A run of a claimed job, seen from inside: its steps and its progress (`job.step`,
`job.report_progress`).

A step is kept before its result is used, under the lease of the run: what a later run sees of it is
what this run went on with.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from windrow.errors import LeaseLost
from windrow.queue.checks import (
    SizeLimits,
    check_counters,
    check_message,
    check_name,
    check_percent,
    encode_step,
)
from windrow.queue.insisting import insist
from windrow.queue.job import Job
from windrow.queue.records import ProgressReport
from windrow.queue.store import Store


class LeasedRun:
    """What `job.step` and `job.report_progress` of a claimed job do."""

    __slots__ = ("_job", "_kept", "_limits", "_locks", "_store")

    def __init__(self, store: Store, job: Job, limits: SizeLimits) -> None:
        self._store = store
        self._job = job
        self._limits = limits
        self._kept: dict[str, str] | None = None  # JSON by name; None: not looked yet
        self._locks: defaultdict[str | None, asyncio.Lock] | None = None

    async def step(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """The kept result of a step, or that of the function. It is called where we are: for one
        that blocks, `step("name", asyncio.to_thread, fn, …)`."""
        async with self._lock(check_name(name, "step")):
            if (kept := await self.find_step(name)) is None:
                value = fn(*args, **kwargs)
                if inspect.isawaitable(value):
                    value = await value
                kept = await self.save_step(name, value)
        return read_step(kept)

    async def find_step(self, name: str) -> str | None:
        """The kept result of a step, as JSON."""
        check_name(name, "step")
        async with self._lock(None):
            if self._kept is None:
                self._kept = await self._find_kept()
        return self._kept.get(name)

    async def save_step(self, name: str, value: Any) -> str:
        """Keep the result of a step; returns it as it is kept, as JSON."""
        encoded = encode_step(check_name(name, "step"), value, self._limits).json.decode()
        token = token_of(self._job)
        # The first result stays, so a call whose reply was lost can be repeated.
        kept = await insist(lambda: self._store.save_step(self._job.id, token, name, encoded))
        if self._kept is not None:
            self._kept[name] = kept
        return kept

    async def report_progress(
        self, percent: float | None = None, message: str | None = None, **counters: int
    ) -> None:
        await report_progress(self._store, self._job, percent, message, counters)

    async def _find_kept(self) -> dict[str, str]:
        if self._job.runs <= 1:
            return {}
        steps = await insist(lambda: self._store.get_steps(self._job.id))
        return {step.name: step.result_json for step in steps}

    def _lock(self, name: str | None) -> asyncio.Lock:
        if self._locks is None:
            self._locks = defaultdict(asyncio.Lock)
        return self._locks[name]


async def report_progress(
    store: Store,
    job: Job,
    percent: float | None,
    message: str | None,
    counters: Mapping[str, int],
) -> None:
    report = ProgressReport(
        id=job.id,
        token=token_of(job),
        percent=check_percent(percent),
        message=check_message(message),
        counters=check_counters(counters),
    )
    if lost := await store.report_progress([report]):
        raise LeaseLost(*lost)


def read_step(kept: str) -> Any:
    """A result as every run sees it, the first one too: what JSON makes of it."""
    return msgspec.json.decode(kept)


def token_of(job: Job) -> str:
    if job.lease_token is None:
        raise LeaseLost(job.id)
    return job.lease_token
