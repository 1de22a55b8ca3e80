"""Simulated runs of real workers keep every promise, and workers that do not are found out."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from tests.trust import scorecard, worker_mutants
from tests.trust.mutants import Mutant
from tests.trust.simulation import (
    Desk,
    PostgresWorkerDesk,
    SqliteWorkerDesk,
    open_desk,
    replay_command,
)
from windrow.queue.sqlite import limiting

SEEDS = 300
PARTS = 5  # of them, each a test, so that several processes share them
MORE_SEEDS = 4000
PIECE = 250  # of them in one go
POSTGRES_SEEDS = 120
MUTANT_SEEDS = SEEDS  # ends with the first that finds it
# These are tried before all others: each found one of the mutants. Seed by seed it took 8 s.
TELLING = (3, 13, 44, 56)
PROMISES = {
    "at_least_once": "simulated worker: kills, cuts, lost replies",
    "stale_refused": "simulated worker: slow links, lost leases",
    "limits_hold": "simulated worker: cancels, pauses, limits changed",
    "bounded": "simulated worker: whatever handlers return",
}


@pytest.fixture(scope="module")
def desk() -> Iterator[SqliteWorkerDesk]:
    with open_desk("sqlite", "workers") as desk:
        assert isinstance(desk, SqliteWorkerDesk)
        yield desk


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="windrow")


@pytest.mark.parametrize("first", range(1, 1 + SEEDS, SEEDS // PARTS))
def test_workers_keep_every_promise_whatever_handlers_do(desk: Desk, first: int) -> None:
    met = held(desk, range(first, first + SEEDS // PARTS))

    for what in ("killed", "stopped", "cut", "slow", "cancel", "limit", "faults"):
        assert met[what] > 2, what


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_workers_keep_every_promise_for_thousands_of_seeds() -> None:
    first = 1 + SEEDS
    pieces = [range(at, at + PIECE) for at in range(first, first + MORE_SEEDS, PIECE)]
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as processes:
        met = sum(processes.map(held_apart, pieces), Counter())
    record("sqlite", met, MORE_SEEDS)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_workers_keep_every_promise_on_postgres(
    make_database: Callable[[str], str], postgres_template: str
) -> None:
    desk = PostgresWorkerDesk(make_database(postgres_template))
    record("postgres", held(desk, range(1, 1 + POSTGRES_SEEDS)), POSTGRES_SEEDS)


def test_the_same_seed_gives_the_same_run_of_workers(desk: Desk) -> None:
    first, again = (desk.simulate(17, trace=True) for _ in range(2))

    assert first.trace == again.trace
    assert first.counts == again.counts
    assert desk.simulate(18, trace=True).trace != first.trace


@pytest.mark.parametrize(
    ("mutant", "promise"),
    [
        (worker_mutants.ForgetsLeases, "lease_length"),
        (worker_mutants.ForgetsCancels, "cancel_holds"),
        (worker_mutants.StopsNobody, "cancel_holds"),
    ],
    ids=lambda given: getattr(given, "__name__", given),
)
def test_a_store_that_misleads_workers_is_found_out(
    desk: SqliteWorkerDesk, mutant: type[Mutant], promise: str
) -> None:
    assert_found(desk, promise, wrap=mutant)


@pytest.mark.parametrize(
    ("part", "mutant", "promise"),
    [
        ("Claimer", worker_mutants.ClaimsAfterStop, "no_run_twice"),
        ("Completer", worker_mutants.PutsBackForEver, "runs_end"),
        ("Completer", worker_mutants.DropsEnds, "no_run_twice"),
        ("Executor", worker_mutants.HandsBackTooEarly, "no_run_twice"),
        ("Executor", worker_mutants.IgnoresCancels, "cancel_holds"),
        ("Heartbeat", worker_mutants.RenewsSeldom, "no_run_twice"),
        ("Heartbeat", worker_mutants.RenewsLostRuns, "cancel_holds"),
        ("Leader", worker_mutants.NeverLeads, "no_idle_place"),
        ("Promoter", worker_mutants.NeverPromotes, "no_idle_place"),
        ("Rescuer", worker_mutants.NeverRescues, "all_jobs_end"),
        ("Stager", worker_mutants.NeverStages, "no_idle_place"),
    ],
    ids=lambda given: getattr(given, "__name__", given),
)
def test_a_worker_with_a_broken_part_is_found_out(
    desk: SqliteWorkerDesk, part: str, mutant: type[object], promise: str
) -> None:
    assert_found(desk, promise, parts={part: mutant})


def test_places_kept_by_jobs_that_cannot_run_are_found_out(
    desk: SqliteWorkerDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiting, "_to_idle", lambda work, row: None)
    assert_found(desk, "no_idle_place")


def assert_found(desk: SqliteWorkerDesk, promise: str, **broken: Any) -> None:
    """That one of so many seeds finds it, which are those of the normal run."""
    for seed in sorted(range(1, 1 + MUTANT_SEEDS), key=lambda seed: seed not in TELLING):
        report = desk.simulate(seed, **broken)
        if promise in {violation.promise for violation in report.violations}:
            return
    raise AssertionError(f"{MUTANT_SEEDS} seeds did not find that {promise} is broken")


def held(desk: Desk, seeds: range) -> Counter[str]:
    """What all of these met. The first that broke a promise is told with the command that shows it
    again."""
    met: Counter[str] = Counter()
    for seed in seeds:
        report = desk.simulate(seed)
        command = replay_command(seed, desk.name, "workers")
        assert report.violations == [], f"{report.words}\n{command}"
        met += report.counts
    return met


def held_apart(seeds: range) -> Counter[str]:
    """The same in a process of its own."""
    logging.disable(logging.CRITICAL)
    with open_desk("sqlite", "workers") as desk:
        return held(desk, seeds)


def record(store: str, met: Counter[str], seeds: int) -> None:
    """For the scorecard: each of these was judged in every run, and none was broken."""
    for promise, fault in PROMISES.items():
        scorecard.record(
            promise,
            fault,
            store=store,
            jobs=met["jobs"],
            faults=met["faults"] + met["killed"],
            lost=0,
            doubled=0,
            note=f"{seeds:,} seeds",
        )
