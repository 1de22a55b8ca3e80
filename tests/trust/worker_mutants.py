"""Stores and parts of workers that are broken: what a simulation of workers must find out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tests.trust.mutants import Mutant
from windrow.queue.job import JobState
from windrow.queue.outcome import Snooze
from windrow.queue.records import Change, Claim, Finish, Finished, Renewal
from windrow.worker.claimer import Claimer
from windrow.worker.completer import Completer, End
from windrow.worker.executor import Executor
from windrow.worker.heartbeat import Heartbeat
from windrow.worker.maintenance import Leader, Promoter, Rescuer, Stager
from windrow.worker.runs import Run, Stop


class ForgetsLeases(Mutant):
    """A claim that comes with the ends of runs does not know the leases of kinds."""

    async def finish_jobs(
        self, finishes: Sequence[Finish], *, claim: Claim | None = None, **options: object
    ) -> Finished:
        plain = claim and msgspec.structs.replace(claim, kind_seconds={})
        finished: Finished = await self.store.finish_jobs(finishes, claim=plain, **options)
        return finished


class ForgetsCancels(Mutant):
    """Answers that a job is cancelled, and leaves it to be claimed."""

    async def cancel_jobs(self, ids: Sequence[str], reason: str) -> dict[str, Change]:
        states = await self.store.get_states(ids)
        return {id: Change(id, state, JobState.CANCELLED) for id, state in states.items()}


class StopsNobody(Mutant):
    """Does not say which of the held jobs are to stop."""

    async def extend_leases(self, tokens: Sequence[str], seconds: int | None = None) -> Renewal:
        renewal: Renewal = await self.store.extend_leases(tokens, seconds)
        return msgspec.structs.replace(renewal, stopping={})


class PutsBackForEver(Completer):
    """A batch with one end that cannot be written is tried again as it is."""

    async def _finish(self, ends: list[End]) -> None:
        if any(end.finish.state is JobState.FAILED for end in ends):
            raise RuntimeError("such an end cannot be written")
        await super()._finish(ends)


class DropsEnds(Completer):
    """An end that cannot be written is left to the lease of its job, and the job runs again."""

    async def _write(self, ends: list[End]) -> Finished:
        if any(end.finish.state is JobState.FAILED for end in ends):
            raise RuntimeError("such an end cannot be written")
        return await super()._write(ends)


class ClaimsAfterStop(Claimer):
    """Goes on claiming when it is asked to stop."""

    def stop(self) -> None: ...


class HandsBackTooEarly(Executor):
    """Hands a run back that is to stop, while its handler goes on."""

    def stop(self, run: Run, why: Stop) -> None:
        if run.task is None or why is Stop.LOST:
            super().stop(run, why)
        elif run.stop is None:
            run.stop = why
            self._ended(run, Snooze(0))


class IgnoresCancels(Executor):
    """Goes on with jobs that somebody cancelled."""

    def stop(self, run: Run, why: Stop) -> None:
        if why is not Stop.ASKED:
            super().stop(run, why)


class RenewsSeldom(Heartbeat):
    """Goes by the lease of the worker, whatever the handler asked for."""

    def _seconds_of(self, run: Run) -> float:
        return self._lease / 2


class RenewsLostRuns(Heartbeat):
    """Renews every lease it ever knew, and takes every job for its own."""

    async def _renew(self) -> None:
        self._known = sorted({*getattr(self, "_known", ()), *self._runs.tokens()})
        if self._known:
            await self._store.extend_leases(self._known)


class NeverLeads(Leader):
    async def run_once(self) -> float:
        return 60.0


class NeverPromotes(Promoter):
    async def work(self) -> bool:
        return False


class NeverStages(Stager):
    async def work(self) -> bool:
        return False


class NeverRescues(Rescuer):
    async def work(self) -> bool:
        return False
