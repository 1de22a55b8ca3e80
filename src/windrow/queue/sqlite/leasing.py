"""Running jobs and time: renewing leases, progress, what is due, what was abandoned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from windrow.errors import LeaseLost
from windrow.queue.job import JobError, JobState
from windrow.queue.records import Change, ProgressReport, Renewal
from windrow.queue.sqlite.finishing import find_followers, give_way, put_back, stop
from windrow.queue.sqlite.looking import get_steps
from windrow.queue.sqlite.rows import LiveJob, id_list, to_json, to_state, to_time
from windrow.queue.sqlite.settling import leave
from windrow.queue.sqlite.transaction import SqliteTransaction
from windrow.queue.sqlite.work import Work, seqs


def extend_leases(work: Work, tokens: Sequence[str], seconds: int | None) -> Renewal:
    renewed = work.rows(
        "extend_leases", {"tokens": to_json(tokens), "seconds": seconds, "now": work.now}
    )
    if not renewed:
        return Renewal()
    held = work.rows("list_held", {"tokens": to_json([token for token, _ in renewed])})
    return Renewal(
        held=frozenset(job_id for job_id, _ in held),
        stopping={job_id: to_state(stop_as) for job_id, stop_as in held if stop_as is not None},
        expires_at=to_time(min(expires_at for _, expires_at in renewed)),
        is_rescue_due=bool(work.rows("find_lapsed", {"now": work.now})),
    )


def report_progress(work: Work, reports: Sequence[ProgressReport]) -> tuple[str, ...]:
    found = work.live_jobs("find_live", {"ids": to_json([report.id for report in reports])})
    held = {(job.id, job.lease): job for job in found if job.state == "active"}
    kept: dict[LiveJob, tuple[int, str | None, str]] = {}
    for report in reports:
        if job := held.get((report.id, report.token)):
            kept[job] = _keep_progress(work, job, report)
    for job, (percent, message, counters) in kept.items():
        merged = msgspec.Raw(counters.encode())
        progress = {"percent": percent, "message": message, "counters": merged}
        work.record("job.progress", job.state, [job], progress)
    stale = (report.id for report in reports if (report.id, report.token) not in held)
    return tuple(dict.fromkeys(stale))


def save_step(work: Work, job_id: str, token: str, name: str, result: str) -> str:
    held = _held_job(work, job_id, token)
    line = {"seq": held.seq, "name": name, "at": work.now, "result": result}
    if work.run("add_steps", line):
        return result
    return next(step.result_json for step in get_steps(work, [job_id])[job_id] if step.name == name)


def save_work(work: Work, job_id: str, token: str, tx: SqliteTransaction) -> None:
    _held_job(work, job_id, token)
    tx.replay(work)


def _held_job(work: Work, job_id: str, token: str) -> LiveJob:
    for job in work.live_jobs("find_live", {"ids": id_list([job_id])}):
        if job.state == "active" and job.lease == token:
            return job
    raise LeaseLost(job_id)


def _keep_progress(work: Work, job: LiveJob, report: ProgressReport) -> tuple[int, str | None, str]:
    """How far the job is with this report: percent, message, counters."""
    values = {
        "seq": job.seq,
        "percent": report.percent,
        "message": report.message,
        "counters": to_json(report.counters),
        "now": work.now,
    }
    [(percent, message, counters)] = work.rows("report_progress", values)
    return percent, message, counters


def stage_jobs(work: Work, limit: int) -> int:
    """Scheduled jobs that are due become ready. Followers need no healing here: they take a free
    place in the transaction that frees it, and there is one writer."""
    staged = Counter(work.rows("stage_jobs", {"now": work.now, "limit": limit}))
    for (queue, state), count in staged.items():
        work.counts[queue, "scheduled"] -= count
        work.counts[queue, state] += count
    return staged.total()


def rescue_jobs(work: Work, limit: int) -> list[Change]:
    """Jobs of expired leases run again, or end."""
    found = work.rows("find_expired", {"now": work.now, "limit": limit})
    jobs = [LiveJob._make(columns) for *columns, _ in found]
    work.run("rescue_jobs", {"seqs": seqs(jobs)})
    for job, (*_, worker) in zip(jobs, found, strict=True):
        crash = JobError(None, "crash", f"the lease ran out (worker {worker})")
        work.add_errors([job], crash)
    followers = find_followers(work, jobs)
    changes = [
        Change(
            job.id, JobState.ACTIVE, _rescue(work, job, followers.get((job.tenant, job.unique_key)))
        )
        for job in jobs
    ]
    work.run("drop_expired_leases", {"now": work.now})
    return changes


def _rescue(work: Work, job: LiveJob, follower: str | None) -> JobState:
    crashes = job.crashes + 1
    if job.stop_as == "cancelled":
        stop(work, job)
        return JobState.CANCELLED
    if crashes >= job.max_crashes:
        leave(work, [job], JobState.FAILED, f"crashed {crashes} times: the lease ran out")
        return JobState.FAILED
    if follower is not None:
        give_way(work, job, follower)
        return JobState.CANCELLED
    return to_state(put_back(work, job, work.now))
