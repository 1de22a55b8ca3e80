"""What people hand in, checked before anything is written: a `NewJob` becomes a store's `JobRow`.

Every refusal is an `InvalidJob` that names the field and says what is allowed.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final, get_args

import msgspec

from windrow.db.codec import Encoded, clean_text, encode, is_storable
from windrow.errors import InvalidJob, PayloadTooLarge, ResultTooLarge
from windrow.ids import is_id, new_id, new_ids
from windrow.queue.job import NewJob, OnConflict
from windrow.queue.kinds import Kind, check_kind, usual
from windrow.queue.records import FOREVER, JobRow, LimitRow, OnFull

MIB: Final = 1024 * 1024
MAX_PAYLOAD: Final = 4 * MIB
MAX_RESULT: Final = 64 * MIB
MAX_NAME: Final = 255
# Names end up in index entries, which Postgres limits to a third of a page.
MAX_UNIQUE_BYTES: Final = 1024
GROUP_KEY_BYTES: Final = 16  # of the hash
MAX_TAGS: Final = 100
MAX_LIMIT_KEYS: Final = 8
INT32: Final = 2**31 - 1
COUNT_MOST: Final = 2**63 - 1  # of a counter of progress
YEAR: Final = 366 * 86_400
# Rates; beyond these a float would lose count.
LEAST: Final = 1e-6
MOST: Final = 1e6
HOLD_WITHOUT_LIMITS: Final = "max_hold is for jobs with limits"
_MODES: Final = get_args(OnConflict)
_ON_FULL: Final = get_args(OnFull)


class SizeLimits(msgspec.Struct, frozen=True):
    """The largest payload and result that are taken, in bytes of JSON."""

    payload: int = MAX_PAYLOAD
    result: int = MAX_RESULT


def to_row(job: NewJob, limits: SizeLimits, new: str | None = None) -> JobRow:
    """The checked and encoded form of a new job. `new` is its id, if it brings none itself."""
    payload = encode_payload(job.payload, limits)
    headers = check_headers(job.headers, limits)
    check_kind(job.kind)
    kind = usual(check_name(job.kind, "kind"))
    limit_keys = check_limit_keys(_given(job.limits, kind.limits))
    return JobRow(
        id=check_id(job.id, "id") or new or new_id(),
        queue=check_name(_given(job.queue, kind.queue), "queue"),
        kind=job.kind,
        payload=msgspec.Raw(payload.json),
        headers=None if headers is None else msgspec.Raw(headers.json),
        tags=check_tags(job.tags),
        priority=check_integer(job.priority, "priority", -INT32 - 1),
        run_at=check_run_at(job),
        delay=check_seconds(job.delay, "delay") or 0.0,
        unique=check_unique(job),
        on_conflict=job.on_conflict,
        tenant=None if job.tenant is None else check_name(job.tenant, "tenant"),
        group=check_id(job.group, "group"),
        group_key=check_group_key(job),
        max_attempts=check_integer(_given(job.max_attempts, kind.max_attempts), "max_attempts", 1),
        max_crashes=check_integer(_given(job.max_crashes, kind.max_crashes), "max_crashes", 1),
        lease_seconds=check_lease(job.lease),
        retention_seconds=check_retention(job.retention),
        limits=limit_keys,
        max_hold_seconds=check_max_hold(job, limit_keys),
        is_cleaned=payload.is_cleaned or (headers is not None and headers.is_cleaned),
        may_exist=job.id is not None,
    )


# What the jobs of one call mostly have in common: all but the payload.
_options_of: Final = attrgetter(*(name for name in NewJob.__struct_fields__ if name != "payload"))


# Where numbers may stand, of which some are equal and not the same: 1, 1.0 and True.
_NUMBERS: Final = (
    *("priority", "delay", "max_attempts", "max_crashes", "lease", "retention", "max_hold"),
)


def check_new_jobs(jobs: Any) -> tuple[NewJob, ...]:
    """Several new jobs, as `enqueue_many` takes them."""
    wanted = "enqueue_many takes a list of NewJob"
    if isinstance(jobs, NewJob | str) or not isinstance(jobs, Iterable):
        raise InvalidJob(f"{wanted}, not of type {type(jobs).__name__}")
    listed = tuple(jobs)
    for job in listed:
        if not isinstance(job, NewJob):
            raise InvalidJob(
                f"{wanted}, and one item is of type {type(job).__name__}: a handler's "
                "job(payload) makes a NewJob"
            )
    return listed


def to_rows(jobs: Iterable[NewJob], limits: SizeLimits) -> list[JobRow]:
    """The same for many. One that differs from the one before only in its payload takes over what
    was checked: that is most of the work."""
    given = list(jobs)
    rows: list[JobRow] = []
    former: NewJob | None = None  # without its payload
    numbers: list[str] = []  # that it gives
    types: list[type] = []
    for job, job_id in zip(given, new_ids(len(given)), strict=True):
        bare = msgspec.structs.replace(job, payload=None)
        is_alike = bare == former and [type(getattr(job, name)) for name in numbers] == types
        if is_alike and job.id is None and not job.headers:
            payload = encode_payload(job.payload, limits)
            row = msgspec.structs.replace(
                rows[-1],
                id=job_id,
                payload=msgspec.Raw(payload.json),
                is_cleaned=payload.is_cleaned,
            )
        else:
            row = to_row(job, limits, job_id)
            former = bare
            numbers = [name for name in _NUMBERS if getattr(job, name) is not None]
            types = [type(getattr(job, name)) for name in numbers]
        rows.append(row)
    return rows


class _Checked(msgspec.Struct, frozen=True):
    """A row that was made of these options, by what was said of its kind then."""

    options: tuple[Any, ...]
    types: tuple[type, ...]
    kind: Kind
    row: JobRow


# What cannot change behind our back. (What is in a tuple of tags or limits is text.)
_CONSTANT: Final = frozenset({str, int, float, tuple, timedelta, datetime, type(None)})
_MOST_CHECKED: Final = 256  # kinds
_checked: Final[dict[str, _Checked]] = {}  # the last one of each kind


def to_similar_row(job: NewJob, limits: SizeLimits) -> JobRow:
    """The same as `to_row`; what was checked of the last job of this kind is taken over if this one
    differs only in its payload."""
    options = _options_of(job)
    types = tuple(map(type, options))
    last = _checked.get(job.kind) if type(job.kind) is str else None
    is_alike = last is not None and last.types == types and last.options == options
    if last is not None and is_alike and last.kind is usual(job.kind):
        payload = encode_payload(job.payload, limits)
        return msgspec.structs.replace(
            last.row, id=new_id(), payload=msgspec.Raw(payload.json), is_cleaned=payload.is_cleaned
        )
    row = to_row(job, limits)
    if job.id is None and not job.headers and _CONSTANT.issuperset(types):
        if len(_checked) >= _MOST_CHECKED:
            _checked.clear()
        bare = msgspec.structs.replace(row, payload=msgspec.Raw(b"null"))
        _checked[job.kind] = _Checked(options, types, usual(job.kind), bare)
    return row


def _given(value: Any, usual: Any) -> Any:
    return usual if value is None else value


def encode_payload(payload: Any, limits: SizeLimits) -> Encoded:
    encoded = encode(payload, "payload")
    if len(encoded.json) > limits.payload:
        raise PayloadTooLarge(_too_large("payload", len(encoded.json), limits.payload))
    return encoded


def encode_result(result: Any, limits: SizeLimits) -> Encoded | None:
    return None if result is None else _encode_result(result, "result", limits)


def encode_step(name: str, result: Any, limits: SizeLimits) -> Encoded:
    return _encode_result(result, f"result of step {name!r}", limits)


def _encode_result(result: Any, what: str, limits: SizeLimits) -> Encoded:
    encoded = encode(result, what)
    if len(encoded.json) > limits.result:
        raise ResultTooLarge(_too_large(what, len(encoded.json), limits.result))
    return encoded


def check_name(name: Any, what: str) -> str:
    """A queue, kind or tenant: a short text with something in it."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidJob(f"the {what} must be a text that is not empty, not {name!r}")
    if len(name) > MAX_NAME:
        raise InvalidJob(f"the {what} has {len(name)} characters; at most {MAX_NAME} are allowed")
    if not is_storable(name):
        raise InvalidJob(f"the {what} {name!r} has a NUL character or a lone surrogate")
    return name


