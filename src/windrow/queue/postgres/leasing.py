"""Running jobs and time: renewing leases, progress, what is due, what was abandoned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windrow.errors import LeaseLost
from windrow.ids import is_id
from windrow.queue.job import JobError, JobState
from windrow.queue.postgres.finishing import end_stopped
from windrow.queue.postgres.rows import Row, as_json, columns, uuids
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import Ending, Work
from windrow.queue.records import Change, ProgressReport, Renewal

CRASH: Final = "crash"
CRASH_MESSAGE: Final = "the lease ran out (worker %s)"


class Leasing(Verbs):
    async def extend_leases(self, tokens: Sequence[str], seconds: int | None = None) -> Renewal:
        known = uuids(tokens)
        if not known:
            return Renewal()
        rows = await self._run("extend_leases", tokens=known, seconds=seconds)
        if not rows:
            return Renewal()
        return Renewal(
            held=frozenset(str(row["id"]) for row in rows if row["id"] is not None),
            stopping={
                str(row["id"]): JobState(row["stop_as"])
                for row in rows
                if row["stop_as"] is not None
            },
            expires_at=min(row["expires_at"] for row in rows),
            is_rescue_due=any(row["is_rescue_due"] for row in rows),
        )

    async def report_progress(self, reports: Sequence[ProgressReport]) -> tuple[str, ...]:
        merged = _merged(reports)
        accepted: set[str] = set()
        if merged:
            ids, tokens, percents, messages, counters = columns(
                [(r.id, r.token, r.percent, r.message, as_json(dict(r.counters))) for r in merged],
                5,
            )
            rows = await self._run(
                "report_progress",
                ids=ids,
                tokens=tokens,
                percents=percents,
                messages=messages,
                counters=counters,
            )
            accepted = {str(row["id"]) for row in rows}
        return tuple(
            dict.fromkeys(report.id for report in reports if report.id.lower() not in accepted)
        )

    async def save_step(self, job_id: str, token: str, name: str, result: str) -> str:
        if not (is_id(job_id) and is_id(token)):
            raise LeaseLost(job_id)
        rows = await self._run("save_step", id=job_id, token=token, name=name, result=result)
        if not rows:
            raise LeaseLost(job_id)
        kept: str | None = rows[0]["kept"]
        return result if kept is None else kept

    async def stage_jobs(self, limit: int = 1000) -> int:
        staged = await self._run("stage_jobs", limit=limit)
        promoted = await self._run("promote_followers", keys=None, limit=limit)
        self._tell(row["queue"] for row in (*staged, *promoted))
        moved: int = sum(row["n"] for row in staged) + len(promoted)
        return moved

    async def rescue_jobs(self, limit: int = 1000) -> list[Change]:
        async def do(work: Work) -> list[Change]:
            runs = await work.run("rescue_jobs", limit=limit, returns_only=False)
            await work.add_errors([(str(run["id"]), _crash(run)) for run in runs])
            work.ready_queues |= {run["queue"] for run in runs if run["state"] == JobState.READY}
            failed = [run for run in runs if run["state"] is None and _is_exhausted(run)]
            await work.end_jobs([_failure(run) for run in failed])
            stopped = [run for run in runs if run["state"] is None and not _is_exhausted(run)]
            await end_stopped(work, {str(run["id"]): run for run in stopped})
            return [Change(str(run["id"]), JobState.ACTIVE, _after(run)) for run in runs]

        return await self._transact(do)


def _merged(reports: Sequence[ProgressReport]) -> list[ProgressReport]:
    """One report per run, in which later ones went over earlier ones."""
    merged: dict[tuple[str, str], ProgressReport] = {}
    for report in reports:
        if not (is_id(report.id) and is_id(report.token)):
            continue
        key = report.id.lower(), report.token.lower()
        former = merged.get(key)
        if former is not None:
            percents = [p for p in (former.percent, report.percent) if p is not None]
            report = ProgressReport(
                id=report.id,
                token=report.token,
                percent=max(percents, default=None),
                message=former.message if report.message is None else report.message,
                counters={**former.counters, **report.counters},
            )
        merged[key] = report
    return list(merged.values())


def _is_exhausted(run: Row) -> bool:
    """Whether the job failed by this crash: it was not asked to end instead."""
    return bool(run["is_exhausted"]) and run["stop_as"] != JobState.CANCELLED


def _after(run: Row) -> JobState:
    if run["state"] is not None:
        return JobState(run["state"])
    return JobState.FAILED if _is_exhausted(run) else JobState.CANCELLED


def _failure(run: Row) -> Ending:
    error = f"crashed {run['crashes']} times: the lease ran out"
    return Ending(str(run["id"]), JobState.FAILED, error=error)


def _crash(run: Row) -> JobError:
    return JobError(None, CRASH, CRASH_MESSAGE % run["worker"])
