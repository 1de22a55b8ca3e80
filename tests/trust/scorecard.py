"""What runs with faults in them have shown, kept as files, and the page made of them.

    record("durable", "kill -9 of workers", store="postgres", jobs=20_000, faults=100,
           lost=0, doubled=0, recovery=[1.9, 2.2])

writes one file into the folder named by WINDROW_SCORECARD, in place of the one of the last such
run; without that variable nothing is written. `python -m tests.trust.scorecard FOLDER` makes
docs/guarantees.md of them. Every figure there comes from a run that happened, with its date.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tests.trust.promises import BY_NAME, PROMISES, Promise

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guarantees.md"
FOLDER_VARIABLE = "WINDROW_SCORECARD"
OURS = "windrow"
NO_STORE = "–"  # what is refused, or read, before any database is asked

INTRODUCTION = """\
# Guarantees

What Windrow promises, how each promise is kept, and what came of breaking things on purpose.
`make chaos` runs all of it and writes this page anew; short versions are part of `make test`.
Processes that enqueue and work write down what they were told (acknowledged, claimed, effect,
accepted, refused); a checker (`tests/trust/checker.py`) compares that with what the database says
at the end. *Lost* and *doubled* below are what it counted, not what was hoped for:

- **lost**: acknowledged jobs that are gone, or never ended;
- **doubled**: effects through `job.tx`, or accepted completions, that happened more than once. A
  handler's run may well be repeated when its worker dies: that is at-least-once;
- **recovery**: seconds from the fault to the next job that was completed, or as the note says;
  median and worst.

Of bad input, *faults* are the things handed in and *jobs* those that were taken: the others were
refused with an error that says why, and left nothing behind.
"""

BESIDE = """\
## Beside others

The same jobs and the same faults for Windrow and for two other queues on Postgres, each in the
configuration it recommends for this. *Stuck*: still not ended when all others long had.
*Repeated*: jobs whose handler came to its end more than once; all three run jobs at least once,
so a few are to be expected after a kill. *Recovery*: from when Postgres answers again until the
next handler began and came to its end, which may be one of a job that was claimed before; of a
worker that was killed or stopped, until another had done what it had begun.
"""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What one test has seen."""

    promise: str
    fault: str
    store: str
    jobs: int
    faults: int
    lost: int
    doubled: int
    stuck: int = 0
    recovery: tuple[float, ...] = ()
    note: str = ""
    system: str = OURS
    beside: bool = False  # one of the runs that are compared with other systems
    test: str = ""
    at: str = ""
    cores: int = 0
    load: float | None = None  # of the whole machine in the minute before; more than `cores`: busy


def record(
    promise: str,
    fault: str,
    *,
    store: str,
    jobs: int,
    faults: int,
    lost: int,
    doubled: int,
    stuck: int = 0,
    recovery: Sequence[float] = (),
    note: str = "",
    system: str = OURS,
    beside: bool = False,
) -> None:
    """Keep what a test has seen. `promise`: its name in `promises`, or the checker's for it."""
    figures = Figures(
        promise=BY_NAME[promise].name,
        fault=fault,
        store=store,
        jobs=jobs,
        faults=faults,
        lost=lost,
        doubled=doubled,
        stuck=stuck,
        recovery=tuple(round(seconds, 3) for seconds in recovery),
        note=note,
        system=system,
        beside=beside,
        test=os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[0],
        at=datetime.now(UTC).strftime("%Y-%m-%d"),
        cores=os.cpu_count() or 0,
        load=round(os.getloadavg()[0], 1),
    )
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        write(figures, Path(folder))


def record_input(
    what: str, *, given: int, taken: int = 0, store: str = NO_STORE, note: str = ""
) -> None:
    """Keep how many inputs of a bad kind a test has handed in. Those that were not taken were
    refused, and neither left anything behind: the test has seen to that."""
    record("bad_input", what, store=store, jobs=taken, faults=given, lost=0, doubled=0, note=note)


