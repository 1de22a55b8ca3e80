"""Simulated runs of the queue keep every promise, and a queue that does not is found out."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.trust import mutants, scorecard
from tests.trust.promises import PROMISES
from tests.trust.simulation import Desk, PostgresDesk, open_desk, replay_command
from tests.trust.stage import FAULTY

SEEDS = 100
MORE_SEEDS = 4000
PIECE = 250  # of them in one go
POSTGRES_SEEDS = 80


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with open_desk("sqlite") as desk:
        yield desk


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="windrow")


def test_every_promise_holds_wherever_somebody_is_killed_and_whatever_is_lost(desk: Desk) -> None:
    met = held(desk, range(1, 1 + SEEDS))

    for verb in ("insert_jobs", "claim_jobs", "finish_jobs", "promote_jobs", "rescue_jobs"):
        for place in ("before", "after"):
            assert met[f"killed {place} {verb}"] > 0
    assert met["faults"] > SEEDS
    assert met["jumps"] > SEEDS
    assert met["stalls"] > SEEDS / 2


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_every_promise_holds_for_thousands_of_seeds() -> None:
    first = 1 + SEEDS
    pieces = [range(at, at + PIECE) for at in range(first, first + MORE_SEEDS, PIECE)]
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as processes:
        met = sum(processes.map(held_apart, pieces), Counter())
    places = [f"killed {place} {verb}" for verb in FAULTY for place in ("before", "after")]
    assert [place for place in places if not met[place]] == []
    record("sqlite", met, MORE_SEEDS)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_every_promise_holds_on_postgres(
    make_database: Callable[[str], str], postgres_template: str
) -> None:
    desk = PostgresDesk(make_database(postgres_template))
    record("postgres", held(desk, range(1, 1 + POSTGRES_SEEDS)), POSTGRES_SEEDS)


def test_the_same_seed_gives_the_same_run(desk: Desk) -> None:
    first, again = (desk.simulate(17, trace=True) for _ in range(2))

    assert first.trace == again.trace
    assert first.counts == again.counts
    assert desk.simulate(18, trace=True).trace != first.trace


@pytest.mark.parametrize(
    ("mutant", "promise"),
    [
        (mutants.IgnoresTokens, "stale_token_refused"),
        (mutants.RenewsStaleLeases, "stale_token_refused"),
        (mutants.KeepsStaleSteps, "stale_token_refused"),
        (mutants.ForgetsAttempts, "bounded_attempts"),
        (mutants.CompletesUnrun, "runs_at_least_once"),
        (mutants.AcceptsAll, "one_accepted_completion"),
        (mutants.CompletesTwice, "one_final_state"),
        (mutants.LosesInserts, "nothing_lost"),
        (mutants.ExceedsLimits, "limits_hold"),
        (mutants.ForgetsKeys, "unique_holds"),
        (mutants.DropsRows, "effects_once"),
        (mutants.TurnsTheLine, "order_kept"),
        (mutants.NeverRescues, "one_final_state"),
        (mutants.FinishesGroupsTwice, "groups_finish_once"),
        (mutants.SkipsSlots, "schedules_fire_once"),
        (mutants.ForgetsSteps, "steps_kept"),
        (mutants.Miscounts, "bookkeeping"),
        (mutants.WaitsTooLong, "bookkeeping"),
        (mutants.TellsTwice, "bookkeeping"),
    ],
    ids=lambda given: getattr(given, "__name__", given),
)
def test_a_store_that_breaks_a_promise_is_found_out(
    desk: Desk, mutant: type[mutants.Mutant], promise: str
) -> None:
    """Within a number of seeds that the normal run has several times over."""
    found = next((seed for seed in range(1, 101) if breaks(desk, seed, mutant, promise)), None)

    assert found is not None, f"a hundred seeds did not find that {promise} is broken"


def breaks(desk: Desk, seed: int, mutant: type[mutants.Mutant], promise: str) -> bool:
    report = desk.simulate(seed, wrap=mutant)
    return promise in {violation.promise for violation in report.violations}


def held(desk: Desk, seeds: range) -> Counter[str]:
    """What all of these met. The first that broke a promise is told with the command that shows it
    again."""
    met: Counter[str] = Counter()
    for seed in seeds:
        report = desk.simulate(seed)
        assert report.violations == [], f"{report.words}\n{replay_command(seed, desk.name)}"
        met += report.counts
    return met


def held_apart(seeds: range) -> Counter[str]:
    """The same in a process of its own."""
    logging.disable(logging.CRITICAL)
    with open_desk("sqlite") as desk:
        return held(desk, seeds)


def record(store: str, met: Counter[str], seeds: int) -> None:
    """For the scorecard: every promise was judged in every run, and none was broken."""
    kills = sum(count for place, count in met.items() if place.startswith("killed"))
    for promise in PROMISES:
        if promise.checked_as:
            scorecard.record(
                promise.name,
                "simulated: kills, stalls, lost replies, clock jumps",
                store=store,
                jobs=met["jobs"],
                faults=kills + met["faults"] + met["stalls"] + met["jumps"],
                lost=0,
                doubled=0,
                note=f"{seeds:,} seeds",
            )
