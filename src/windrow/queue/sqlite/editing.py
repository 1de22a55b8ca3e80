"""Editing one job: an unclaimed one, or a failed or cancelled one before it is retried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from windrow.errors import InvalidJob
from windrow.queue.checks import HOLD_WITHOUT_LIMITS
from windrow.queue.records import Change
from windrow.queue.sqlite.rows import raw_text, to_json, to_micros, to_state
from windrow.queue.sqlite.settling import due_state
from windrow.queue.sqlite.work import Work, statement

_EDITABLE: Final = frozenset(
    {"scheduled", "held", "paused", "ready", "failed", "cancelled"},
)
_CONTENTS: Final = ("payload", "headers", "tags", "is_cleaned")
_COLUMNS: Final = (
    "kind",
    "queue",
    "priority",
    "run_at",
    "max_attempts",
    "max_crashes",
    "lease_seconds",
    "retention_seconds",
    "max_hold_seconds",
)


def edit_job(work: Work, job_id: str, changes: Mapping[str, Any]) -> Change:
    unknown = changes.keys() - {*_CONTENTS, *_COLUMNS, "limits"}
    if unknown:
        raise InvalidJob(f"{sorted(unknown)[0]!r} of a job cannot be edited")
    for table in ("windrow_job_live", "windrow_job_finished"):
        text = statement("find_editable").format(table=table)
        for found in work.named_rows(text, {"id": job_id}):
            if found["state"] not in _EDITABLE:
                state = to_state(found["state"])
                return Change(job_id, state, state, is_refused=True)
            return _edit(work, table, dict(found), changes)
    return Change(job_id, None, None)


def _edit(work: Work, table: str, job: dict[str, Any], changes: Mapping[str, Any]) -> Change:
    edited = job | _column_values(changes)
    if edited["limit_keys"] is None:
        if changes.get("max_hold_seconds") is not None:
            raise InvalidJob(HOLD_WITHOUT_LIMITS)
        edited["max_hold_seconds"] = None
    has_moved = "run_at" in changes or edited["limit_keys"] != job["limit_keys"]
    if has_moved and job["state"] in ("ready", "held", "scheduled") and not job["is_follower"]:
        edited["state"] = due_state(work, edited["run_at"], edited["limit_keys"])
        if (job["state"], edited["state"]) == ("ready", "held"):
            edited["run_at"] = max(edited["run_at"], work.now)  # from now on it waits for limits
    work.run_given(statement("edit_job").format(table=table), edited)
    if any(name in changes for name in _CONTENTS):
        work.run("replace_payloads", edited | _content_values(changes))
    work.counts[job["queue"], job["state"]] -= 1
    work.counts[edited["queue"], edited["state"]] += 1
    return Change(job["id"], to_state(job["state"]), to_state(edited["state"]))


def _column_values(changes: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: changes[name] for name in _COLUMNS if name in changes}
    if "run_at" in values:
        values["run_at"] = to_micros(values["run_at"])
    if "limits" in changes:
        keys = changes["limits"]
        values["limit_keys"] = to_json(keys) if keys else None
        values["fair_key"] = keys[0] if keys else None
    return values


def _content_values(changes: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if "payload" in changes:
        values["payload"] = raw_text(changes["payload"])
    if "headers" in changes:
        headers = changes["headers"]
        values["headers"] = None if headers is None else raw_text(headers)
    if "tags" in changes:
        values["tags"] = to_json(changes["tags"]) if changes["tags"] else None
    if "is_cleaned" in changes:
        values["is_cleaned"] = changes["is_cleaned"]
    return values
