"""`python -m bench.report`: the last run as a table and a chart, in docs/benchmarks.md."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench import chart
from bench.goals import FLOOR, PLAIN, SQLITE, SQLITE_FLOOR, judge
from bench.results import (
    KNOWLEDGE_MEASURES,
    MEASURES,
    PAGE_MEASURES,
    Measured,
    Results,
    Spread,
    latest,
    load,
    ratio,
    spread,
)

DOCUMENT = Path(__file__).parent.parent / "docs/benchmarks.md"
CHART = DOCUMENT.with_name("benchmarks.svg")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
FLOORS = {"postgres": FLOOR, "redis": FLOOR, "sqlite": SQLITE_FLOOR}
OWN = {"postgres": PLAIN, "redis": PLAIN, "sqlite": SQLITE}
HOW = (
    "Medians of {} rounds; ratios are taken inside a round, least and most in brackets. Slow "
    "contestants drain fewer jobs (the column says how many): rates are compared."
)
SITUATION_HEADS = ("contestant", "measure", "median", "least", "most")
HEADS = (
    "contestant",
    "jobs",
    *(label for label, _ in MEASURES.values()),
    "drain ÷ floor",
    "windrow ÷ it",
)


def rows(results: Results) -> list[tuple[str, ...]]:
    """A row for each contestant that has figures."""
    found = []
    for one in results.measured:
        if one.figures:
            cells = [figure(results, one, measure) for measure in MEASURES]
            found.append((one.name, f"{one.jobs:,}", *cells, *beside(results, one)))
    return found


def situations(results: Results) -> list[tuple[str, ...]]:
    """What was measured of some only: (contestant, measure, median, least, most)."""
    found = []
    for one in results.measured:
        for measure in one.figures.keys() - MEASURES.keys():
            if there := spread(results, one.name, measure):
                figures = (there.median, there.least, there.most)
                found.append((one.name, measure, *(f"{value:,.1f}" for value in figures)))
    return sorted(found)


def pages_table(pages: Sequence[Measured]) -> list[tuple[str, ...]]:
    """Who crawls and who converts, with the names of the columns first."""
    lines = [("contestant", *(label for label, _ in PAGE_MEASURES.values()))]
    for one in pages:
        if one.figures:
            found = [Spread.of(one.figures.get(measure, [])) for measure in PAGE_MEASURES]
            digits = [digits for _, digits in PAGE_MEASURES.values()]
            cells = zip(found, digits, strict=True)
            lines.append((one.name, *(_median(there, digits) for there, digits in cells)))
    return lines


def knowledge_table(knowledge: Sequence[Measured]) -> list[tuple[str, ...]]:
    """A line for each measure, a column for each index."""
    lines = [("measure", *(one.name for one in knowledge))]
    for measure, (label, digits) in KNOWLEDGE_MEASURES.items():
        found = [Spread.of(one.figures.get(measure, [])) for one in knowledge]
        if any(found):
            lines.append((label, *(_median(there, digits) for there in found)))
    return lines


def _median(found: Spread | None, digits: int) -> str:
    return "–" if found is None else f"{found.median:,.{digits}f}"


def figure(results: Results, one: Measured, measure: str) -> str:
    return _median(spread(results, one.name, measure), MEASURES[measure][1])


def beside(results: Results, one: Measured) -> tuple[str, str]:
    drain = "drain_per_second"
    to_floor = ratio(results, (one.name, drain), (FLOORS[one.store], drain))
    to_own = ratio(results, (OWN[one.store], drain), (one.name, drain))
    return told(to_floor), told(to_own)


def told(found: Spread | None) -> str:
    return "–" if found is None else f"{found.median:,.2f} ({found.least:,.2f}–{found.most:,.2f})"


def absent(results: Results) -> list[tuple[str, str]]:
    # Of what went wrong, the last line says it; those above name files of the machine.
    return [
        (one.name, one.absent.strip().splitlines()[-1]) for one in results.everybody if one.absent
    ]


def as_text(results: Results) -> str:
    """For a terminal: one line for each contestant and goal."""
    parts = [aligned([HEADS, *rows(results)])]
    parts.append(aligned([SITUATION_HEADS, *situations(results)]))
    parts.append(aligned(pages_table(results.pages)))
    parts.append(aligned(knowledge_table(results.knowledge)))
    parts.append(aligned([("goal", "wanted", "found", ""), *judge(results)]))
    parts += [f"{name}: {why}" for name, why in absent(results)]
    return "\n\n".join(parts)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if n else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def as_markdown(results: Results) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in results.machine.items())
    parts = [
        f"Run of {results.began_at}: {machine}. " + HOW.format(results.options["rounds"]),
        "![Jobs a second, one worker process](benchmarks.svg)",
        "### Goals",
        table([("measure", "goal", "found", ""), *judge(results)]),
        "### Figures",
        table([HEADS, *rows(results)]),
        "### In other situations",
        table([SITUATION_HEADS, *situations(results)]),
        "### Pages",
        table(pages_table(results.pages)),
        "### Knowledge",
        table(knowledge_table(results.knowledge)),
        "### Settings",
        table([("contestant", "versions", "jobs", "settings"), *settings(results)]),
    ]
    parts += [f"- {store}: {listed(about)}" for store, about in results.beds.items()]
    if missed := absent(results):
        parts += ["### Without figures", table([("contestant", "why"), *map(on_a_line, missed)])]
    return "\n\n".join(parts)


def settings(results: Results) -> list[tuple[str, ...]]:
    return [
        (one.name, listed(one.versions), f"{one.jobs:,}", one.settings) for one in results.everybody
    ]


def listed(named: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in named.items())


def on_a_line(row: tuple[str, str]) -> tuple[str, str]:
    return row[0], " ".join(row[1].split())[:300]


def table(lines: Sequence[Sequence[str]]) -> str:
    head, *body = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    ]
    rule = "|---" + "|--:" * (len(lines[0]) - 1) + "|"
    return "\n".join([head, rule, *body])


def write(results: Results) -> None:
    text = DOCUMENT.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{as_markdown(results)}\n\n{END}{after}", "utf-8")
    CHART.write_text(chart.draw(results), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.report", description=__doc__)
    parser.add_argument("run", type=Path, nargs="?", help="a file of bench/results; else the last")
    path = parser.parse_args().run
    results = latest() if path is None else load(path)
    if results is None:
        parser.error("there is no run yet: make bench")
    write(results)
    print(f"the run of {results.began_at} is now in {DOCUMENT.name} and {CHART.name}")


if __name__ == "__main__":
    main()
