"""Looking at jobs and queues. Everything here runs on a reader's connection and changes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final

from windrow.queue.job import FINAL, LIVE, Job, JobState, Step
from windrow.queue.records import (
    BAD_ENDS,
    LINES,
    ErrorCount,
    JobFilter,
    QueueInfo,
    ReadyKind,
    is_bad_end,
)
from windrow.queue.sqlite.rows import (
    id_list,
    read_error,
    read_job,
    to_json,
    to_optional_time,
    to_state,
    to_time,
)
from windrow.queue.sqlite.work import Work, statement

# A condition of list_jobs.sql for each field of a filter.
_CONDITIONS: Final = {
    "queue": "j.queue = :queue",
    "kind": "j.kind = :kind",
    "tenant": "j.tenant = :tenant",
    "group": "j.group_id = :group",
    "unique": "j.unique_key = :unique",
    "tag": "EXISTS (SELECT 1 FROM json_each(p.tags) AS t WHERE t.value = :tag)",
    "error": "instr(lower(j.error), lower(:error)) > 0",
    "text": "instr(lower(p.payload), lower(:text)) > 0",
    "since": "j.id >= :since",
}
_AFTER: Final = "j.id < :after"
_ANY_STATE: Final = "j.state IN (SELECT value FROM json_each(:states))"
# Few jobs are active among many that wait, and the leases name them.
_ACTIVE: Final = (
    "j.state = 'active' AND j.seq IN "
    "(SELECT h.value FROM windrow_lease AS k, json_each(k.job_seqs) AS h)"
)
# The first half is the condition of the partial index, word for word, as SQLite wants it.
_BAD_END: Final = "j.state IN ('failed', 'cancelled') AND j.state = '{state}'"


def get_jobs(work: Work, ids: Sequence[str]) -> dict[str, Job]:
    """Jobs with everything that is kept of them."""
    wanted = {"ids": id_list(ids), "limit": -1}
    condition = "j.id IN (SELECT value FROM json_each(:ids))"
    jobs = [
        job
        for table in ("windrow_job_live", "windrow_job_finished")
        for job in _select(work, table, [condition], wanted)
    ]
    by_seq = {job.seq: job for job in jobs}
    seqs = {"seqs": to_json(list(by_seq))}
    for row in work.named_rows(statement("get_results"), seqs):
        job = by_seq[row["seq"]]
        job.result_json = row["result"] if row["blob_hash"] is None else row["body"]
        job.is_cleaned = job.is_cleaned or bool(row["is_cleaned"])
    for row in work.named_rows(statement("get_errors"), seqs):
        by_seq[row["seq"]].errors.append(read_error(row))
    return {job.id: job for job in jobs}


def get_states(work: Work, ids: Sequence[str]) -> dict[str, JobState]:
    """The states alone."""
    rows = work.named_rows(statement("get_states"), {"ids": id_list(ids)})
    return {row["id"]: JobState(row["state"]) for row in rows}


def get_steps(work: Work, ids: Sequence[str]) -> dict[str, list[Step]]:
    """What is kept of the steps of jobs; those that have none are left out."""
    steps: defaultdict[str, list[Step]] = defaultdict(list)
    for row in work.named_rows(statement("get_steps"), {"ids": id_list(ids)}):
        steps[row["job_id"]].append(Step(row["name"], row["result"], to_time(row["at"])))
    return steps


def list_jobs(work: Work, wanted: JobFilter, after: str | None, limit: int) -> list[Job]:
    """A page of jobs, newest first: each part is read in that order from an index and merged."""
    conditions = list(_conditions(wanted))
    values = {name: getattr(wanted, name) for name in _CONDITIONS}
    if after is not None:
        conditions.append(_AFTER)
    values |= {"after": after, "limit": limit, "states": to_json(wanted.states)}
    parts = [
        _select(work, table, [*conditions, condition], values)
        for table, condition in _parts(wanted.states, has_line=_line(wanted) is not None)
    ]
    newest_first = merge(*parts, key=lambda job: job.id, reverse=True)
    return list(islice(newest_first, limit))


def find_earlier(work: Work, wanted: JobFilter, count: int, after: str | None) -> str | None:
    """Counted in the order of one index of each table."""
    line = _line(wanted)
    conditions = ["true" if after is None else _AFTER]
    if line is not None:
        conditions.append(_CONDITIONS[line])
    elif wanted.states is not None and is_bad_end(wanted.states):
        conditions.append(_BAD_END.format(state=wanted.states[0].value))
    text = statement("find_earlier").format(conditions=" AND ".join(conditions))
    values = {name: getattr(wanted, name) for name in LINES}
    values |= {"after": after, "count": count, "is_finished": _are_finished(wanted.states)}
    return next((row["id"] for row in work.named_rows(text, values)), None)


def _are_finished(states: Sequence[JobState] | None) -> bool | None:
    """Whether these are states of jobs that have ended, or of others; None: of both."""
    ends = {state in FINAL for state in states or JobState}
    return ends.pop() if len(ends) == 1 else None


def list_ended(work: Work, values: dict[str, Any]) -> list[str]:
    return [job_id for (job_id,) in work.rows("list_ended", values)]


def _line(wanted: JobFilter) -> str | None:
    """The field whose index is narrowest, if one has an index."""
    return next((name for name in LINES if getattr(wanted, name) is not None), None)


def _conditions(wanted: JobFilter) -> Iterator[str]:
    """What the fields of a filter ask for. A plus keeps SQLite from an index: it knows nothing of
    how many jobs a tenant has, and would read all of them to find those of a key."""
    line = None if wanted.states == (JobState.ACTIVE,) else _line(wanted)
    for name, text in _CONDITIONS.items():
        if getattr(wanted, name) is not None:
            yield f"+{text}" if name in LINES and name != line else text


def _parts(
    states: tuple[JobState, ...] | None, *, has_line: bool = False
) -> Iterator[tuple[str, str]]:
    """The tables to read, each with a condition on the state, which serves where no other field has
    an index."""
    if states is None:
        yield from (("windrow_job_live", "true"), ("windrow_job_finished", "true"))
        return
    chosen = frozenset(states)
    if chosen & LIVE:
        yield "windrow_job_live", _ACTIVE if chosen & LIVE == {JobState.ACTIVE} else _ANY_STATE
    if chosen & FINAL and chosen & FINAL <= BAD_ENDS and not has_line:
        for state in chosen & FINAL:
            yield "windrow_job_finished", _BAD_END.format(state=state.value)
    elif chosen & FINAL:
        yield "windrow_job_finished", _ANY_STATE


def _select(work: Work, table: str, conditions: Sequence[str], values: dict[str, Any]) -> list[Job]:
    text = statement("list_jobs").format(table=table, conditions="\n  AND ".join(conditions))
    return [read_job(row) for row in work.named_rows(text, values)]


def list_queues(work: Work) -> list[QueueInfo]:
    """Queues with counts from the tally."""
    found: dict[str, Any] = {}
    counts: defaultdict[str, dict[JobState, int]] = defaultdict(dict)
    for row in work.named_rows(statement("list_queues"), {}):
        found[row["queue"]] = row
        if row["state"] is not None:
            counts[row["queue"]][to_state(row["state"])] = row["count"]
    return [
        QueueInfo(
            name,
            bool(row["is_paused"]),
            counts[name],
            _oldest_ready(work, name, counts[name]),
            row["max_depth"],
            row["on_full"],
        )
        for name, row in found.items()
    ]


def _oldest_ready(work: Work, queue: str, counts: dict[JobState, int]) -> Any:
    if JobState.READY not in counts:
        return None
    [(run_at,)] = work.rows("find_oldest_ready", {"queue": queue})
    return to_optional_time(run_at)


def count_tenant(work: Work, tenant: str, most: int) -> dict[tuple[str, JobState], int]:
    rows = work.rows("count_tenant", {"tenant": tenant, "most": most})
    return {(queue, to_state(state)): count for queue, state, count in rows}


def list_ready_kinds(work: Work, limit: int) -> list[ReadyKind]:
    return [
        ReadyKind(*row)
        for (queue,) in work.rows("list_ready_queues", {})
        for row in work.rows("list_ready_kinds", {"queue": queue, "limit": limit})
    ]


def list_errors(work: Work, queue: str | None, limit: int, newest: int | None) -> list[ErrorCount]:
    rows = work.rows("list_errors", {"queue": queue, "limit": limit, "newest": newest or -1})
    return [
        ErrorCount(error, count, to_time(first_at), to_time(last_at), example)
        for error, count, first_at, last_at, example in rows
    ]


def resume_queue(work: Work, name: str) -> None:
    work.run("resume_queue", {"name": name})
    work.ready_queues.add(name)
