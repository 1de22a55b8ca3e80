"""The rounds: every contestant once, then once more, so that a noisy minute hits all alike."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

from bench import claims, enqueues
from bench.beds import BEDS, Bed
from bench.contestant import Contestant, missing, package_version
from bench.drain import Drained, Situation, drain
from bench.own import Own
from bench.record import WrongRun
from bench.results import Measured, Results

IN_FLIGHT = 20_000
MILLION = 1_000_000

Figures = dict[str, float]


def run(given: argparse.Namespace, chosen: Mapping[str, Contestant]) -> Results:
    results = Results(
        began_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=machine(),
        options=vars(given),
        beds={},
        measured=[describe(one, given.jobs) for one in chosen.values()],
    )
    with ExitStack() as stack:
        beds = open_beds(stack, results, chosen)
        for number in range(given.rounds):
            for measured in results.measured:
                if measured.absent is None:
                    say(f"round {number + 1} of {given.rounds}: {measured.name}")
                    one_round(given, beds[measured.store], chosen[measured.name], measured)
            if not given.no_save:
                results.save()  # a run that is stopped later keeps its rounds
    return results


def open_beds(
    stack: ExitStack, results: Results, chosen: Mapping[str, Contestant]
) -> dict[str, Bed]:
    beds: dict[str, Bed] = {}
    for store in dict.fromkeys(one.store for one in chosen.values()):
        try:
            beds[store] = stack.enter_context(BEDS[store]())
            results.beds[store] = beds[store].about
        except FileNotFoundError as error:
            for measured in results.measured:
                if measured.store == store:
                    measured.absent = measured.absent or str(error)
    return beds


def one_round(
    given: argparse.Namespace, bed: Bed, contestant: Contestant, measured: Measured
) -> None:
    """All measures of one contestant. One that fails is told, and not tried again."""
    for measure in measures(given, contestant):
        try:
            found = measure(bed, contestant)
        except WrongRun as error:
            measured.absent = str(error)
        except Exception:
            measured.absent = traceback.format_exc(limit=-3)
        if measured.absent:
            say(f"  {contestant.name} gave up: {measured.absent}")
            return
        for name, value in found.items():
            measured.figures.setdefault(name, []).append(value)
            say(f"  {name:<20} {value:>14,.2f}")


def measures(
    given: argparse.Namespace, contestant: Contestant
) -> list[Callable[[Bed, Contestant], Figures]]:
    plain = Situation(job_count(contestant, given.jobs))
    found: list[Callable[[Bed, Contestant], Figures]] = []
    is_variant = getattr(contestant, "drains_only", False)
    if not is_variant:
        found.append(lambda bed, one: {"one_per_second": enqueues.alone(bed, one, given.singles)})
    found.append(lambda bed, one: drain(bed, one, plain).figures())
    if given.only_drain:
        return found
    if not is_variant:
        found.append(lambda bed, one: picked_up(bed, one, given.pickups))
    if contestant.name in ("floor postgres", "windrow postgres"):
        found += [
            drained("snapshot", replace(plain, has_snapshot=True)),
            drained("in_flight", replace(plain, in_flight=given.in_flight)),
            drained("two", replace(plain, workers=2)),
        ]
    if contestant.name == "windrow postgres":
        if given.waiting:
            found.append(drained("waiting", replace(plain, waiting=given.waiting)))
        found += [
            lambda bed, one: {"one_busy": enqueues.beside_busy(bed, one, given.singles)},
            lambda bed, one: {"one_woken": enqueues.beside_woken(bed, one, given.singles)},
        ]
    if contestant.name == "windrow sqlite":
        found.append(
            lambda bed, one: {"one_threads": enqueues.from_threads(bed, one, given.singles)}
        )
    if isinstance(contestant, Own) and contestant.name == "windrow postgres, raw loop":
        found.append(lambda bed, one: claim_figures(bed, one, given))
    return found


def drained(suffix: str, situation: Situation) -> Callable[[Bed, Contestant], Figures]:
    def measure(bed: Bed, contestant: Contestant) -> Figures:
        found: Drained = drain(bed, contestant, situation)
        return {
            f"drain_{suffix}": found.drain_per_second,
            f"peak_mib_{suffix}": found.peak_mib,
        }

    return measure


def picked_up(bed: Bed, contestant: Contestant, jobs: int) -> Figures:
    p50, p99 = enqueues.pickup(bed, contestant, jobs)
    return {"pickup_p50_ms": p50, "pickup_p99_ms": p99}


def claim_figures(bed: Bed, contestant: Contestant, given: argparse.Namespace) -> Figures:
    if not isinstance(contestant, Own):
        raise TypeError(f"{contestant.name} has no claims to time")
    figures = {
        "claim_ms": claims.claim_ms(bed, contestant),
        "claim_ms_active": claims.claim_ms(bed, contestant, active=given.in_flight),
    }
    if given.waiting:
        scheduled = claims.claim_ms(bed, contestant, scheduled=given.waiting)
        figures["claim_ms_scheduled"] = scheduled
    return figures


def describe(contestant: Contestant, jobs: int) -> Measured:
    return Measured(
        name=contestant.name,
        store=contestant.store,
        settings=contestant.settings,
        versions={name: package_version(name) or "" for name in contestant.packages},
        jobs=job_count(contestant, jobs),
        absent=missing(contestant),
    )


def job_count(contestant: Contestant, jobs: int) -> int:
    """Slow ones get fewer jobs, so that their drain takes some seconds: rates are compared."""
    return min(jobs, getattr(contestant, "most_jobs", jobs))


def machine() -> dict[str, str]:
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "load at the start": f"{os.getloadavg()[0]:.1f}",
    }


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
