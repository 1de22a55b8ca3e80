"""Handlers at the top of a module: child processes and `windrow worker` import them by name."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from pathlib import Path
from typing import Any

from windrow import Job, Snooze, handler


@handler("square", run="process")
def square(job: Job, payload: int) -> int:
    return payload * payload


@handler("pid", run="process")
async def pid(job: Job) -> int:
    return os.getpid()


@handler("spin", run="process", timeout=0.2, max_attempts=1)
def spin(job: Job) -> None:
    while True:
        pass


@handler("die", run="process", max_attempts=2, backoff="none")
def die(job: Job) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Unpicklable(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


@handler("raise", run="process", max_attempts=1)
def raise_error(job: Job, payload: str) -> None:
    raise Unpicklable(payload, "and more") if payload == "odd" else ValueError(payload)


@handler("steps", run="process", backoff="none")
def steps(job: Job, payload: str) -> Any:
    """The first run fails after its step; the second finds it done."""
    job.step("count", _count, payload)
    job.report_progress(50, "half", runs=job.runs)
    if job.runs == 1:
        raise ValueError("not yet")
    return Path(payload).read_text()


@handler("async steps", run="process", backoff="none")
async def async_steps(job: Job, payload: str) -> Any:
    await job.step("count", _count, payload)
    if job.runs == 1:
        raise ValueError("not yet")
    return Path(payload).read_text()


@handler("no tx", run="process", max_attempts=1)
def no_tx(job: Job) -> None:
    job.tx.execute("select 1")


@handler("log")
async def log(job: Job, payload: dict[str, Any]) -> str:
    """Writes down that it ran: in one write, so that several processes can."""
    with Path(payload["log"]).open("a") as file:
        file.write(f"{job.id} {job.runs} {os.getpid()}\n")
    return job.id


@handler("slow")
async def slow(job: Job, payload: dict[str, Any]) -> None:
    with Path(payload["log"]).open("a") as file:
        file.write(f"{job.id} {job.runs} {os.getpid()}\n")
    await asyncio.sleep(payload.get("seconds", 60))


@handler("stuck")
def stuck(job: Job, payload: dict[str, Any]) -> None:
    Path(payload["log"]).write_text(f"{job.id}\n")
    time.sleep(payload["seconds"])


@handler("stuck.call")
async def stuck_call(job: Job, payload: dict[str, Any]) -> None:
    await asyncio.to_thread(stuck, job, payload)


@handler("poison", max_crashes=3)
async def poison(job: Job) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@handler("hungry")
async def hungry(job: Job, payload: int) -> Any:
    """Keeps memory for good, until the process begins afresh."""
    _kept.append(bytearray(payload))
    return os.getpid()


@handler("sleepy")
def sleepy(job: Job) -> Snooze | str:
    time.sleep(0.01)
    return "slept" if job.runs > 1 else Snooze(0)


_kept: list[bytearray] = []


def _count(path: str) -> int:
    """Adds a mark for each time it is called."""
    with Path(path).open("a") as file:
        file.write("x")
    return 1


@handler("collector")
async def collector(job: Job) -> list[int]:
    """After how many new objects this process looks for cycles among them, and so on."""
    return list(gc.get_threshold())
