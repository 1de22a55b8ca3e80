"""Slots of schedules: when they are, which ones are due, and the job of each. Pure functions.

An interval's slots are its multiples since the epoch, so they never drift and are the same for
everybody who computes them. A cron line goes by the wall clock of its time zone: a slot that the
clock skips in spring is fired once, right after the gap, and one that it shows twice in autumn
once, the first time. Only with `*` for the hours is it real time that counts, so that what runs
every quarter of an hour does so in that night too.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from windrow.errors import InvalidSchedule
from windrow.queue.records import CatchUp, JobRow, Schedule, Timing

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

logger = logging.getLogger(__name__)

LEAST_EVERY: Final = 1.0  # seconds; both stores are tended about that often
LONGEST_CRON: Final = 255  # characters
SLOTS_PER_CALL: Final = 1000  # that one transaction fires at the most
# With "skip", a slot that is fired this late counts as fired in time.
GRACE: Final = timedelta(minutes=1)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)
# Files among the zones that are another zone on each machine.
_LOCAL_ZONES: Final = ("localtime", "posixrules")
_POLICIES: Final = get_args(CatchUp)
_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Firing(msgspec.Struct, frozen=True):
    """The slots to fire now, oldest first, and the one to wait for then."""

    slots: tuple[datetime, ...]
    next_at: datetime


def check_timing(cron: Any, timezone: Any, every_seconds: float | None) -> Timing:
    """A timing as people give it, checked. Raises InvalidSchedule."""
    if (cron is None) == (every_seconds is None):
        raise InvalidSchedule("give either every or cron, and not both")
    if not isinstance(timezone, str):
        raise InvalidSchedule(f"the time zone must be a name like Europe/Berlin, not {timezone!r}")
    _zone(timezone)
    if cron is not None and (not isinstance(cron, str) or len(cron) > LONGEST_CRON):
        raise InvalidSchedule(
            f"cron must be a text of up to {LONGEST_CRON} characters, not {cron!r}"
        )
    if every_seconds is not None and every_seconds < LEAST_EVERY:
        raise InvalidSchedule(f"every must be at least 1 second, not {every_seconds:g}")
    timing = Timing(cron=cron, timezone=timezone, every_seconds=every_seconds)
    next_slot(timing, datetime.now(UTC))
    return timing


def check_catch_up(policy: Any) -> CatchUp:
    if policy not in _POLICIES:
        raise InvalidSchedule(f"catch_up must be one of {', '.join(_POLICIES)}, not {policy!r}")
    checked: CatchUp = policy
    return checked


def next_slot(timing: Timing, after: datetime) -> datetime:
    """The first slot later than that moment. Raises InvalidSchedule if there is none."""
    try:
        if timing.every_seconds is not None:
            return _next_multiple(timing.every_seconds, after)
        return _next_by_cron(timing.cron or "", _zone(timing.timezone), after)
    except OverflowError as error:
        raise InvalidSchedule("the next slot lies beyond the end of the calendar") from error


def first_slot(timing: Timing, now: datetime, last_at: datetime | None = None) -> datetime:
    """The slot that a new, changed or resumed schedule begins with: not one up to the last that was
    fired, even if the clock was set back since."""
    return next_slot(timing, now if last_at is None else max(now, last_at))


def has_same_timing(one: Timing, other: Timing) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in Timing.__struct_fields__)


def plan_firings(due: Sequence[Schedule], now: datetime) -> list[tuple[Schedule, Firing]]:
    """What each of the schedules that are due has to fire. They share the slots of one call evenly,
    so that a long backlog does not keep the others waiting."""
    most = max(1, SLOTS_PER_CALL // max(1, len(due)))
    planned = []
    for schedule in due:
        try:
            planned.append((schedule, due_slots(schedule, now, most)))
        except InvalidSchedule as error:
            # A time zone that this machine does not know, say. The others must go on.
            logger.warning("schedule %r cannot be fired: %s", schedule.name, error)
    return planned


def due_slots(schedule: Schedule, now: datetime, most: int) -> Firing:
    """What a schedule that is due has to fire, by its catch-up policy. If that is more than `most`
    slots, the rest is left for later."""
    match schedule.catch_up:
        case "one":
            slot = latest_slot(schedule, schedule.next_at, now)
            return Firing((slot,), next_slot(schedule, slot))
        case "all":
            return _walk(schedule, schedule.next_at, now, most)
        case "skip":
            oldest = now - GRACE
            first = schedule.next_at
            if first < oldest:
                first = next_slot(schedule, oldest - _TICK)
            return _walk(schedule, first, now, most)


def latest_slot(timing: Timing, first: datetime, now: datetime) -> datetime:
    """The last slot up to now; `first` is one that has passed. By halving, because a schedule that
    slept for a year may have half a million slots."""
    low, high = first - _TICK, now  # there is a slot in (low, now], and none in (high, now]
    while high - low > _SECOND:
        middle = low + (high - low) / 2
        if next_slot(timing, middle) <= now:
            low = middle
        else:
            high = middle
    return next_slot(timing, low)


def job_of(schedule: Schedule, slot: datetime) -> JobRow:
    """The job of a slot: the template, with an id and a delay that follow from name and slot."""
    own = {} if schedule.job.headers is None else msgspec.json.decode(schedule.job.headers)
    headers = {**own, "schedule": schedule.name, "slot": slot.isoformat()}
    share = _digest(schedule.name, slot) / 2**128
    return msgspec.structs.replace(
        schedule.job,
        id=slot_id(schedule.name, slot),
        run_at=slot + timedelta(seconds=schedule.jitter_seconds * share),
        delay=0.0,
        headers=msgspec.Raw(msgspec.json.encode(headers)),
        may_exist=True,
    )


def slot_id(name: str, slot: datetime) -> str:
    """The id of a slot's job. The slot's time comes first, as in the ids of other jobs, so that
    lists have it in its place; a UUID of version 8, whose other bits are ours to choose."""
    milliseconds = (slot - _EPOCH) // timedelta(milliseconds=1)
    value = milliseconds << 80 | _digest(name, slot) & ((1 << 80) - 1)
    value = value & ~(0xF << 76) | 8 << 76
    value = value & ~(0b11 << 62) | 0b10 << 62
    return str(uuid.UUID(int=value))


def _digest(name: str, slot: datetime) -> int:
    """128 bits that follow from a schedule's name and a slot."""
    text = f"{slot.isoformat()} {name}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:16], "big")


