"""Stores that break a promise now and then: what a simulation must be able to find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from windrow.queue.checks import SizeLimits, to_row
from windrow.queue.job import JobState, NewJob, Step
from windrow.queue.records import (
    Claim,
    EventPage,
    Finish,
    Finished,
    Group,
    Inserted,
    JobRow,
    LimitRow,
    QueueInfo,
    Renewal,
)

# Every attribute of the wrapped store is there, which types cannot say of a proxy.
_AnyStore: Any = object


class Mutant(_AnyStore):  # type: ignore[misc]
    def __init__(self, store: Any) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class IgnoresTokens(Mutant):
    """Takes every finish for one of whoever holds the job."""

    async def finish_jobs(self, finishes: Sequence[Finish], **options: Any) -> Finished:
        jobs = await self.store.get_jobs([finish.id for finish in finishes])
        held = [
            msgspec.structs.replace(finish, token=jobs[finish.id].lease_token or finish.token)
            if finish.id in jobs
            else finish
            for finish in finishes
        ]
        finished: Finished = await self.store.finish_jobs(held, **options)
        return finished


class AcceptsAll(Mutant):
    """Refuses what is stale, and does not say so."""

    async def finish_jobs(self, finishes: Sequence[Finish], **options: Any) -> Finished:
        finished = await self.store.finish_jobs(finishes, **options)
        return msgspec.structs.replace(finished, lost=())


class RenewsStaleLeases(Mutant):
    """Says that every lease is held, whoever has the jobs now."""

    async def extend_leases(self, tokens: Sequence[str], seconds: int | None = None) -> Renewal:
        renewal: Renewal = await self.store.extend_leases(tokens, seconds)
        return msgspec.structs.replace(renewal, held=Everything())


class Everything(frozenset[str]):
    def __contains__(self, one: object) -> bool:
        return True


class KeepsStaleSteps(Mutant):
    """Takes every step for one of whoever holds the job."""

    async def save_step(self, job_id: str, token: str, name: str, result: str) -> str:
        job = (await self.store.get_jobs([job_id])).get(job_id)
        held = token if job is None else job.lease_token or token
        kept: str = await self.store.save_step(job_id, held, name, result)
        return kept


class ForgetsAttempts(Mutant):
    """Does not count a run that failed and is tried again."""

    async def finish_jobs(self, finishes: Sequence[Finish], **options: Any) -> Finished:
        uncounted = [msgspec.structs.replace(finish, uses_attempt=False) for finish in finishes]
        finished: Finished = await self.store.finish_jobs(uncounted, **options)
        return finished


class CompletesUnrun(Mutant):
    """Completes one of the jobs of a claim, and gives out the others."""

    async def claim_jobs(self, claim: Claim) -> list[Any]:
        found: list[Any] = await self.store.claim_jobs(claim)
        if len(found) > 1:
            job = found.pop()
            await self.store.finish_jobs([Finish(job.id, job.lease_token, JobState.COMPLETED)])
        return found


class CompletesTwice(Mutant):
    """Says that a job is completed, and lets it run once more."""

    async def finish_jobs(self, finishes: Sequence[Finish], **options: Any) -> Finished:
        jobs = await self.store.get_jobs([finish.id for finish in finishes])
        again = [
            msgspec.structs.replace(finish, state=JobState.READY, result=None)
            if finish.state == JobState.COMPLETED
            and finish.id in jobs
            and jobs[finish.id].runs == 1
            else finish
            for finish in finishes
        ]
        finished: Finished = await self.store.finish_jobs(again, **options)
        return finished


class LosesInserts(Mutant):
    """Acknowledges every seventh job and does not keep it."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self._count = 0

    async def insert_jobs(self, rows: Sequence[JobRow], **options: Any) -> list[Inserted]:
        inserted: list[Inserted] = await self.store.insert_jobs(rows, **options)
        for one in inserted:
            self._count += one.outcome == "inserted"
            if one.outcome == "inserted" and self._count % 7 == 0:
                await self.store.delete_jobs([one.id])
        return inserted


class ExceedsLimits(Mutant):
    """Lets one more run than it was told."""

    async def set_limit(self, row: LimitRow) -> None:
        await self.store.set_limit(msgspec.structs.replace(row, active=(row.active or 0) + 1))


class ForgetsKeys(Mutant):
    """Stores jobs without their unique keys."""

    async def insert_jobs(self, rows: Sequence[JobRow], **options: Any) -> list[Inserted]:
        keyless = [msgspec.structs.replace(row, unique=None) for row in rows]
        inserted: list[Inserted] = await self.store.insert_jobs(keyless, **options)
        return inserted


class DropsRows(Mutant):
    """Completes a job without what was written in its transaction."""

    async def finish_jobs(self, finishes: Sequence[Finish], **options: Any) -> Finished:
        if tx := options.pop("tx", None):
            await tx.rollback()
        finished: Finished = await self.store.finish_jobs(finishes, **options)
        return finished


class TurnsTheLine(Mutant):
    """Takes the least urgent for the most urgent."""

    async def insert_jobs(self, rows: Sequence[JobRow], **options: Any) -> list[Inserted]:
        turned = [msgspec.structs.replace(row, priority=10 - row.priority) for row in rows]
        inserted: list[Inserted] = await self.store.insert_jobs(turned, **options)
        return inserted


class NeverRescues(Mutant):
    """Leaves what crashed workers held."""

    async def rescue_jobs(self, limit: int = 1000) -> list[Any]:
        return []


class FinishesGroupsTwice(Mutant):
    """Enqueues the finish job of a group again when it is claimed."""

    async def claim_jobs(self, claim: Claim) -> list[Any]:
        found: list[Any] = await self.store.claim_jobs(claim)
        for job in found:
            if job.kind == "finish" and job.runs == 1 and "again" not in job.tags:
                await self._again(job)
        return found

    async def _again(self, job: Any) -> None:
        new = NewJob("finish", job.payload, tags=["again"], max_crashes=9)
        await self.store.insert_jobs([to_row(new, SizeLimits())])


class SkipsSlots(Mutant):
    """Moves a schedule on without its job."""

    async def fire_schedules(self, limit: int = 100) -> list[Inserted]:
        fired: list[Inserted] = await self.store.fire_schedules(limit)
        await self.store.delete_jobs([one.id for one in fired])
        return fired


class ForgetsSteps(Mutant):
    """Keeps nothing of a step for later runs."""

    async def get_steps(self, job_id: str) -> list[Step]:
        return []

    async def save_step(self, job_id: str, token: str, name: str, result: str) -> str:
        await self.store.save_step(job_id, token, name, result)
        return result


class Miscounts(Mutant):
    """Tells of one job more in every queue than there is."""

    async def list_queues(self) -> list[QueueInfo]:
        return [
            msgspec.structs.replace(info, counts={s: n + 1 for s, n in info.counts.items()})
            for info in await self.store.list_queues()
        ]


class WaitsTooLong(Mutant):
    """Tells of one job more that a group waits for."""

    async def list_groups(self, *args: Any, **options: Any) -> list[Group]:
        found = await self.store.list_groups(*args, **options)
        return [msgspec.structs.replace(group, pending=group.pending + 1) for group in found]


class TellsTwice(Mutant):
    """Tells of every claim twice."""

    async def read_events(self, *args: Any, **options: Any) -> EventPage:
        page: EventPage = await self.store.read_events(*args, **options)
        doubled = [
            batch for batch in page.batches for _ in range(1 + (batch.type == "job.started"))
        ]
        return msgspec.structs.replace(page, batches=tuple(doubled))
