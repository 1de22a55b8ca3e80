"""What a migration did, what a verification found, and what could not be taken back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

MOST_NAMED: Final = 20


@dataclass(slots=True)
class TableReport:
    rows: int = 0
    imported: int = 0  # or would be
    known: int = 0  # had come before
    spoilt: int = 0  # of the imported: as failed jobs, because they cannot be done as they are
    left: Counter[str] = field(default_factory=Counter)  # not to be done, by reason
    refused: dict[str, str] = field(default_factory=dict)  # the first of them, by key
    refused_count: int = 0


@dataclass(slots=True)
class MigrationReport:
    origin: str
    target: str
    is_dry_run: bool
    tables: dict[str, TableReport] = field(default_factory=dict)
    unmarked: str | None = None  # why the tables could not be marked as deprecated

    @property
    def is_over(self) -> bool:
        """Whether nothing is left behind that should have come."""
        return not any(table.refused_count for table in self.tables.values())


@dataclass(slots=True)
class Verification:
    """What was found of the rows that should have come, by table."""

    origin: str
    target: str
    rows: Counter[str] = field(default_factory=Counter)
    matched: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)  # were not to come
    done: Counter[str] = field(default_factory=Counter)  # of the left: done, and nowhere but there
    gone: Counter[str] = field(default_factory=Counter)  # of the matched: run and pruned by now
    problems: dict[str, str] = field(default_factory=dict)  # the first of them, by key
    problem_count: int = 0
    is_dropped: bool = False

    @property
    def is_good(self) -> bool:
        return self.problem_count == 0


@dataclass(slots=True)
class Rollback:
    origin: str
    target: str
    removed: int = 0
    kept: dict[str, str] = field(default_factory=dict)  # ids of jobs and groups, and why
    kept_count: int = 0

    def keep(self, id: str, why: str) -> None:
        self.kept_count += 1
        if len(self.kept) < MOST_NAMED:
            self.kept[id] = why
