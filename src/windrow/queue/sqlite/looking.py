"""Looking at jobs and queues. Everything here runs on a reader's connection and changes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final

from windrow.queue.job import FINAL, LIVE, Job, JobState, Step
from windrow.queue.records import ErrorCount, JobFilter, QueueInfo, ReadyKind
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

_BAD_ENDS: Final = frozenset({JobState.FAILED, JobState.CANCELLED})

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
    conditions = [text for name, text in _CONDITIONS.items() if getattr(wanted, name) is not None]
    values = {name: getattr(wanted, name) for name in _CONDITIONS}
    if after is not None:
        conditions.append("j.id < :after")
    values |= {"after": after, "limit": limit, "states": to_json(wanted.states)}
    parts = [
        _select(work, table, [*conditions, condition], values)
        for table, condition in _parts(wanted.states)
    ]
    newest_first = merge(*parts, key=lambda job: job.id, reverse=True)
    return list(islice(newest_first, limit))


def find_earlier(work: Work, after: str | None, count: int, is_finished: bool | None) -> str | None:
    """Of two tables, the later of the ids that lie so far back: no more than that is in either."""
    values = {"after": after, "count": count, "is_finished": is_finished}
    rows = work.rows("find_earlier", values)
    return max((job_id for (job_id,) in rows), default=None)


def list_ended(work: Work, values: dict[str, Any]) -> list[str]:
    return [job_id for (job_id,) in work.rows("list_ended", values)]


def _parts(states: tuple[JobState, ...] | None) -> Iterator[tuple[str, str]]:
    """The tables to read, each with a condition on the state."""
    if states is None:
        yield from (("windrow_job_live", "true"), ("windrow_job_finished", "true"))
        return
    chosen = frozenset(states)
    if chosen & LIVE:
        yield "windrow_job_live", _ACTIVE if chosen & LIVE == {JobState.ACTIVE} else _ANY_STATE
    if chosen & FINAL and chosen & FINAL <= _BAD_ENDS:
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
