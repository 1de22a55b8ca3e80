"""Jobs as they are named in paths; jobs, groups and queues as they are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from windrow.api.callers import Caller
from windrow.queue.checks import check_job_id
from windrow.queue.job import Job, JobState
from windrow.queue.records import Change, Group, Inserted, QueueInfo
from windrow.redaction import redact, redact_json

_OF_JOBS: Final = (
    "id seq queue kind state priority attempts crashes runs max_attempts max_crashes created_at "
    "run_at started_at finished_at expires_at tenant group root_of unique error worker "
    "lease_expires_at stop_as limits max_hold_seconds is_cleaned headers tags progress"
)


def show_head(job: Job) -> dict[str, Any]:
    """A job without what may be large of it but the payload; lists have no more."""
    view = _show_facts(job)
    view["headers"] = redact(view["headers"])
    view["payload"] = raw(redact_json(job.payload_json))
    return view


def show_job(job: Job) -> dict[str, Any]:
    """All of a job but the token of its lease, which is for its worker alone, and where in
    somebody's code an error was."""
    view = show_head(job)
    view["result"] = None if job.result_json is None else raw(job.result_json)
    view["errors"] = [
        {"at": one.at, "reason": one.reason, "message": one.message, "type": one.type}
        for one in job.errors
    ]
    return view


def show_claimed(job: Job) -> dict[str, Any]:
    """A job for who has just claimed it, whose handler needs all of it."""
    return {**_show_facts(job), "payload": raw(job.payload_json), "lease": job.lease_token}


def _show_facts(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in _OF_JOBS.split()}


def show_inserted(one: Inserted) -> dict[str, Any]:
    return {"id": one.id, "outcome": one.outcome, "state": one.state}


def show_change(change: Change) -> dict[str, Any]:
    """A running job is only told to stop: its state is as before, until its worker hears of it."""
    return {"id": change.id, "before": change.before, "state": change.after}


def show_group(group: Group) -> dict[str, Any]:
    names = "id state is_paused is_open pending members max_jobs root tenant created_at ended_at"
    view = {name: getattr(group, name) for name in names.split()}
    return {**view, "counts": full(group.counts)}


def show_queue(info: QueueInfo) -> dict[str, Any]:
    names = "name is_paused oldest_ready_at max_depth on_full"
    view = {name: getattr(info, name) for name in names.split()}
    return {**view, "counts": full(info.counts)}


def full(counts: Mapping[JobState, int]) -> dict[str, int]:
    """With the states that nothing is in."""
    return {state.value: counts.get(state, 0) for state in JobState}


def raw(stored: str | bytes) -> msgspec.Raw:
    """JSON as it is stored: it need not be read to be sent."""
    return msgspec.Raw(stored.encode() if isinstance(stored, str) else stored)


def name_job(caller: Caller, text: str) -> str:
    """The id as the store has it: a UUID, or, where others make jobs too, queue and id. Raises
    InvalidJob if no job there can have it."""
    is_foreign = caller.queue.store.capabilities.foreign_ids
    return str(check_job_id(text, "job_id", is_foreign=is_foreign))