def _walk(timing: Timing, slot: datetime, now: datetime, most: int) -> Firing:
    slots: list[datetime] = []
    while slot <= now and len(slots) < most:
        slots.append(slot)
        slot = next_slot(timing, slot)
    return Firing(tuple(slots), slot)


def _next_multiple(every_seconds: float, after: datetime) -> datetime:
    step = timedelta(seconds=every_seconds)
    return _EPOCH + step * ((after - _EPOCH) // step + 1)


def _next_by_cron(cron: str, zone: ZoneInfo, after: datetime) -> datetime:
    from cronsim import CronSim, CronSimError  # not at the top: most processes have no schedules

    try:
        slots = CronSim(_by_wall_clock(cron), after.astimezone(zone))
    except CronSimError as error:
        raise InvalidSchedule(f"cron {cron!r} is not valid: {str(error).lower()}") from error
    for local in slots:
        slot = local.astimezone(UTC)
        # In the hour that comes twice, the library counts from its first time.
        if slot > after:
            return slot
    raise InvalidSchedule(f"cron {cron!r} never comes")


@lru_cache(maxsize=1024)
def _by_wall_clock(cron: str) -> str:
    """The line as the library takes it. It leaves out the hour that is skipped, and fires twice in
    the one that comes twice, where minutes or hours begin with a star; we want that only of lines
    that name no hour, and write the others without stars."""
    fields = _NICKNAMES.get(cron.strip().lower(), cron).split()
    if len(fields) != 5:
        raise InvalidSchedule(
            f"cron {cron!r} must have five fields: minute, hour, day, month, day of the week"
        )
    if fields[1] != "*":
        fields[0] = fields[0].replace("*", "0-59")
        fields[1] = fields[1].replace("*", "0-23")
    return " ".join(fields)


def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo

    try:
        if name in _LOCAL_ZONES:
            raise KeyError(name)
        return ZoneInfo(name)
    # A folder of zones ("Europe") is an OSError, a path out of them a ValueError.
    except (KeyError, ValueError, OSError) as error:
        raise InvalidSchedule(
            f"there is no time zone named {name!r}; a name looks like Europe/Berlin"
        ) from error
