"""Jobs that move by themselves: due ones become ready, those of dead workers are rescued."""

from __future__ import annotations

from collections import Counter

from windrow.queue.job import JobError, JobState
from windrow.queue.sqlite.finishing import find_followers, give_way, put_back, stop
from windrow.queue.sqlite.rows import LiveJob, to_state
from windrow.queue.sqlite.settling import leave
from windrow.queue.sqlite.work import Work, seqs
from windrow.queue.store import Change


def stage_jobs(work: Work, limit: int) -> int:
    """Scheduled jobs that are due become ready. Followers need no healing here: they take a free
    place in the transaction that frees it, and there is one writer."""
    queues = Counter(
        queue for (queue,) in work.rows("stage_jobs", {"now": work.now, "limit": limit})
    )
    for queue, count in queues.items():
        work.counts[queue, "scheduled"] -= count
        work.counts[queue, "ready"] += count
    return queues.total()


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
    if job.stop_as is None and crashes >= job.max_crashes:
        leave(work, [job], JobState.FAILED, f"crashed {crashes} times: the lease ran out")
        return JobState.FAILED
    if follower is not None:
        give_way(work, job, follower)
        return JobState.CANCELLED
    return to_state(put_back(work, job, job.run_at))
