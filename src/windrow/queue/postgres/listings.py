"""The statements that list jobs, each put together from what is asked for.

A text for each set of filters has a plan that can be kept: to plan one with all leaves takes longer
than most lists do. Such plans know no values, and some were made while a leaf was empty and one
index as good as another. So where an index has what is wanted, there must be no choice: a range of
two of its columns, in the order of both, is a range of that index only. With an equation the order
would be that of the ids, and all jobs are in an index by these.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from windrow.db.statements import Statement, parse_statement
from windrow.queue.job import FINAL, LIVE, JobState
from windrow.queue.postgres.rows import sql
from windrow.queue.records import LINES, JobFilter, is_bad_end

MOST_TEXTS: Final = 500  # that are remembered

# A condition of list_jobs.sql for each thing that a list may be asked for.
_CONDITIONS: Final = {
    "queue": "job.queue = :queue::text",
    "kind": "job.kind = :kind::text",
    # Not to be looked up by, where something narrower is.
    "tenant": "(job.tenant = :tenant::text) IS TRUE",
    "group": "(job.group_id = :group::uuid) IS TRUE",
    "unique": "(job.unique_key = :unique::text) IS TRUE",
    "error": "position(lower(:error::text) IN lower(job.error)) > 0",
    # A value for each job, and no EXISTS, which could be planned as a join with all payloads.
    "tag": (
        "(SELECT :tag::text = ANY (tagged.tags) FROM windrow.job_payload AS tagged "
        "WHERE tagged.id = job.id)"
    ),
    "text": (
        "(SELECT position(lower(:text::text) IN lower(told.payload::text)) > 0 "
        "FROM windrow.job_payload AS told WHERE told.id = job.id)"
    ),
}
# Few jobs are active among many that wait, and the leases name them.
_ACTIVE: Final = (
    "job.state = 'active' AND job.id = ANY (ARRAY(SELECT unnest(job_ids) FROM windrow.lease))"
)
_SET_ASIDE: Final = frozenset({JobState.HELD, JobState.PAUSED, JobState.WAITING})
_ANY_STATE: Final = "job.state = ANY (:states::text[])"


class _Line(NamedTuple):
    """An index that has jobs by something and then by their ids; `scope`: that it has them."""

    name: str  # of the filter
    column: str
    value: str
    scope: str


_LINES: Final = {
    line.name: line
    for line in (
        _Line("unique", "job.unique_key", ":unique::text", "job.unique_key IS NOT NULL"),
        _Line("group", "job.group_id", ":group::uuid", "job.group_id IS NOT NULL"),
        _Line("tenant", "job.tenant", ":tenant::text", "job.tenant IS NOT NULL"),
    )
}


def list_statement(wanted: JobFilter, *, is_after: bool) -> Statement:
    """The statement that lists these jobs."""
    line = _line(wanted) or _set_aside(wanted)
    given = [name for name in _CONDITIONS if getattr(wanted, name) is not None]
    rest = [_CONDITIONS[name] for name in given if line is None or name != line.name]
    table, *condition = _place(wanted.states)
    if line is not None and line.name == "states":
        condition = []
    bounds, order = _bounds(line, is_after=is_after, is_since=wanted.since is not None)
    return _written("list_jobs", table, (*bounds, *rest, *condition), order)


def earlier_statement(wanted: JobFilter, *, is_after: bool) -> Statement:
    """The statement that counts back along the index that these jobs are in."""
    table, *_ = _place(wanted.states)
    bounds, order = _bounds(_line(wanted), is_after=is_after, is_since=False)
    return _written("find_earlier", table, bounds, order)


def _line(wanted: JobFilter) -> _Line | None:
    """The narrowest index that has all of these jobs."""
    if wanted.states == (JobState.ACTIVE,):
        return None
    for name in LINES:
        if getattr(wanted, name) is not None:
            return _LINES[name]
    if wanted.states is not None and is_bad_end(wanted.states):
        return _state_line(wanted.states[0], "job.state <> 'completed'")
    return None


def _set_aside(wanted: JobFilter) -> _Line | None:
    """The index of jobs that wait for something, if they are wanted. SQLite has none, so nothing is
    counted by it."""
    if wanted.states is not None and len(wanted.states) == 1 and wanted.states[0] in _SET_ASIDE:
        return _state_line(wanted.states[0], "job.state IN ('held', 'paused', 'waiting')")
    return None


def _state_line(state: JobState, scope: str) -> _Line:
    """The state is written out: an index that has only some states serves no parameter."""
    return _Line("states", "job.state", f"'{state.value}'", scope)


def _bounds(line: _Line | None, *, is_after: bool, is_since: bool) -> tuple[tuple[str, ...], str]:
    """From where to where in the order of an index, and that order."""
    if line is None:
        conditions = {"job.id < :after::uuid": is_after, "job.id >= :since::uuid": is_since}
        return tuple(text for text, is_given in conditions.items() if is_given), "job.id DESC"
    _, column, value, scope = line
    after = f"({column}, job.id) < ({value}, :after::uuid)" if is_after else f"{column} <= {value}"
    since = f"({column}, job.id) >= ({value}, :since::uuid)" if is_since else f"{column} >= {value}"
    return (after, since, scope), f"{column} DESC, job.id DESC"


@lru_cache(maxsize=MOST_TEXTS)
def _written(name: str, table: str, conditions: tuple[str, ...], order: str) -> Statement:
    """A statement about jobs of a table that these conditions hold for."""
    where = " AND ".join(conditions) or "true"
    return parse_statement(name, sql(name).text.format(table=table, conditions=where, order=order))


def _place(states: tuple[JobState, ...] | None) -> tuple[str, ...]:
    """The table to read, and a condition on the state, if one is left."""
    if states is None:
        return ("windrow.job",)
    chosen = frozenset(states)
    halves = {"windrow.job_live": LIVE, "windrow.job_finished": FINAL}
    table = next((name for name, half in halves.items() if chosen <= half), "windrow.job")
    if chosen in halves.values():
        return (table,)
    if chosen == {JobState.ACTIVE}:
        return table, _ACTIVE
    return table, _ANY_STATE
