"""A row of another queue's table becomes an arrival: its job, under an id that is always the same,
and what odd values mean."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from windrow.catalog.sources import SourceRow
from windrow.db.codec import clean_text
from windrow.errors import InvalidJob
from windrow.queue.checks import SizeLimits, check_name, to_row
from windrow.queue.copying import CopiedGroup, CopiedJob
from windrow.queue.job import FINAL, JobError, JobState, NewJob, Progress
from windrow.services.migration.origins import Row

_NAMESPACE: Final = uuid.UUID("5f0c6a2e-53c1-4c53-8a6e-0d1a4f6a3b77")
DONE: Final = "done already"
SPOILT: Final = "migrated"  # the queue of what cannot be done as it is
_DATE_DIGITS: Final = 8  # of 20250601; a longer number counts from 1970
_LONGEST_KEY: Final = 500  # characters: Postgres takes no longer ones than 2,700 bytes
_FAR_SECONDS: Final = 1e11  # a number of seconds is smaller, until the year 5138


@dataclass(frozen=True, slots=True)
class Left:
    """A row that does not become a job, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Past:
    """What has become of a job where it comes from."""

    state: JobState = JobState.READY
    created_at: datetime | None = None
    run_at: datetime | None = None
    finished_at: datetime | None = None
    attempts: int = 0
    crashes: int = 0
    runs: int = 0
    max_crashes: int | None = None
    errors: Sequence[str] = ()
    result: Any = None
    progress: int | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What a row asks for that waits."""

    id: str
    kind: str
    asked_at: datetime
    is_due: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """One table: how its rows are told apart, in which order they come, and what each becomes."""

    name: str
    keys: Sequence[str | tuple[str, ...]]  # a tuple: these together, if there is the first
    order: Sequence[str]
    convert: Callable[[Row, str, Context], CopiedJob | Left]  # the row, the id of its job

    def key_of(self, row: Row) -> str:
        """What tells a row from the others: the first of these columns that it has."""
        for one in self.keys:
            columns = (one,) if isinstance(one, str) else one
            if row.get(columns[0]) is not None:
                return str(row[one]) if isinstance(one, str) else _joined(row, one)
        return checksum(row)


@dataclass(slots=True)
class Context:
    """What is known while a table is read."""

    origin: str
    now: datetime
    with_finished: bool = False
    messages: Mapping[Any, str] = field(default_factory=dict)  # texts of errors, by id
    table: str = ""
    sources: list[SourceRow] = field(default_factory=list)  # that the jobs ask for
    is_weighing: bool = False  # what rows ask for, and nothing is made of them yet
    wishes: dict[tuple[str | None, str | None, str], tuple[Wish, Wish | None]] = field(
        default_factory=dict
    )  # what waits, by tenant, unique key and branch: the newest, and the newest that is due
    later: set[str] = field(default_factory=set)  # ids of jobs that are to come after all others
    branches: dict[tuple[str | None, str | None], str] = field(default_factory=dict)

    def enter(self, table: str) -> None:
        self.table = table

    def take_sources(self) -> list[SourceRow]:
        taken, self.sources = self.sources, []
        return taken

    def id_of(self, key: str) -> str:
        """The id of the job that a row becomes: its own where that is a UUID, for others may know
        the job by it; else one that is the same each time."""
        try:
            return str(uuid.UUID(key))
        except ValueError:
            return str(uuid.uuid5(_NAMESPACE, "\0".join([self.origin, self.table, key])))

    def weigh(self, new: NewJob, branch: str, wish: Wish) -> None:
        """Note what a row asks for, while all of them are looked through."""
        key = (new.tenant, new.unique, branch)
        newest, due = self.wishes.get(key, (wish, None))
        if wish.asked_at > newest.asked_at:
            newest = wish
        if wish.is_due and (due is None or wish.asked_at > due.asked_at):
            due = wish
        self.wishes[key] = (newest, due)

    def choose(self, new: NewJob, branch: str, id: str) -> Left | None:
        """Of rows that ask for one thing the last one counts, in whichever table it is. One that
        waits for its time comes after the last that is due, unless both ask for the same."""
        newest, due = self.wishes[new.tenant, new.unique, branch]
        before = None if newest.is_due or due is None or due.kind == newest.kind else due
        if id == newest.id:
            if before is not None:
                self.later.add(id)
            return None
        if before is not None and id == before.id:
            return None
        is_same = new.kind == newest.kind
        return Left(f"another row asks for {'the same' if is_same else 'something else later'}")

    def unique_of(self, new: NewJob, branch: str) -> str:
        """The unique key of an item, in which its branch has no part. What is known of a file is
        kept by branch, so rows of several branches are to come all of them: those of the branch
        that is met first have the key as it is, the others one of their own."""
        first = self.branches.setdefault((new.tenant, new.unique), branch)
        return str(new.unique) if first == branch else f"{new.unique}:{_digest(branch)[:16]}"


def make_job(context: Context, id: str, new: NewJob, past: Past) -> CopiedJob:
    """The job of a row. One whose values no job can have has failed, with the reason."""
    try:
        row = to_row(msgspec.structs.replace(new, id=id), SizeLimits())
    except InvalidJob as error:
        return spoilt(context, id, new.kind, new.payload, str(error), past)
    created = past.created_at or context.now
    run_at = past.run_at or created
    state = past.state
    if state is JobState.READY and run_at > context.now:
        state = JobState.SCHEDULED
    is_final = state in FINAL
    return CopiedJob(
        id=id,
        queue=row.queue,
        kind=row.kind,
        state=state,
        priority=row.priority,
        attempts=past.attempts,
        crashes=past.crashes,
        runs=max(past.runs, past.attempts + past.crashes),
        # One that had used them up waits all the same: it has one more.
        max_attempts=max(row.max_attempts, past.attempts + (not is_final)),
        max_crashes=max(past.max_crashes or row.max_crashes, past.crashes + (not is_final)),
        created_at=created,
        run_at=run_at,
        started_at=None,
        finished_at=(past.finished_at or context.now) if is_final else None,
        expires_at=None,
        tenant=row.tenant,
        group=past.group,
        root_of=None,
        unique=row.unique,
        error=_first_line(past.errors[-1]) if past.errors else None,
        lease_seconds=row.lease_seconds,
        retention_seconds=row.retention_seconds,
        is_cleaned=row.is_cleaned,
        tags=row.tags,
        errors=tuple(
            JobError(past.finished_at or created, "attempt", clean_text(text), "Imported")
            for text in past.errors
        ),
        progress=None if past.progress is None else Progress(past.progress, None, {}, context.now),
        limits=(),
        max_hold_seconds=row.max_hold_seconds,
        place=0,
        payload=bytes(row.payload).decode(),
        headers=None if row.headers is None else bytes(row.headers).decode(),
        result=None if past.result is None else msgspec.json.encode(past.result).decode(),
        unit=past.group,
    )


def spoilt(
    context: Context, id: str, kind: str, payload: Any, reason: str, past: Past | None = None
) -> CopiedJob:
    """What cannot be done as it is becomes a failed job that has the row, to be mended and retried:
    nothing is lost silently."""
    past = past or Past()
    failed = Past(
        state=JobState.FAILED,
        created_at=past.created_at,
        errors=[*past.errors, f"it cannot be taken over as it is: {reason}"],
        group=past.group,
    )
    new = NewJob(_name(kind), _kept(payload), queue=SPOILT)
    return make_job(context, id, new, failed)


def is_spoilt(item: CopiedJob | CopiedGroup) -> bool:
    return isinstance(item, CopiedJob) and item.queue == SPOILT


def _name(kind: str) -> str:
    try:
        return check_name(kind, "kind")
    except InvalidJob:
        return "unknown"


def _kept(payload: Any) -> Any:
    """As JSON, whatever was in it; one that is too large stays where it is."""
    text = msgspec.json.encode(payload, enc_hook=str)
    if len(text) > SizeLimits().payload:
        return {"left_behind": f"a payload of {len(text)} bytes"}
    return msgspec.json.decode(text)


def checksum(row: Row) -> str:
    """Of all that a row says."""
    return _digest(msgspec.json.encode(sorted(row.items()), enc_hook=str))[:32]


def _joined(row: Row, columns: Sequence[str]) -> str:
    """Some of a row's values as one text, which no other values have."""
    text = msgspec.json.encode([row.get(name) for name in columns], enc_hook=str).decode()
    return text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]} {_digest(text)}"


