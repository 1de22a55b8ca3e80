"""Ending runs: accepted under the token of their claim, recognised when repeated, else lost."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from windrow.queue.job import JobState
from windrow.queue.records import Claim, Finish, Finished, Inserted, is_same_end
from windrow.queue.sqlite.claiming import Leased, Memory, claim_jobs, release_leases
from windrow.queue.sqlite.inserting import insert_now
from windrow.queue.sqlite.rows import LiveJob, after, to_json
from windrow.queue.sqlite.settling import due_state, hand_on_places, leave, settle
from windrow.queue.sqlite.transaction import SqliteTransaction
from windrow.queue.sqlite.work import Work, cancel_error, seqs, short_text

LARGEST_INLINE_RESULT: Final = 1024 * 1024  # bytes; a larger one becomes a blob

Run = tuple[Finish, LiveJob]


class Before(NamedTuple):
    """A job whose run has ended: the token of that run, and where the job is now."""

    token: str | None
    state: str
    seq: int


def finish_jobs(
    work: Work,
    finishes: Sequence[Finish],
    claim: Claim | None,
    transaction: SqliteTransaction | None,
    memory: Memory,
) -> tuple[Finished, list[Leased]]:
    """End runs, insert what follows them, claim the next."""
    runs, lost, repeated = judge(work, finishes) if finishes else ([], [], [])
    conflicting = (*find_conflicts(work, repeated), *find_rivals(finishes, runs))
    if runs:
        if transaction is not None:
            transaction.replay(work)
        apply(work, runs)
    then = insert_follow_ups(work, finishes, runs, {*lost, *conflicting})
    settle(work)
    leased = claim_jobs(work, claim, memory) if claim is not None else []
    return Finished(tuple(lost), then=then, conflicting=conflicting), leased


def judge(
    work: Work, finishes: Sequence[Finish]
) -> tuple[list[Run], list[str], list[tuple[Finish, Before]]]:
    """The runs that may end, the ids that are lost, and the finishes of runs that have ended
    before: their jobs have left `active` but still name the token."""
    ids = to_json([finish.id for finish in finishes])
    live = {job.id: job for job in work.live_jobs("find_live", {"ids": ids})}
    ended: dict[str, Before] = {}
    if len(live) < len(finishes):
        rows = work.rows("find_applied", {"ids": ids})
        ended = {job_id: Before(*fields) for job_id, *fields in rows}
    runs: dict[str, Run] = {}
    lost, repeated = [], []
    for finish in finishes:
        job = live.get(finish.id)
        before = ended.get(finish.id) if job is None else Before(job.lease, job.state, job.seq)
        if before is None or before.token != finish.token:
            lost.append(finish.id)
        elif job is None or job.state != "active":
            repeated.append((finish, before))
        else:
            runs.setdefault(finish.id, (finish, job))
    return list(runs.values()), lost, repeated


def find_conflicts(work: Work, repeated: Sequence[tuple[Finish, Before]]) -> tuple[str, ...]:
    """Which runs had ended in another way than they are told to now."""
    if not repeated:
        return ()
    rows = work.rows("find_results", {"seqs": to_json([before.seq for _, before in repeated])})
    results = {seq: (result, digest) for seq, result, digest in rows}
    conflicting = []
    for finish, before in repeated:
        result, digest = results.get(before.seq, (None, None))
        text = None if result is None else result.encode()
        blob = None if digest is None else bytes.fromhex(digest)
        if not is_same_end(finish, before.state, text, blob):
            conflicting.append(finish.id)
    return tuple(conflicting)


def find_rivals(finishes: Sequence[Finish], runs: Sequence[Run]) -> list[str]:
    """Which of several ends of one run, given together, differ from the first, which is applied."""
    if len({finish.id for finish in finishes}) == len(finishes):
        return []
    applied = {finish.id: finish for finish, _ in runs}
    return [
        finish.id
        for finish in finishes
        if (first := applied.get(finish.id)) is not None
        and first.token == finish.token
        and not is_same_end(finish, first.state, first.result, None)
    ]


def apply(work: Work, runs: Sequence[Run]) -> None:
    """Move the jobs to where their runs say, with results and errors."""
    completed = [run for run in runs if run[0].state is JobState.COMPLETED]
    returned = [run for run in runs if run[0].state is JobState.READY]
    ended = [run for run in runs if run[0].state in (JobState.FAILED, JobState.CANCELLED)]
    lines = [
        work.error_line(job.seq, finish.error) for finish, job in runs if finish.error is not None
    ]
    work.run_many("add_errors", lines)
    if completed:
        _complete(work, completed)
    if ended:
        _end(work, ended)
    if returned:
        _give_back(work, returned)
    release_leases(work, [finish.token for finish, _ in runs])
    hand_on_places(work)


def _complete(work: Work, runs: Sequence[Run]) -> None:
    add_results(work, runs)
    alike: defaultdict[tuple[bool, bool], list[LiveJob]] = defaultdict(list)
    for finish, job in runs:
        waits = job.root_of is not None and _is_running(work, job.root_of)
        alike[waits, finish.uses_attempt].append(job)
    for (waits, uses_attempt), jobs in alike.items():
        if waits:
            work.run("wait_for_group", {"seqs": seqs(jobs), "attempts": int(uses_attempt)})
            for job in jobs:
                work.moved(job, "waiting")
        else:
            leave(work, jobs, JobState.COMPLETED, attempts=int(uses_attempt))


def _is_running(work: Work, group_id: str) -> bool:
    group = work.group_record("get_group", {"id": group_id})
    return group is not None and group.ended_at is None


def add_results(work: Work, runs: Sequence[Run]) -> None:
    blobs, results = [], []
    for finish, job in runs:
        if finish.result is None:
            continue
        result: dict[str, Any] = {
            "seq": job.seq,
            "result": None,
            "blob_hash": None,
            "is_cleaned": finish.result_is_cleaned,
        }
        if len(finish.result) > LARGEST_INLINE_RESULT:
            result["blob_hash"] = hashlib.sha256(finish.result).hexdigest()
            blobs.append({"hash": result["blob_hash"], "body": finish.result})
        else:
            result["result"] = finish.result.decode()
        results.append(result)
    work.run_many("add_blobs", blobs)
    work.run_many("add_results", results)


def _end(work: Work, runs: Sequence[Run]) -> None:
    """Runs that failed, or gave up."""
    alike: defaultdict[tuple[JobState, str | None, bool], list[LiveJob]] = defaultdict(list)
    for finish, job in runs:
        error = None if finish.error is None else short_text(finish.error)
        alike[finish.state, error, finish.uses_attempt].append(job)
    for (state, error, uses_attempt), jobs in alike.items():
        leave(work, jobs, state, error, attempts=int(uses_attempt))


def _give_back(work: Work, runs: Sequence[Run]) -> None:
    """Jobs go back to wait, unless a follower wants the place or somebody asked them to stop."""
    followers = find_followers(work, [job for _, job in runs])
    for finish, job in runs:
        attempts = int(finish.uses_attempt)
        if (follower := followers.get((job.tenant, job.unique_key))) is not None:
            give_way(work, job, follower, attempts)
        elif job.stop_as == "cancelled":
            stop(work, job, attempts)
        else:
            run_at = after(work.now, finish.delay)
            error = None if finish.error is None else short_text(finish.error)
            put_back(work, job, run_at, error=error, attempts=attempts)


def find_followers(work: Work, jobs: Sequence[LiveJob]) -> dict[tuple[str | None, str | None], str]:
    """The ids of the followers that wait for the places of these jobs, by key."""
    keys = [(job.tenant, job.unique_key) for job in jobs if job.unique_key is not None]
    if not keys:
        return {}
    found = work.live_jobs("find_followers", {"keys": to_json(keys)})
    return {(follower.tenant, follower.unique_key): follower.id for follower in found}


def give_way(work: Work, job: LiveJob, follower: str, attempts: int = 0) -> None:
    reason = f"replaced by job {follower}"
    leave(work, [job], JobState.CANCELLED, reason, attempts=attempts)
    work.add_errors([job], cancel_error(reason))


def stop(work: Work, job: LiveJob, attempts: int = 0) -> None:
    """A job that was asked to end does; the reason was left on it when it was asked."""
    reason = job.error or "cancelled"
    leave(work, [job], JobState.CANCELLED, reason, attempts=attempts)
    work.add_errors([job], cancel_error(reason))


def put_back(
    work: Work, job: LiveJob, run_at: int, *, error: str | None = None, attempts: int = 0
) -> str:
    """Back to wait: for its time, for a person if one asked for that, or to be claimed."""
    state = job.stop_as or due_state(work, run_at, job.limit_keys)
    work.run(
        "return_jobs",
        {
            "seqs": seqs([job]),
            "state": state,
            "run_at": run_at,
            "error": error,
            "attempts": attempts,
        },
    )
    work.moved(job, state)
    return state


def insert_follow_ups(
    work: Work, finishes: Sequence[Finish], runs: Sequence[Run], lost: set[str]
) -> tuple[Inserted, ...]:
    """Insert the jobs that follow accepted finishes. Those of a repeated finish are there already;
    those of a lost one are not wanted."""
    if not any(finish.then for finish in finishes):
        return ()
    accepted = {finish.id: finish for finish, _ in runs}
    inserted = iter(
        insert_now(work, [row for finish, _ in runs for row in finish.then], drops=True)
    )
    then: list[Inserted] = []
    for finish in finishes:
        if accepted.get(finish.id) is finish:
            then += islice(inserted, len(finish.then))
            del accepted[finish.id]  # the same one given twice is a repetition
        elif finish.id not in lost:
            then += [Inserted(row.id, "existing") for row in finish.then]
    return tuple(then)
