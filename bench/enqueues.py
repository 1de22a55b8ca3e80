"""Single enqueues: alone, beside a busy worker, beside one that must be woken, from threads; and
how soon an idle worker begins a job."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from pathlib import Path

from bench.beds import Bed
from bench.contestant import Contestant, payload
from bench.drain import ask, until_begun, workers
from bench.own import QUEUE
from bench.record import Runs, WrongRun
from windrow import Queue

STAYING = 10  # as many as a worker runs at once
THREADS = 8
SETTLE = 1.0  # seconds for a worker that has begun to be asleep


def alone(bed: Bed, contestant: Contestant, jobs: int) -> float:
    """Jobs a second, one call after the other, nobody working."""
    with bed.fresh() as url:
        ask("setup", contestant, url)
        return rate(contestant, url, jobs)


def rate(contestant: Contestant, url: str, jobs: int, *, is_left: bool = True) -> float:
    done = ask("one", contestant, url, 0, jobs)
    if is_left and (left := contestant.left(url)) != done["stored"]:
        raise WrongRun(f"{left} of {done['stored']} single jobs are stored")
    return float(done["jobs"] / done["seconds"])


def beside_woken(bed: Bed, contestant: Contestant, jobs: int) -> float:
    """Beside a worker that is idle, so that a job has to wake it."""
    with bed.fresh() as url, tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
        ask("setup", contestant, url)
        record = Path(folder) / "record"
        with workers(contestant, url, record, 1) as processes:
            warm_up(contestant, url, record, processes)
            return rate(contestant, url, jobs, is_left=False)


def beside_busy(bed: Bed, contestant: Contestant, jobs: int) -> float:
    """Beside a Windrow worker whose places are all taken."""
    with bed.fresh() as url, tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
        ask("setup", contestant, url)
        with Queue.sync(url) as queue:
            for _ in range(STAYING):
                queue.enqueue("bench.stay", queue=QUEUE, priority=9)
            with workers(contestant, url, Path(folder) / "record", 1):
                while queue.counts()["active"] < STAYING:
                    time.sleep(0.05)
                time.sleep(SETTLE)
                return rate(contestant, url, jobs, is_left=False)


def from_threads(bed: Bed, contestant: Contestant, jobs: int) -> float:
    """By several threads that share one queue, each one job after the other."""
    with bed.fresh() as url:
        ask("setup", contestant, url)
        with Queue.sync(url) as queue:
            each = max(1, jobs // THREADS)

            def enqueue() -> None:
                for number in range(each):
                    queue.enqueue("bench.noop", payload(number), queue=QUEUE)

            threads = [threading.Thread(target=enqueue) for _ in range(THREADS)]
            began = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took = time.perf_counter() - began
            if (stored := queue.counts()["ready"]) != each * THREADS:
                raise WrongRun(f"{stored} of {each * THREADS} jobs are stored")
    return each * THREADS / took


def pickup(bed: Bed, contestant: Contestant, jobs: int) -> tuple[float, float]:
    """p50 and p99, in milliseconds: from the moment before the enqueue call to the handler."""
    with bed.fresh() as url, tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
        ask("setup", contestant, url)
        record = Path(folder) / "record"
        with workers(contestant, url, record, 1) as processes:
            warm_up(contestant, url, record, processes)
            asked = ask("pickup", contestant, url, 0, jobs)["asked"]
            until_begun(record, jobs + 1, processes)
        began = dict(Runs.read(record).began)
    waits = sorted((began[number] - moment) * 1000 for number, moment in enumerate(asked))
    return waits[jobs // 2], waits[min(jobs - 1, round(jobs * 0.99))]


def warm_up(
    contestant: Contestant, url: str, record: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    """A first job, so that the worker has begun; then it goes to sleep."""
    ask("one", contestant, url, -1, 1)
    until_begun(record, 1, processes)
    time.sleep(SETTLE)
