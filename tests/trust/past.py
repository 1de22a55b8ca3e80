"""A history, looked at by job: what `checker.py` judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.trust.history import Entry

STORED: Final = frozenset({None, "inserted", "replaced"})  # outcomes of an insert that stored it

REPLACING: Final = frozenset({"replace", "follow"})  # what waits under the key

Finding = tuple[str, str]  # a job, and what is wrong with it


@dataclass(slots=True)
class Run:
    """What is known of one claim of a job; numbers are places in the history."""

    job: str
    token: str
    number: int  # among the claims of its job
    by: str = ""
    limits: tuple[str, ...] = ()
    claimed: int | None = None
    started: int | None = None
    ended: int | None = None
    written: int = 0  # rows through `job.tx`
    holds: int | None = None  # since when it may have asked for what is said next
    said: list[tuple[int, Entry]] = field(default_factory=list)  # what was taken of it meanwhile
    replies: list[Entry] = field(default_factory=list)

    @property
    def accepted(self) -> str | None:
        """The outcome that was accepted, if one is known to be."""
        return next((one.outcome for one in self.replies if one.accepted), None)

    @property
    def may_be_done(self) -> bool:
        """Whether it was completed, or nobody lived to tell."""
        return self.accepted == "done" or all(one.accepted is None for one in self.replies)

    @property
    def span(self) -> tuple[int, int] | None:
        """Between which entries it held its job for sure."""
        began = self.started if self.claimed is None else self.claimed
        if self.accepted is None or began is None or self.ended is None:
            return None
        return began, self.ended


@dataclass(slots=True)
class Life:
    """All entries of one job."""

    id: str
    offered: int | None = None
    enqueued: int | None = None
    is_stored: bool = False
    is_removed: bool = False
    is_retried: bool = False  # by hand: it may run again after an end
    key: str | None = None
    follows: bool = False
    group: str | None = None
    queue: str | None = None
    priority: int | None = None
    tokens: dict[str, Run] = field(default_factory=dict)
    finals: list[Entry] = field(default_factory=list)

    @property
    def runs(self) -> list[Run]:
        return sorted(self.tokens.values(), key=lambda run: run.number)

    @property
    def final(self) -> Entry | None:
        return self.finals[-1] if self.finals else None

    @property
    def is_root(self) -> bool:
        """Completed, it waits for its group, and is cancelled with it."""
        return any(entry.note == "root" for entry in self.finals)


class Past:
    """A history, looked at by job."""

    def __init__(self, entries: Sequence[Entry], limits: Mapping[str, int]) -> None:
        self.entries = entries
        self.limits = limits
        self.lives: dict[str, Life] = {}
        # The place of the entry that the same writer wrote before, claims of one batch aside: when
        # it wrote that, it had not asked for what it tells here.
        self.before: list[int] = []
        # Keys of which somebody wanted to replace a job, which then begins to count anew.
        self.replaced = {one.key for one in entries if one.note in REPLACING} - {None}
        last: dict[str, int] = {}
        for place, entry in enumerate(entries):
            self.before.append(last.get(entry.by, -1))
            if entry.what != "claimed":
                last[entry.by] = place
            if entry.job:
                life = self.lives.setdefault(entry.job, Life(entry.job))
                _note(life, entry, place)

    def of(self, what: str) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.what == what)


def _note(life: Life, entry: Entry, place: int) -> None:
    """Add an entry to what is known of its job."""
    match entry.what:
        case "offered":
            life.offered = place if life.offered is None else life.offered
        case "enqueued" | "fired":
            life.is_stored |= entry.outcome in STORED
            if life.enqueued is None and entry.outcome in STORED:
                life.enqueued, life.priority = place, entry.priority
                life.follows = entry.note == "follow"
        case "removed":
            life.is_removed = True
        case "retried":
            life.is_retried = True
        case "final":
            life.finals.append(entry)
        case _ if entry.token is not None:
            _note_run(life, entry, place)
    life.key = entry.key if life.key is None and entry.what != "fired" else life.key
    if entry.what != "group_finished":
        life.group = life.group or entry.group
    life.queue = life.queue or entry.queue


def _note_run(life: Life, entry: Entry, place: int) -> None:
    assert entry.token is not None
    run = life.tokens.get(entry.token)
    if run is None:
        number = len(life.tokens) + 1 if entry.attempt is None else entry.attempt
        run = life.tokens[entry.token] = Run(life.id, entry.token, number, entry.by)
    run.limits = run.limits or entry.limits
    match entry.what:
        case "claimed":
            run.claimed = place
        case "started":
            run.started = place
        case "written":
            run.written += 1
        case "holds":
            run.holds = place
        case "renewed" | "kept" if run.holds is not None:
            run.said.append((run.holds, entry))
        case "ended":
            run.ended = place
        case "finished":
            run.replies.append(entry)
