"""What follows from jobs ending: places handed on, groups counted and ended, counts written.

`leave` moves jobs to the finished ones and notes what follows; `settle` does it, round by round,
because an ended group frees its root, which may hold a key and be a member of another group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from windrow.queue.job import JobState
from windrow.queue.records import read_row
from windrow.queue.sqlite.inserting import insert_now
from windrow.queue.sqlite.rows import GroupRecord, LiveJob, to_json
from windrow.queue.sqlite.work import Work, cancel_error, seqs

_DAY: Final = 86_400
_RETENTION: Final = {
    JobState.COMPLETED: _DAY,
    JobState.FAILED: 7 * _DAY,
    JobState.CANCELLED: _DAY,
}


def leave(
    work: Work,
    jobs: Sequence[LiveJob],
    state: JobState,
    error: str | None = None,
    *,
    attempts: int = 0,
) -> None:
    """Live jobs end in a final state."""
    if not jobs:
        return
    moving = seqs(jobs)
    work.run(
        "end_jobs",
        {
            "seqs": moving,
            "state": state.value,
            "error": error,
            "attempts": attempts,
            "retention": _RETENTION[state],
            "now": work.now,
        },
    )
    work.run("remove_jobs", {"seqs": moving})
    work.ended.update(job.id for job in jobs)
    work.record("job.finished", state.value, jobs)
    for (queue, former), count in Counter((job.queue, job.state) for job in jobs).items():
        work.counts[queue, former] -= count
        work.counts[queue, state.value] += count
    for job in jobs:
        if job.group_id is not None:
            work.groups[job.group_id]["pending"] -= 1
            work.groups[job.group_id][state.value] += 1
        if job.unique_key is not None and not job.is_follower:
            work.freed.append((job.tenant, job.unique_key))
        if job.root_of is not None and state is not JobState.COMPLETED:
            work.orphaned[job.root_of] = error or "its root has ended"


def cancel_now(work: Work, jobs: Sequence[LiveJob], reason: str) -> None:
    """Jobs that do not run end as cancelled, with the reason in their history."""
    leave(work, jobs, JobState.CANCELLED, reason)
    work.add_errors(jobs, cancel_error(reason))


def cancel_live(work: Work, jobs: Sequence[LiveJob], reason: str) -> None:
    """Jobs that do not run end as cancelled; those that run are asked to stop, with the first
    reason. The groups of their roots are cancelled with them, whether the root runs or not."""
    active = [job for job in jobs if job.state == "active"]
    told = [job for job in active if job.stop_as != "cancelled"]
    work.run("tell_jobs", {"seqs": seqs(told), "stop_as": "cancelled", "error": reason})
    for job in active:
        if job.root_of is not None:
            work.orphaned.setdefault(job.root_of, reason)
    cancel_now(work, [job for job in jobs if job.state != "active"], reason)


def settle(work: Work) -> None:
    """Do all that follows from the changes made so far."""
    while work.freed or work.orphaned or work.groups:
        hand_on_places(work)
        settle_groups(work)
    work.write_counts()
    work.write_events()


def hand_on_places(work: Work) -> None:
    """Give freed keys to followers and cancel orphaned groups, nested ones too: to be done before
    new jobs take keys or join groups."""
    while work.freed or work.orphaned:
        promote_followers(work)
        cancel_orphans(work)


def promote_followers(work: Work) -> None:
    """Followers take the places that were freed, and run when they are due."""
    keys, work.freed = work.freed, []
    if not keys:
        return
    for follower in work.live_jobs("find_followers", {"keys": to_json(keys)}):
        state, run_at = follower.state, follower.run_at
        if state != "paused":
            state = due_state(work, run_at, follower.limit_keys)
        if follower.limit_keys is not None:
            run_at = max(run_at, work.now)  # from now on it waits for its limits
        work.run("promote_followers", {"seq": follower.seq, "state": state, "run_at": run_at})
        work.moved(follower, state)


def cancel_orphans(work: Work) -> None:
    """A group whose root failed or was cancelled is cancelled with it."""
    orphaned, work.orphaned = work.orphaned, {}
    for group_id, reason in orphaned.items():
        cancel_members(work, group_id, reason)


def cancel_members(work: Work, group_id: str, reason: str) -> None:
    """Cancel a group that has not ended; the counts of `settle` end it, at once if it is empty."""
    if not work.run("cancel_group", {"id": group_id, "reason": reason}):
        return
    cancel_live(work, work.live_jobs("find_members", {"group_id": group_id}), reason)
    work.groups[group_id]["pending"] += 0


def settle_groups(work: Work) -> None:
    """Write what was counted for each group, and end those with no member left."""
    groups, work.groups = work.groups, type(work.groups)(work.groups.default_factory)
    for group_id in sorted(groups):
        changes = groups[group_id]
        names = ("pending", "completed", "failed", "cancelled")
        values = {"id": group_id, "now": work.now} | {name: changes[name] for name in names}
        group = work.group_record("settle_groups", values)
        if group is None:
            continue
        is_news = any(changes[name] for name in names[1:])
        if group.root is not None and is_news:
            _report_to_root(work, group, group.root)
        ends = (group.added or group.is_cancelled) and end_if_done(work, group)
        if is_news and not ends:
            work.record_group("group.progress", group.state, group, _counters(group))


def end_if_done(work: Work, group: GroupRecord) -> bool:
    """End a group, once: its root is freed and its finish job inserted. Whether it ended now."""
    if group.ended_at is not None or group.is_open or group.pending > 0:
        return False
    state = JobState.CANCELLED if group.is_cancelled else JobState.COMPLETED
    work.run("end_groups", {"id": group.id, "state": state.value, "now": work.now})
    work.record_group("group.ended", state.value, group, _counters(group))
    if group.root is not None:
        _free_root(work, group, group.root, state)
    if group.finish_job is not None:
        insert_now(work, [read_row(group.finish_job)], drops=True)
    return True


def _free_root(work: Work, group: GroupRecord, root_id: str, state: JobState) -> None:
    roots = work.live_jobs("find_live", {"ids": to_json([root_id])})
    waiting = [root for root in roots if root.state == "waiting"]
    if state is JobState.CANCELLED:
        cancel_now(work, waiting, group.reason or "its group was cancelled")
    else:
        leave(work, waiting, state)


def _report_to_root(work: Work, group: GroupRecord, root_id: str) -> None:
    counters = _counters(group)
    total = counters["total"]
    ended = total - group.pending
    for _, seq, *_ in work.rows("find_known", {"ids": to_json([root_id])}):
        work.rows(
            "report_progress",
            {
                "seq": seq,
                "percent": 100 * ended // total if total else 100,
                "message": None,
                "counters": to_json(counters),
                "now": work.now,
            },
        )


def _counters(group: GroupRecord) -> dict[str, int]:
    return {
        "total": group.pending + group.completed + group.failed + group.cancelled,
        "completed": group.completed,
        "failed": group.failed,
        "cancelled": group.cancelled,
    }


def due_state(work: Work, run_at: int, limit_keys: str | None) -> str:
    """Where a job waits that nothing else holds: for its time, for its limits, to be claimed."""
    if run_at > work.now:
        return "scheduled"
    return "ready" if limit_keys is None else "held"
