"""Was it enqueued? If not, the failure says what was enqueued instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from windrow.queue.job import Job
from windrow.queue.queue import Queue

PAGE: Final = 1000
MOST_LISTED: Final = 20
LONGEST_PAYLOAD: Final = 300
FIELDS: Final = frozenset(name for name in Job.__struct_fields__ if not name.startswith("_"))
ANYTHING: Final[Any] = object()


async def assert_enqueued(
    queue: Queue,
    /,
    kind: str,
    payload: Any = ANYTHING,
    *,
    count: int | None = None,
    **expected: Any,
) -> list[Job]:
    """Assert that such a job was enqueued, in whatever state it is now; `count`: exactly so many.
    Returns those found, in the order in which they were enqueued.

    Of a payload that is an object only the members given are compared. Every other field of a job
    can be named too: `queue="mail"`, `priority=8`, `state="scheduled"`.
    """
    wanted = _wanted(kind, payload, expected)
    jobs = await all_jobs(queue)
    found = [job for job in jobs if _fits(job, wanted)]
    if len(found) == count or (found and count is None):
        return found
    how_many = "no job" if not found else "1 job" if len(found) == 1 else f"{len(found)} jobs"
    verb = "was" if len(found) < 2 else "were"
    asked = "" if count is None else f", not {count}"
    raise AssertionError(f"{how_many} with {_said(wanted)} {verb} enqueued{asked}.{_listed(jobs)}")


async def assert_not_enqueued(
    queue: Queue,
    /,
    kind: str | None = None,
    payload: Any = ANYTHING,
    **expected: Any,
) -> None:
    """Assert that no such job was enqueued; with nothing but the queue, none at all."""
    wanted = _wanted(kind, payload, expected)
    found = [job for job in await all_jobs(queue) if _fits(job, wanted)]
    if found:
        what = f"with {_said(wanted)}" if wanted else "at all"
        raise AssertionError(f"no job {what} should have been enqueued.{_listed(found)}")


async def all_jobs(queue: Queue, **filters: Any) -> list[Job]:
    """Every job there is, the one enqueued first in front."""
    found: list[Job] = []
    after: str | None = None
    while page := await queue.list(**filters, after=after, limit=PAGE):
        found += page
        after = page[-1].id
    return sorted(found, key=lambda job: job.seq)


def _wanted(kind: str | None, payload: Any, expected: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := sorted(set(expected) - FIELDS):
        raise TypeError(f"a job has no {', '.join(unknown)}; it has {', '.join(sorted(FIELDS))}")
    wanted = dict(expected)
    if payload is not ANYTHING:
        wanted = {"payload": payload, **wanted}
    return wanted if kind is None else {"kind": kind, **wanted}


def _fits(job: Job, wanted: Mapping[str, Any]) -> bool:
    return all(_matches(getattr(job, name), value) for name, value in wanted.items())


def _matches(actual: Any, wanted: Any) -> bool:
    """Whether a value is the one wanted, or an object with all that is wanted of it."""
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        return all(
            name in actual and _matches(actual[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, tuple | list) and isinstance(actual, tuple | list):
        return list(wanted) == list(actual)
    return bool(actual == wanted)


def _said(wanted: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in wanted.items())


def _listed(jobs: Sequence[Job]) -> str:
    if not jobs:
        return " Nothing was enqueued."
    lines = [
        f"  {job.kind}  {_shortened(repr(job.payload))}  (queue {job.queue}, {job.state})"
        for job in jobs[:MOST_LISTED]
    ]
    if len(jobs) > MOST_LISTED:
        lines.append(f"  and {len(jobs) - MOST_LISTED} more")
    return "\n".join([" These were:", *lines])


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_PAYLOAD else f"{text[:LONGEST_PAYLOAD]}…"
