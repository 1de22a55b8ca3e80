"""`make size`: the figures of the house beside their ratchets and bounds.

`--tighten` lowers the ratchets to the figures, `--list NAME` shows what a figure counts, and
`--no-traces` leaves out the figures that need a database.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.postgres_server import choose_server, create_database, drop_database
from tests.size import ratchet
from tests.size.figures import FIGURES, TRACED, Figure, TracedFigure
from tests.size.source import SOURCE, Source, net_sql_lines

Measured = Mapping[str, int | Sequence[str]]


def main() -> None:
    asked = _parse()
    source = Source(SOURCE)
    if asked.list is not None:
        sys.exit(_show_list(asked.list, _measure_one(source, asked.list)))
    measured: Measured = {name: one.measure(source) for name, one in FIGURES.items()}
    if not asked.no_traces:
        measured = {**measured, **_trace(TRACED)}
    figures = {name: one if isinstance(one, int) else len(one) for name, one in measured.items()}
    if asked.tighten:
        ratchet.tighten(figures, {name: one.step for name, one in FIGURES.items()})
    _show_figures(figures)
    _show_packages(source)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make size", description=__doc__)
    parser.add_argument("--tighten", action="store_true", help="lower the ratchets to the figures")
    parser.add_argument("--no-traces", action="store_true", help="only what needs no database")
    parser.add_argument("--list", metavar="NAME", choices=[*FIGURES, *TRACED])
    return parser.parse_args()


def _measure_one(source: Source, name: str) -> int | Sequence[str]:
    return FIGURES[name].measure(source) if name in FIGURES else _trace([name])[name]


def _trace(names: Iterable[str]) -> dict[str, list[str]]:
    traced = {}
    for name in names:
        with _database(TRACED[name].store) as url:
            traced[name] = asyncio.run(TRACED[name].trace(url))
    return traced


@contextmanager
def _database(store: str) -> Iterator[str]:
    """The URL of a fresh database; a private Postgres is started for it, as for the tests."""
    if store == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{Path(folder) / 'size.db'}"
        return
    server = choose_server()
    server.start()
    try:
        url = create_database(server.url())
        yield url
        drop_database(server.url(), url)
    finally:
        server.stop()


def _show_figures(figures: Mapping[str, int]) -> None:
    limits = ratchet.load()
    described: dict[str, Figure | TracedFigure] = {**FIGURES, **TRACED}
    print(f"{'':56} {'now':>8} {'ratchet':>8} {'bound':>8}")
    for name, figure in figures.items():
        one, limit = described[name], limits.get(name)
        row = f"{one.meaning:56} {figure:8,} {limit or 0:8,} {one.bound:8,}"
        print(f"{row}  {_remark(name, figure, limit)}".rstrip())


def _remark(name: str, figure: int, limit: int | None) -> str:
    step = FIGURES[name].step if name in FIGURES else 1
    if limit is None or figure > limit:
        return f"ABOVE the ratchet: {name}"
    if ratchet.rounded(figure, step) < limit:
        return "lower the ratchet: make size ARGS=--tighten"
    return ""


def _show_packages(source: Source) -> None:
    """Net lines and modules by package, the largest first."""
    python, sql, modules = Counter[str](), Counter[str](), Counter[str]()
    for module in source.modules.values():
        python[_package(module.path)] += module.net_lines
        modules[_package(module.path)] += 1
    for path, text in source.statements.items():
        sql[_package(path)] += net_sql_lines(text)
    print(f"\n{'net lines by package':56} {'Python':>8} {'SQL':>8} {'modules':>8}")
    for package, lines in python.most_common():
        print(f"{package:56} {lines:8,} {sql[package]:8,} {modules[package]:8,}")


def _package(path: Path) -> str:
    return path.parts[0] if len(path.parts) > 1 else "(modules of no package)"


def _show_list(name: str, measured: int | Sequence[str]) -> int:
    if isinstance(measured, int):
        print(f"{name} is a count of lines: there is nothing to list", file=sys.stderr)
        return 1
    print("\n".join(measured))
    return 0


if __name__ == "__main__":
    main()
