"""Insertion as steps: statements that are yielded, and whose rows are sent back.

So the same code runs in the writer's transaction and on a connection of the caller's, whatever kind
that is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from windrow.errors import QueueFull
from windrow.queue.records import Inserted, JobRow
from windrow.queue.sqlite.rows import after, to_micros
from windrow.queue.sqlite.work import Work, statement

Values = Mapping[str, Any]
# A statement's name and its values; a list of them runs it once for each and gives no rows.
Step = tuple[str, Values | list[Values]]
Steps = Generator[Step, Sequence[Any], list[Inserted]]


def run_steps(work: Work, steps: Steps) -> list[Inserted]:
    """All steps, in the writer's transaction."""
    found: Sequence[Any] = ()
    try:
        step = next(steps)
        while True:
            name, values = step
            if name == "add_events" and isinstance(values, list):
                work.events += values  # in their turn, after what made these jobs
                found = ()
            elif isinstance(values, list):
                work.run_many(name, values)
                found = ()
            else:
                found = work.named_rows(statement(name), values)
            step = steps.send(found)
    except StopIteration as end:
        inserted: list[Inserted] = end.value
        return inserted


def keep_bounds(added: Counter[str]) -> Generator[Step, Sequence[Any], None]:
    """Refuse so many new jobs by queue if one of these has no room for them."""
    for bound in (yield "find_bounds", {}):
        if not added[bound["name"]] or bound["on_full"] == "drop_oldest":
            continue
        [counted] = yield "count_unclaimed", {"queue": bound["name"]}
        if counted["depth"] + added[bound["name"]] > bound["max_depth"]:
            may_wait = bound["on_full"] == "block"
            raise QueueFull(bound["name"], counted["depth"], bound["max_depth"], may_wait=may_wait)


def due_at(row: JobRow, now: int) -> int:
    if row.run_at is not None:
        return to_micros(row.run_at)
    return after(now, row.delay) if row.delay else now


def due_state(row: JobRow, run_at: int, now: int) -> str:
    """Where a new job waits that nothing else holds."""
    if run_at > now:
        return "scheduled"
    return "held" if row.limits else "ready"
