"""The figures that `make size` prints, and the bound that the plan of the house sets for each."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.size import trace
from tests.size.source import ROOT, Source, net_sql_lines, raw_lines
from windrow.queue.store import Store

SMALL = 60  # net lines
WAYS = Path(__file__).with_name("ways.toml")
GERUND = re.compile(r"[a-z]+ing")

Measure = Callable[[Source], int | Sequence[str]]


@dataclass(frozen=True, slots=True)
class Figure:
    """What is measured of the source. A measure that gives names is their number."""

    meaning: str
    bound: int
    measure: Measure
    step: int = 1  # the ratchet is a multiple of it


def net_python(source: Source) -> int:
    return sum(module.net_lines for module in source.modules.values())


def net_sql(source: Source) -> int:
    return sum(map(net_sql_lines, source.statements.values()))


def raw_source(source: Source, part: str = "") -> int:
    """Raw lines of Python and SQL, the snapshots of the schema apart."""
    python = (m.raw_lines for m in source.modules.values() if _is_in(part, m.path))
    sql = (len(text.splitlines()) for p, text in source.statements.items() if _is_in(part, p))
    return sum(python) + sum(sql)


def _is_in(part: str, path: Path) -> bool:
    return not part or path.parts[0] == part


def modules(source: Source) -> list[str]:
    return list(source.modules)


def small_modules(source: Source) -> list[str]:
    """Small modules that exactly one other module imports."""
    return [
        f"{name} <- {importer}"
        for name, module in source.modules.items()
        if module.net_lines < SMALL and len(source.importers[name]) == 1
        for importer in source.importers[name]
    ]


def store_verbs(_: Source) -> list[str]:
    """Public methods of all protocols that make up `Store`."""
    return sorted(
        {
            f"{protocol.__name__}.{name}"
            for protocol in Store.__mro__
            for name, value in vars(protocol).items()
            if getattr(protocol, "_is_protocol", False) and inspect.isfunction(value)
            if not name.startswith("_")
        }
    )


def ways(_: Source, verb: str, store: str) -> list[str]:
    """The ways listed in ways.toml: what they are is said there."""
    return list(tomllib.loads(WAYS.read_text("utf-8"))[store][verb])


def files_naming(source: Source, column: str) -> list[str]:
    return source.files_naming(column)


def largest_cycle(source: Source) -> list[str]:
    return source.largest_cycle


def gerunds(source: Source) -> list[str]:
    """Modules and packages whose whole name is one word in -ing."""
    return [name for name in source.modules if GERUND.fullmatch(name.rpartition(".")[2])]


def shared_class_names(source: Source) -> list[str]:
    found = Counter(name for m in source.modules.values() for name in {*m.public_classes})
    return sorted(name for name, count in found.items() if count > 1)


def hard_dependencies(_: Source) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return list(project["dependencies"])


def raw_tests(_: Source) -> int:
    return raw_lines(ROOT / "tests")


FIGURES: Final[dict[str, Figure]] = {
    "net_python": Figure("net lines of Python", 32_000, net_python, 100),
    "net_sql": Figure("net lines of SQL", 9_500, net_sql, 100),
    "raw_source": Figure("raw lines of src/, Python and SQL", 80_000, raw_source, 100),
    "raw_queue": Figure(
        "raw lines of queue/, Python and SQL", 20_000, partial(raw_source, part="queue"), 100
    ),
    "modules": Figure("modules in src/", 300, modules),
    "small_modules": Figure(f"modules under {SMALL} net lines, one importer", 10, small_modules),
    "store_verbs": Figure("verbs of the Store contract", 60, store_verbs),
    **{
        f"{verb}_ways_{store}": Figure(
            f"ways to {verb}, {store}", bound, partial(ways, verb=verb, store=store)
        )
        for verb, bound in (("insert", 3), ("finish", 2), ("claim", 1))
        for store in ("sqlite", "postgres")
    },
    **{
        f"files_naming_{column}": Figure(
            f"files naming {column}", 10, partial(files_naming, column=column)
        )
        for column in ("retention_seconds", "max_hold_seconds")
    },
    "largest_cycle": Figure("modules in the largest import cycle", 1, largest_cycle),
    "gerunds": Figure("modules named by a bare gerund", 10, gerunds),
    "shared_class_names": Figure("public class names in several modules", 5, shared_class_names),
    "hard_dependencies": Figure("hard dependencies", 8, hard_dependencies),
    "raw_tests": Figure("raw lines of tests/", 50_000, raw_tests, 100),
}


@dataclass(frozen=True, slots=True)
class TracedFigure:
    """What a run on a fresh database shows: files of the package that it goes through."""

    meaning: str
    bound: int
    store: str
    trace: trace.Trace


TRACED: Final[dict[str, TracedFigure]] = {
    f"{name}_files_{store}": TracedFigure(f"files of {meaning}, {store}", bound, store, traced)
    for name, meaning, bound, traced in (
        ("enqueue", "one enqueue", 10, trace.trace_enqueue),
        ("life", "a job's whole life", 35, trace.trace_life),
    )
    for store in ("sqlite", "postgres")
}
