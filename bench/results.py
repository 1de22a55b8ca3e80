"""What a run found: one figure for each contestant, measure and round, kept as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

FOLDER = Path(__file__).parent / "results"

# measure → its name for people, and how many digits it deserves
MEASURES = {
    "one_per_second": ("enqueue one/s", 0),
    "bulk_per_second": ("bulk/s", 0),
    "drain_per_second": ("drain/s", 0),
    "pickup_p50_ms": ("pick-up p50 ms", 1),
    "pickup_p99_ms": ("p99 ms", 1),
    "worker_cpu_ms": ("worker CPU ms/1,000", 0),
    "server_cpu_ms": ("server CPU ms/1,000", 0),
    "wal_enqueue": ("WAL B/job in", 0),
    "wal_drain": ("out", 0),
    "dead_rows": ("dead rows/job", 2),
    "peak_mib": ("worker MiB", 0),
}
# The same of pages: crawled, and converted
PAGE_MEASURES = {
    "pages_per_second": ("pages/s", 0),
    "page_cpu_ms": ("CPU ms/page", 2),
    "page_server_cpu_ms": ("server's", 2),
    "page_peak_mib": ("MiB", 0),
    "convert_ms": ("conversion, CPU ms/page", 2),
}
# And of files that become searchable
KNOWLEDGE_MEASURES = {
    "files_per_second": ("files/s", 0),
    "file_cpu_ms": ("CPU ms/file", 2),
    "mean_kib": ("KiB/file", 2),
    "rescan_seconds": ("second scan s", 2),
    "embedded_per_second": ("chunks embedded/s of a core", 0),
    "chunks": ("chunks", 0),
    "chunk_bytes": ("index B/chunk", 0),
    "search_p50_ms": ("search p50 ms", 2),
    "search_p99_ms": ("p99 ms", 2),
    "owner_p50_ms": ("through the owner p50 ms", 2),
    "owner_p99_ms": ("its p99 ms", 2),
}


class Measured(msgspec.Struct):
    """One contestant: who it is, what it reached in each round, and why it did not, if so."""

    name: str
    store: str
    settings: str
    versions: dict[str, str]
    jobs: int  # of one drain: slow ones get fewer
    figures: dict[str, list[float]] = {}
    absent: str | None = None  # why it has no figures, or not all


class Results(msgspec.Struct):
    began_at: str
    machine: dict[str, str]
    options: dict[str, Any]
    beds: dict[str, dict[str, str]]
    measured: list[Measured]
    pages: list[Measured] = []  # who crawls and who converts
    knowledge: list[Measured] = []  # where files become searchable

    def find(self, name: str) -> Measured | None:
        return next((one for one in self.everybody if one.name == name), None)

    @property
    def everybody(self) -> list[Measured]:
        return [*self.measured, *self.pages, *self.knowledge]

    def save(self) -> Path:
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / f"{self.began_at.replace(':', '')}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))
        return path


def load(path: Path) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)


def latest() -> Results | None:
    """The last run. What it did not measure (jobs, pages, knowledge) is of the last that did."""
    runs = [load(path) for path in sorted(FOLDER.glob("*.json"), reverse=True)]
    if not runs:
        return None
    last = next((run for run in runs if run.measured), runs[0])
    last.pages = next((run.pages for run in runs if run.pages), [])
    last.knowledge = next((run.knowledge for run in runs if run.knowledge), [])
    return last


@dataclass(frozen=True)
class Spread:
    """The median over the rounds, with the least and the most."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        return cls(statistics.median(values), min(values), max(values)) if values else None


def spread(results: Results, name: str, measure: str) -> Spread | None:
    found = results.find(name)
    return Spread.of(found.figures.get(measure, [])) if found else None


def ratio(results: Results, over: tuple[str, str], under: tuple[str, str]) -> Spread | None:
    """One contestant's measure ÷ another's, taken inside each round."""
    above, below = results.find(over[0]), results.find(under[0])
    if above is None or below is None:
        return None
    pairs = zip(above.figures.get(over[1], []), below.figures.get(under[1], []), strict=False)
    return Spread.of([one / other for one, other in pairs if other])