def write(figures: Figures, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    place = "beside" if figures.beside else figures.promise
    words = (figures.system, figures.store, place, figures.fault)
    name = re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")
    text = msgspec.json.format(msgspec.json.encode(figures), indent=1)
    (folder / f"{name}.json").write_bytes(text + b"\n")


def read(folder: Path) -> list[Figures]:
    paths = sorted(folder.glob("*.json"))
    return [msgspec.json.decode(path.read_bytes(), type=Figures) for path in paths]


def page(figures: Sequence[Figures]) -> str:
    ours = [one for one in figures if one.system == OURS and not one.beside]
    parts = [
        INTRODUCTION,
        _how_measured(figures),
        "## Promises\n",
        _promises(ours),
        "## Faults\n",
        _faults(ours),
    ]
    if compared := [one for one in figures if one.beside]:
        parts += [BESIDE, _compared(compared)]
    return "\n".join(parts)


def _how_measured(figures: Sequence[Figures]) -> str:
    if not figures:
        return "No figures have been taken yet.\n"
    dates = sorted({one.at for one in figures})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    cores = " or ".join(map(str, sorted({one.cores for one in figures})))
    loads = [one.load for one in figures if one.load is not None]
    text = f"Measured {when}, on a machine with {cores} cores."
    if loads:
        usual, most = statistics.median(loads), max(loads)
        text += (
            f" Its load, by these tests and others, was {usual:.0f} in the median and at most "
            f"{most:.0f}: above the number of its cores, times are longer than they need be."
        )
    return f"{text}\n"


def _promises(figures: Sequence[Figures]) -> str:
    of: defaultdict[str, list[Figures]] = defaultdict(list)
    for one in figures:
        of[one.promise].append(one)
    rows = [_promise_row(promise, of[promise.name]) for promise in PROMISES]
    return _table(("promise", "how it is kept", "tests", "faults", "jobs", "lost", "doubled"), rows)


def _promise_row(promise: Promise, figures: Sequence[Figures]) -> Sequence[str]:
    tests = {*promise.tests, *(one.test for one in figures if one.test)}
    links = ", ".join(f"[{Path(test).stem}](../{test})" for test in sorted(tests))
    sums = (
        [
            f"{sum(getattr(one, field) for one in figures):,}"
            for field in ("faults", "jobs", "lost", "doubled")
        ]
        if figures
        else ["–"] * 4
    )
    return (promise.words, promise.kept_by, links, *sums)


def _faults(figures: Iterable[Figures]) -> str:
    """One line for each run, whichever promises it was about."""
    order = {promise.name: place for place, promise in enumerate(PROMISES)}
    runs: dict[tuple[str, str], Figures] = {}
    for one in sorted(figures, key=lambda one: (order[one.promise], one.fault, one.store)):
        key = (one.fault, one.store)
        runs[key] = _together(runs[key], one) if key in runs else one
    rows = [
        (
            one.fault,
            one.store,
            f"{one.faults:,}",
            f"{one.jobs:,}",
            f"{one.lost:,}",
            f"{one.doubled:,}",
            recovery_words(one.recovery),
            one.note,
        )
        for one in runs.values()
    ]
    return _table(
        ("fault", "store", "faults", "jobs", "lost", "doubled", "recovery p50 / max", "note"), rows
    )


def _together(one: Figures, other: Figures) -> Figures:
    notes = [*filter(None, one.note.split("; ")), *filter(None, other.note.split("; "))]
    return msgspec.structs.replace(
        one, recovery=one.recovery or other.recovery, note="; ".join(dict.fromkeys(notes))
    )


def _compared(figures: Iterable[Figures]) -> str:
    def place(one: Figures) -> tuple[str, bool, str]:
        return (one.fault, one.system != OURS, one.system)

    rows = [
        (
            one.fault,
            one.system,
            f"{one.faults:,}",
            f"{one.jobs:,}",
            f"{one.lost:,}",
            f"{one.stuck:,}",
            f"{one.doubled:,}",
            recovery_words(one.recovery),
            one.note,
        )
        for one in sorted(figures, key=place)
    ]
    return _table(
        (
            *("fault", "queue", "faults", "jobs", "lost", "stuck", "repeated"),
            *("recovery p50 / max", "configuration"),
        ),
        rows,
    )


def recovery_words(seconds: Sequence[float]) -> str:
    if not seconds:
        return "–"
    return f"{statistics.median(seconds):.2f} s / {max(seconds):.2f} s"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = [" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines]
    return "\n".join(f"| {line} |" for line in cells) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(read(Path(sys.argv[1]))), "utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written")
