"""What every handler of the benchmarks does: write down that a job began, and when.

A record is 16 bytes, appended to one file: the number of the job and the clock that all processes
of the machine share. So losses and second runs are seen without asking the queue that is measured.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = "BENCH_RECORD"  # the variable that names the file
RECORD = struct.Struct("=qq")


@cache
def opened() -> int:
    return os.open(os.environ[FILE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(number: int) -> None:
    os.write(opened(), RECORD.pack(number, time.monotonic_ns()))


def note_text(payload: str | bytes) -> None:
    """For those that hand a handler the payload as it was stored."""
    note(json.loads(payload)["n"])


def note_many(numbers: Iterable[int]) -> None:
    now = time.monotonic_ns()
    os.write(opened(), b"".join([RECORD.pack(number, now) for number in numbers]))


@dataclass(frozen=True)
class Runs:
    """What the handlers wrote down, in the order in which they began."""

    began: list[tuple[int, float]]  # number, seconds

    @classmethod
    def read(cls, path: Path) -> Runs:
        whole = path.read_bytes() if path.exists() else b""
        found = [(number, moment / 1e9) for number, moment in RECORD.iter_unpack(whole)]
        return cls(sorted(found, key=lambda one: one[1]))

    def check(self, jobs: int, *, all_of_them: bool = True) -> None:
        """None ran twice, none is unknown and, if all were to run, none is lost."""
        times = Counter(number for number, _ in self.began)
        twice = [number for number, count in times.items() if count > 1]
        if twice:
            raise WrongRun(f"{len(twice)} jobs ran more than once, {twice[0]} for example")
        if strange := [number for number in times if not 0 <= number < jobs]:
            raise WrongRun(
                f"{len(strange)} jobs ran that nobody enqueued, {strange[0]} for example"
            )
        if all_of_them and len(times) != jobs:
            raise WrongRun(f"{jobs - len(times)} of {jobs} jobs were lost")


class WrongRun(Exception):
    """A queue lost jobs or ran some twice, or did not store them: its figures mean nothing."""
