"""One drain: fill, analyze, start worker processes, watch until the last job is durably done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import usage
from bench.beds import Bed
from bench.contestant import Contestant
from bench.record import FILE, RECORD, Runs, WrongRun
from tests.postgres_server import stop_with_parent

LOOK = 0.005  # seconds between two looks at the record of runs
STUCK_SECONDS = 60.0  # nothing moved for so long: the contestant is given up
# However it moves, so long a part of a measurement may take: some, and some more for many jobs.
LIMIT_SECONDS = 120.0
LIMIT_SECONDS_PER_JOB = 0.001
STOP_SECONDS = 3.0  # all is measured by then
DURABLE_LOOKS = 0.02


@dataclass(frozen=True)
class Situation:
    """What surrounds the jobs that are drained."""

    jobs: int
    waiting: int = 0  # behind them, in the same queue
    in_flight: int = 0  # in the hands of somebody else
    workers: int = 1
    has_snapshot: bool = False


@dataclass
class Drained:
    bulk_per_second: float | None
    drain_per_second: float
    worker_cpu_ms: float  # for 1,000 jobs, as those below
    server_cpu_ms: float | None
    wal_enqueue: float | None  # bytes for one job
    wal_drain: float | None
    dead_rows: float | None  # for one job
    peak_mib: float  # memory of all worker processes

    def figures(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def ask(part: str, contestant: Contestant, url: str, *numbers: int) -> Any:
    """Have a process do one part, and read what it prints."""
    command = [sys.executable, "-m", "bench.process", part, contestant.name, url]
    return read_answer(part, [*command, *map(str, numbers)], limit_of(max(numbers, default=0)))


def read_answer(part: str, command: list[str], seconds: float) -> Any:
    """What a command prints last, as JSON; one that takes longer is ended, with all it started."""
    with tempfile.TemporaryFile("w+") as told, tempfile.TemporaryFile("w+") as complained:
        process = subprocess.Popen(
            command,
            stdout=told,
            stderr=complained,
            preexec_fn=stop_with_parent(signal.SIGKILL),
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            kill(process)
            raise WrongRun(f"{part} did not end within {seconds:.0f} s") from None
        told.seek(0)
        complained.seek(0)
        answer = told.read()
        if process.returncode:
            raise WrongRun(f"{part} ended with {process.returncode}: {complained.read()[-1500:]}")
    return json.loads(answer.splitlines()[-1]) if answer.strip() else None


def limit_of(jobs: int) -> float:
    return LIMIT_SECONDS + LIMIT_SECONDS_PER_JOB * jobs


def drain(bed: Bed, contestant: Contestant, situation: Situation) -> Drained:
    jobs = situation.jobs
    with ExitStack() as stack:
        url = stack.enter_context(bed.fresh())
        ask("setup", contestant, url)
        if situation.in_flight:
            ask("bulk", contestant, url, jobs + situation.waiting, situation.in_flight)
            ask("occupy", contestant, url, situation.in_flight)
        before = bed.count(url)
        filled = ask("bulk", contestant, url, 0, jobs)
        after_fill = bed.count(url)
        if situation.waiting:
            ask("bulk", contestant, url, jobs, situation.waiting)
        bed.analyze(url)
        stored = jobs + situation.waiting + situation.in_flight
        if (left := contestant.left(url)) != stored:
            raise WrongRun(f"{left} of {stored} jobs are stored")
        if situation.has_snapshot:
            stack.enter_context(bed.snapshot(url))
        before_drain = bed.count(url)
        watched = watch(contestant, url, situation)
        after = bed.count(url)
    return Drained(
        bulk_per_second=filled["jobs"] / filled["seconds"] if contestant.has_bulk else None,
        drain_per_second=watched.jobs / watched.seconds,
        worker_cpu_ms=watched.cpu * 1e6 / watched.jobs,
        server_cpu_ms=per_job(before_drain.cpu, after.cpu, watched.jobs, 1e6),
        wal_enqueue=per_job(before.wal, after_fill.wal, jobs),
        wal_drain=per_job(before_drain.wal, after.wal, watched.jobs),
        dead_rows=per_job(before_drain.dead, after.dead, watched.jobs),
        peak_mib=watched.peak / 2**20,
    )


def per_job(first: float | None, last: float | None, jobs: int, times: float = 1) -> float | None:
    return None if first is None or last is None else (last - first) * times / jobs


@dataclass
class Watched:
    jobs: int
    seconds: float  # from the first start to the last durable end
    cpu: float
    peak: int


def watch(contestant: Contestant, url: str, situation: Situation) -> Watched:
    """Run the workers until all is done; behind waiting jobs, until so many have begun."""
    jobs = situation.jobs
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
        record = Path(folder) / "record"
        with workers(contestant, url, record, situation.workers) as processes:
            until_begun(record, 1, processes)
            cpu_before = sum(usage.cpu_seconds(one.pid) for one in processes)
            until_begun(record, jobs, processes)
            if not situation.waiting:
                until_left(contestant, url, situation.in_flight)
            ended_at = time.monotonic()
            cpu = sum(usage.cpu_seconds(one.pid) for one in processes) - cpu_before
            peak = sum(usage.peak_bytes(one.pid) for one in processes)
        runs = Runs.read(record)
    runs.check(jobs + situation.waiting, all_of_them=not situation.waiting)
    if situation.waiting:  # they go on until they are stopped
        ended = len(runs.began)
        ended_at = runs.began[-1][1]
        if ended + contestant.left(url) < jobs + situation.waiting + situation.in_flight:
            raise WrongRun("jobs were lost")
        cpu *= ended / jobs  # it was read when so many had begun
        return Watched(ended, ended_at - runs.began[0][1], cpu, peak)
    return Watched(jobs, ended_at - runs.began[0][1], cpu, peak)


@contextmanager
def workers(
    contestant: Contestant, url: str, record: Path, count: int
) -> Iterator[list[subprocess.Popen[bytes]]]:
    with (record.parent / "log").open("wb") as log:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "bench.process", "work", contestant.name, url],
                env={**os.environ, FILE: str(record)},
                stdout=log,
                stderr=log,
                preexec_fn=stop_with_parent(signal.SIGKILL),
            )
            for _ in range(count)
        ]
        try:
            yield processes
        except WrongRun as error:
            told = (record.parent / "log").read_text(errors="replace")[-1500:]
            raise WrongRun(f"{error}\n{told}") from error
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    for pid in reversed(usage.tree(process.pid)[1:]):
        with suppress(ProcessLookupError):  # it has ended by itself
            os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()


def until_begun(record: Path, jobs: int, processes: list[subprocess.Popen[bytes]]) -> None:
    """Until so many jobs have begun, which is seen by the length of the record."""
    begun, moved_at = -1, time.monotonic()
    give_up_at = moved_at + limit_of(jobs)
    while True:
        now = record.stat().st_size // RECORD.size if record.exists() else 0
        if now >= jobs:
            return
        if now != begun:
            begun, moved_at = now, time.monotonic()
        if time.monotonic() - moved_at > STUCK_SECONDS:
            raise WrongRun(f"no job began for {STUCK_SECONDS:.0f} s, after {begun} of {jobs}")
        if time.monotonic() > give_up_at:
            raise WrongRun(f"the drain did not end within {limit_of(jobs):.0f} s: {begun} began")
        if all(process.poll() is not None for process in processes):
            raise WrongRun(f"the worker ended after {begun} of {jobs} jobs")
        time.sleep(LOOK)


def until_left(contestant: Contestant, url: str, left: int) -> None:
    """Until no more than so many are not finished, as the store itself says."""
    deadline = time.monotonic() + STUCK_SECONDS
    while (found := contestant.left(url)) > left:
        if time.monotonic() > deadline:
            raise WrongRun(f"{found} jobs began but were never recorded as finished")
        time.sleep(DURABLE_LOOKS)