def check_names(names: Sequence[str] | str | None, what: str) -> tuple[str, ...] | None:
    """Several of them, or one by itself; None means any."""
    if names is None:
        return None
    listed = (names,) if isinstance(names, str) else tuple(names)
    return tuple(dict.fromkeys(check_name(name, what) for name in listed))


def check_id(value: Any, what: str) -> str | None:
    if value is None:
        return None
    if not is_id(str(value)):
        raise InvalidJob(f"the {what} must be a UUID, not {value!r}")
    return str(uuid.UUID(str(value)))


def check_job_id(value: Any, what: str, *, is_foreign: bool) -> str | None:
    """The id of a job. `is_foreign`: it may be one that others gave, with its queue before it."""
    if is_foreign and isinstance(value, str) and not is_id(value) and ":" in value[1:-1]:
        return value
    return check_id(value, what)


def check_integer(value: Any, what: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= INT32:
        raise InvalidJob(f"{what} must be an integer from {least} to {INT32}, not {value!r}")
    return value


def check_seconds(value: Any, what: str) -> float | None:
    """A duration as people give it: seconds or a timedelta, not negative, at most a year or so."""
    if value is None:
        return None
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidJob(f"{what} must be seconds or a timedelta, not {value!r}")
    if not 0 <= seconds <= 100 * YEAR:
        raise InvalidJob(f"{what} must be between 0 seconds and 100 years, not {value!r}")
    return float(seconds)


def check_percent(value: Any) -> int | None:
    """How far a job is; less than nothing and more than all of it are taken for these."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InvalidJob(f"the percentage of progress must be a number, not {value!r}")
    return int(max(0, min(100, value)))


def check_message(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidJob(f"the message of progress must be a text, not {value!r}")
    return None if value is None else clean_text(value)


def check_counters(counters: Mapping[str, Any]) -> dict[str, Any]:
    for name, count in counters.items():
        is_number = isinstance(count, int | float) and not isinstance(count, bool)
        if not is_number or not -COUNT_MOST <= count <= COUNT_MOST:
            raise InvalidJob(f"the counter {name!r} of progress must be a number, not {count!r}")
        check_name(name, "counter")
    return dict(counters)


def check_run_at(job: NewJob) -> datetime | None:
    if job.run_at is None:
        return None
    if job.delay is not None:
        raise InvalidJob("give either run_at or delay, not both")
    if not isinstance(job.run_at, datetime) or job.run_at.tzinfo is None:
        raise InvalidJob(f"run_at must be a datetime with a time zone, not {job.run_at!r}")
    try:
        return job.run_at.astimezone(UTC)
    except OverflowError:  # the last hours of the calendar, or the first, in another zone
        raise InvalidJob(f"run_at is no time that can be kept: {job.run_at}") from None


def check_unique(job: NewJob) -> str | None:
    if job.on_conflict not in _MODES:
        raise InvalidJob(f"on_conflict must be one of {', '.join(_MODES)}, not {job.on_conflict!r}")
    if job.unique is None:
        if job.on_conflict != "return":
            raise InvalidJob(f"on_conflict={job.on_conflict!r} needs a unique key")
        return None
    if not isinstance(job.unique, str) or not job.unique or not is_storable(job.unique):
        raise InvalidJob(f"the unique key must be a text that is not empty, not {job.unique!r}")
    if len(job.unique.encode()) > MAX_UNIQUE_BYTES:
        raise InvalidJob(f"the unique key is longer than {MAX_UNIQUE_BYTES} bytes; hash it")
    return job.unique


def check_group_key(job: NewJob) -> str | None:
    if job.group_key is None:
        return None
    if job.group is None:
        raise InvalidJob("a group_key needs a group")
    if job.unique is not None:
        raise InvalidJob("give either a unique key or a group_key, not both")
    return hash_group_key(job.group_key)


def hash_group_key(key: Any) -> str:
    """A key as it is kept: keys may be long, and a group may have a million of them."""
    if not isinstance(key, str) or not key or not is_storable(key):
        raise InvalidJob(f"a group_key must be a text that is not empty, not {key!r}")
    return hashlib.blake2b(key.encode(), digest_size=GROUP_KEY_BYTES).hexdigest()


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise InvalidJob(f"tags must be a list of texts, not the text {tags!r}")
    checked = tuple(check_name(tag, "tag") for tag in tags)
    if len(checked) > MAX_TAGS:
        raise InvalidJob(f"a job can have at most {MAX_TAGS} tags, not {len(checked)}")
    return checked


def check_headers(headers: Mapping[str, Any] | None, limits: SizeLimits) -> Encoded | None:
    if not headers:
        return None
    if not isinstance(headers, Mapping):
        raise InvalidJob(f"headers must be a mapping, not {headers!r}")
    encoded = encode(dict(headers), "headers")
    if len(encoded.json) > limits.payload:
        raise PayloadTooLarge(_too_large("headers", len(encoded.json), limits.payload))
    return encoded


def check_lease(value: Any) -> int | None:
    seconds = check_seconds(value, "lease")
    if seconds is None:
        return None
    if seconds < 1:
        raise InvalidJob(f"a lease lasts at least 1 second, not {value!r}")
    return math.ceil(seconds)


def check_retention(value: Any) -> int | None:
    if isinstance(value, float) and math.isinf(value):
        return FOREVER
    seconds = check_seconds(value, "retention")
    return None if seconds is None else math.ceil(seconds)


def check_limit_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """The keys of a job, each once, in the order given: the first is its fairness key."""
    if isinstance(keys, str):
        raise InvalidJob(f"limits must be a list of keys, not the text {keys!r}")
    checked = tuple(dict.fromkeys(check_name(key, "limit key") for key in keys))
    if len(checked) > MAX_LIMIT_KEYS:
        raise InvalidJob(f"a job can have at most {MAX_LIMIT_KEYS} limits, not {len(checked)}")
    return checked


def check_max_hold(job: NewJob, limit_keys: tuple[str, ...]) -> int | None:
    seconds = check_seconds(job.max_hold, "max_hold")
    if seconds is None:
        return None
    if not limit_keys:
        raise InvalidJob(HOLD_WITHOUT_LIMITS)
    return math.ceil(seconds)


def check_limit(key: Any, active: Any, per_second: Any, burst: Any) -> LimitRow:
    """A limit as people set it."""
    if burst is not None and per_second is None:
        raise InvalidJob("burst needs per_second")
    return LimitRow(
        key=check_name(key, "limit key"),
        active=None if active is None else check_integer(active, "active", 0),
        per_second=None if per_second is None else _check_positive(per_second, "per_second"),
        burst=None if burst is None else check_integer(burst, "burst", 1),
    )


def _check_positive(value: Any, what: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not LEAST <= value <= MOST:
        raise InvalidJob(f"{what} must be a number from {LEAST:g} to {MOST:g}, not {value!r}")
    return float(value)


def check_bound(max_depth: Any, on_full: Any) -> int | None:
    """The depth of a bounded queue, and that what happens when it is reached is known."""
    if on_full not in _ON_FULL:
        raise InvalidJob(f"on_full must be one of {', '.join(_ON_FULL)}, not {on_full!r}")
    return None if max_depth is None else check_integer(max_depth, "max_depth", 1)


def _too_large(what: str, size: int, limit: int) -> str:
    return (
        f"the {what} is {size / MIB:.1f} MiB as JSON, the limit is {limit / MIB:g} MiB: "
        "keep large things elsewhere and refer to them"
    )
