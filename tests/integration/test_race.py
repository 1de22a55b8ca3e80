"""Real processes on one database: every job is finished exactly once, whoever is killed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import add, claim, counted, counts, get, row, tallied
from tests.integration.racing import race
from tests.processes import PROCESSES, fork
from windrow.clock import Clock
from windrow.queue.job import JobState
from windrow.queue.records import JobFilter
from windrow.queue.store import Store

JOBS = 5_000
RACERS = 8
INSERTERS = 20
PATIENCE = 120.0  # seconds; a race that takes longer is stuck


class Racer:
    """One process, held at the starting line until `go`."""

    def __init__(self, verb: str, **options: Any) -> None:
        its_input, our_output = PROCESSES.Pipe(duplex=False)
        our_input, its_output = PROCESSES.Pipe(duplex=False)
        self.process = fork(race, verb, options, its_input, its_output)
        its_input.close()
        its_output.close()
        self._says = our_output
        self._hears = os.fdopen(os.dup(our_input.fileno()))

    def hear(self) -> Any:
        """What it says next."""
        return json.loads(self._hears.readline())

    def go(self) -> None:
        os.write(self._says.fileno(), b"go\n")

    def end(self) -> int | None:
        self.process.join(PATIENCE)
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self._says.close()
        self._hears.close()


Start = Callable[..., list[Racer]]


@pytest.fixture
def start(store_url: str) -> Iterator[Start]:
    """Start so many processes; all of them are at the line when it returns."""
    started: list[Racer] = []

    def start_them(count: int, verb: str, **options: Any) -> list[Racer]:
        racers = [
            Racer(
                verb, url=store_url, **{k: v(n) if callable(v) else v for k, v in options.items()}
            )
            for n in range(count)
        ]
        started.extend(racers)
        assert {racer.hear() for racer in racers} == {"ready"}
        return racers

    yield start_them
    for racer in started:
        racer.kill()


@pytest.fixture
async def real(open_another) -> Store:
    """The processes use the database's own time, so this test does too."""
    store: Store = await open_another(Clock())
    return store


def run_to_the_end(racers: list[Racer]) -> None:
    for racer in racers:
        racer.go()
    assert [racer.end() for racer in racers] == [0] * len(racers)


def logged(folder: Path) -> Counter[str]:
    """How often each job was told to be completed, by all processes."""
    return Counter(line for log in folder.glob("*.log") for line in log.read_text().splitlines())


async def test_each_of_5000_jobs_is_finished_once_by_8_processes(
    real: Store, start: Start, tmp_path: Path
) -> None:
    """A7: concurrent workers never share a job and lose none."""
    rows = [row(queue=f"q{n % 3}", priority=n % 5) for n in range(JOBS)]
    await real.insert_jobs(rows)
    run_to_the_end(
        start(RACERS, "drain", log=lambda n: str(tmp_path / f"{n}.log"), seed=lambda n: n)
    )

    assert logged(tmp_path) == Counter({new.id: 1 for new in rows})
    assert len([log for log in tmp_path.glob("*.log") if log.stat().st_size]) > 1
    by_state = await counted(real)
    assert by_state == {f"q{n}": {JobState.COMPLETED: len(rows[n::3])} for n in range(3)}
    assert await tallied(real) == by_state
    found = await real.get_jobs([new.id for new in rows[::500]])
    assert {(job.crashes, job.attempts, job.runs < 3) for job in found.values()} == {(0, 0, True)}


async def test_jobs_of_a_killed_process_are_run_by_the_others(
    real: Store, start: Start, tmp_path: Path
) -> None:
    """N2, U6, A7: kill -9 in the middle; the lease runs out and the jobs run again."""
    rows = [row() for _ in range(1000)]
    await real.insert_jobs(rows)
    [victim] = start(1, "drain_and_hold", log=str(tmp_path / "victim.log"), hold=40, seconds=2)
    others = start(3, "drain", log=lambda n: str(tmp_path / f"{n}.log"), seed=lambda n: n)
    victim.go()
    held = victim.hear()
    victim.process.kill()
    run_to_the_end(others)

    assert logged(tmp_path) == Counter({new.id: 1 for new in rows})
    assert await counts(real) == {JobState.COMPLETED: 1000}
    found = await real.get_jobs([new.id for new in rows])
    assert {job_id for job_id, job in found.items() if job.crashes == 1} == set(held)
    assert len(held) == 40
    assert {error.message for job_id in held for error in found[job_id].errors} == {
        "the lease ran out (worker victim)"
    }


@pytest.mark.parametrize("mode", ["return", "follow"])
async def test_one_key_inserted_by_20_processes_gives_one_job(
    real: Store, start: Start, mode: str
) -> None:
    """U4: safe with 20 concurrent processes."""
    keys = [f"key-{n}" for n in range(15)]
    racers = start(INSERTERS, "insert_keys", keys=keys, mode=mode)
    for racer in racers:
        racer.go()
    answers = [racer.hear() for racer in racers]

    for key, outcomes in zip(keys, zip(*answers, strict=True), strict=True):
        assert [outcome for outcome, _ in outcomes].count("inserted") == 1
        [live] = await real.list_jobs(JobFilter(unique=key))
        assert {job_id for _, job_id in outcomes} == {live.id}
    assert [racer.end() for racer in racers] == [0] * INSERTERS


async def test_20_processes_following_running_jobs_leave_one_follower_each(
    real: Store, start: Start
) -> None:
    """U4: one running and one waiting, however many ask."""
    keys = [f"key-{n}" for n in range(15)]
    running = {key: await add(real, unique=key) for key in keys}
    assert len(await claim(real, 99, seconds=600)) == len(keys)
    racers = start(INSERTERS, "insert_keys", keys=keys, mode="follow")
    for racer in racers:
        racer.go()
    answers = [racer.hear() for racer in racers]

    for key, outcomes in zip(keys, zip(*answers, strict=True), strict=True):
        assert [outcome for outcome, _ in outcomes].count("inserted") == 1
        follower, first = await real.list_jobs(JobFilter(unique=key))
        assert (first.id, first.state) == (running[key], JobState.ACTIVE)
        assert follower.state == JobState.HELD
        assert {job_id for _, job_id in outcomes} == {follower.id}
        assert (await get(real, follower.id)).runs == 0