def _digest(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def read_time(value: Any) -> datetime | None:
    """A time, however it was written; without a zone it is UTC. None if it is none, or lies outside
    of what the databases can say."""
    try:
        if isinstance(value, str) and len(value) > _DATE_DIGITS and value.strip().isdecimal():
            value = int(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = datetime.fromtimestamp(_seconds(value), UTC)
        elif isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        if not isinstance(value, datetime):
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _seconds(number: float) -> float:
    """Since 1970; as seconds, milliseconds, micro- or nanoseconds, whichever is in our time."""
    for unit in (1, 1e3, 1e6, 1e9):
        if abs(number) / unit < _FAR_SECONDS:
            return number / unit
    raise ValueError("no time that a program of ours would write")


def read_json(value: Any) -> Any:
    """JSON that is text in one database and a value in another. What is none is kept as text under
    `unreadable`."""
    if value is None or not isinstance(value, str | bytes):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = value if isinstance(value, str) else value.decode(errors="replace")
        return {"unreadable": text} if text.strip() else None


def is_unreadable(value: Any) -> bool:
    """Whether it is a text that says something, and no JSON."""
    if not isinstance(value, str | bytes) or not value.strip():
        return False
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return True
    return False


def as_mapping(value: Any) -> dict[str, Any]:
    read = read_json(value)
    if read is None:
        return {}
    return read if isinstance(read, dict) else {"value": read}


def as_count(value: Any, most: int = 1_000_000) -> int:
    try:
        return min(max(0, int(value or 0)), most)
    except (TypeError, ValueError, OverflowError):
        return 0


def as_priority(value: Any, usual: int) -> int:
    """0 to 10."""
    try:
        return min(max(0, int(value)), 10)
    except (TypeError, ValueError, OverflowError):
        return usual


def as_text(value: Any) -> str | None:
    """A text that says something, or None."""
    text = "" if value is None else str(value).strip()
    return text or None


def as_errors(value: Any) -> list[str]:
    """What went wrong, if anything is said of it."""
    text = as_text(value)
    return [] if text is None else [text]


def _first_line(text: str) -> str:
    return clean_text(text).strip().partition("\n")[0][:500]
