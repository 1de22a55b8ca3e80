"""Changing jobs from outside: every verb tells, for each id, the state before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from windrow.queue.job import UNCLAIMED
from windrow.queue.records import Change
from windrow.queue.sqlite.rows import LiveJob, id_list, to_json, to_state
from windrow.queue.sqlite.settling import cancel_live, due_state
from windrow.queue.sqlite.work import Work, seqs, statement

Changes = dict[str, Change]

# What goes with a job, besides its result and its row.
KEPT_OF_A_JOB: Final = ("delete_payloads", "delete_errors", "delete_steps", "delete_progress")


def cancel_jobs(work: Work, ids: Sequence[str], reason: str) -> Changes:
    """Jobs end, or are asked to; the groups of roots go with them."""
    live = _find_live(work, ids)
    cancel_live(work, live, reason)
    changes = {
        job.id: _change(job, "active" if job.state == "active" else "cancelled") for job in live
    }
    return _with_the_rest(work, ids, changes)


def pause_jobs(work: Work, ids: Sequence[str]) -> Changes:
    live = _find_live(work, ids)
    active = [job for job in live if job.state == "active" and job.stop_as is None]
    work.run("tell_jobs", {"seqs": seqs(active), "stop_as": "paused", "error": None})
    waiting = [job for job in live if job.state in UNCLAIMED]
    work.run("pause_jobs", {"seqs": seqs(waiting)})
    for job in waiting:
        work.moved(job, "paused")
    changes = {job.id: _change(job, "paused") for job in waiting}
    changes |= {job.id: _change(job) for job in live if job.state == "active"}
    return _with_the_rest(work, ids, changes)


def resume_jobs(work: Work, ids: Sequence[str]) -> Changes:
    live = _find_live(work, ids)
    told = [job for job in live if job.state == "active" and job.stop_as == "paused"]
    work.run("tell_jobs", {"seqs": seqs(told), "stop_as": None, "error": None})
    changes = {job.id: _change(job) for job in told}
    paused = [job for job in live if job.state == "paused"]
    work.run("resume_jobs", {"seqs": seqs(paused), "now": work.now})
    for job in paused:
        state = "held" if job.is_follower else due_state(work, job.run_at, job.limit_keys)
        work.moved(job, state)
        changes[job.id] = _change(job, state)
    return _with_the_rest(work, ids, changes)


def retry_jobs(work: Work, ids: Sequence[str], from_start: bool) -> Changes:
    """Failed and cancelled jobs run again; scheduled ones need not wait."""
    scheduled = [job for job in _find_live(work, ids) if job.state == "scheduled"]
    work.run("hasten_jobs", {"seqs": seqs(scheduled), "now": work.now})
    changes = {}
    for job in scheduled:
        state = due_state(work, work.now, job.limit_keys)
        work.moved(job, state)
        changes[job.id] = _change(job, state)
    found = [row for row in _find_finished(work, ids) if row["state"] != "completed"]
    for row in found:
        changes[row["id"]] = _retry(work, row)
    if from_start:
        retried = [row["seq"] for row in found if not changes[row["id"]].is_refused]
        forgotten = [*(job.seq for job in scheduled), *retried]
        work.run("delete_steps", {"seqs": to_json(forgotten)})
    return _with_the_rest(work, ids, changes)


def _retry(work: Work, row: Any) -> Change:
    state = to_state(row["state"])
    if row["unique_key"] is not None:
        keys = to_json([(row["tenant"], row["unique_key"])])
        for holder in work.named_rows(statement("find_holders"), {"keys": keys}):
            return Change(row["id"], state, state, is_refused=True, blocked_by=holder["id"])
    alone = {"seqs": to_json([row["seq"]])}
    work.run("retry_jobs", alone | {"now": work.now})
    work.run("remove_finished", alone)
    delete_results(work, alone["seqs"])
    work.counts[row["queue"], row["state"]] -= 1
    after = due_state(work, work.now, row["limit_keys"])
    work.counts[row["queue"], after] += 1
    if row["group_id"] is not None:
        work.groups[row["group_id"]]["pending"] += 1
        work.groups[row["group_id"]][row["state"]] -= 1
    return Change(row["id"], state, to_state(after))


def delete_jobs(work: Work, ids: Sequence[str]) -> Changes:
    """Remove jobs with all that is kept of them."""
    live = [job for job in _find_live(work, ids) if job.state in UNCLAIMED]
    finished = _find_finished(work, ids)
    work.run("remove_jobs", {"seqs": seqs(live)})
    work.run("remove_finished", {"seqs": to_json([row["seq"] for row in finished])})
    gone = to_json([*(job.seq for job in live), *(row["seq"] for row in finished)])
    for name in KEPT_OF_A_JOB:
        work.run(name, {"seqs": gone})
    delete_results(work, gone)
    for job in live:
        work.moved(job, None)
        if job.group_id is not None:
            work.groups[job.group_id]["pending"] -= 1
        if job.unique_key is not None and not job.is_follower:
            work.freed.append((job.tenant, job.unique_key))
    for row in finished:
        work.counts[row["queue"], row["state"]] -= 1
        if row["group_id"] is not None:
            work.groups[row["group_id"]][row["state"]] -= 1
    changes = {job.id: Change(job.id, to_state(job.state), None) for job in live}
    changes |= {row["id"]: Change(row["id"], to_state(row["state"]), None) for row in finished}
    return _with_the_rest(work, ids, changes)


def delete_results(work: Work, gone: str) -> None:
    hashes = [name for (name,) in work.rows("delete_results", {"seqs": gone}) if name is not None]
    if hashes:
        work.run("delete_blobs", {"hashes": to_json(hashes)})


def _find_live(work: Work, ids: Sequence[str]) -> list[LiveJob]:
    return work.live_jobs("find_live", {"ids": id_list(ids)})


def _find_finished(work: Work, ids: Sequence[str]) -> list[Any]:
    return [*work.named_rows(statement("find_finished"), {"ids": id_list(ids)})]


def _change(job: LiveJob, after: str | None = None) -> Change:
    """A job that is now in another state, or was told something where it is."""
    return Change(job.id, to_state(job.state), to_state(after or job.state))


def _with_the_rest(work: Work, ids: Sequence[str], changes: Changes) -> Changes:
    """Add the ids that are not there, or whose state did not allow the change."""
    left = [job_id for job_id in dict.fromkeys(ids) if job_id not in changes]
    if not left:
        return changes
    found = work.named_rows(statement("find_known"), {"ids": id_list(left)})
    states = {row["id"]: to_state(row["state"]) for row in found}
    for job_id in left:
        state = states.get(job_id)
        changes[job_id] = Change(job_id, state, state, is_refused=state is not None)
    return changes
