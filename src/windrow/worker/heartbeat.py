"""Signs of life: the leases of claimed jobs are renewed, and the worker stays registered."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from windrow.logging import event
from windrow.queue.records import WorkerRow
from windrow.queue.store import Store
from windrow.worker.runs import Run, Runs, Stage, Stop
from windrow.worker.service import Service

logger = logging.getLogger(__name__)

# A lease is renewed so many times before it would run out.
RENEWALS: Final = 4
SAY_SECONDS: Final = 10.0
BELIEVED_SECONDS: Final = 30.0


class Heartbeat(Service):
    """Renews the leases of claimed jobs, and stops handlers: of jobs that were lost to another
    worker, and of those that somebody asked to stop. It also passes on that leases of others have
    run out. `lease` is that of jobs which have none of their own and whose handler has none."""

    def __init__(
        self, store: Store, runs: Runs, lease: int, stop: Callable[[Run, Stop], None]
    ) -> None:
        super().__init__()
        self._store = store
        self._runs = runs
        self._lease = lease
        self._stop = stop
        self._pause = lease / RENEWALS
        self.tell_of_expired: Callable[[], None] = lambda: None

    def notice(self, run: Run) -> None:
        """A job was claimed; if its lease is shorter than the pause we are in, end the pause."""
        if self._seconds_of(run) < self._pause:
            self.wake()

    async def run_once(self) -> float:
        try:
            await self._renew()
        except BaseException:
            self._pause = math.inf  # a claim shows that the store answers again: do not wait on
            raise
        self._pause = min(map(self._seconds_of, self._runs), default=self._lease / RENEWALS)
        return self._pause

    def _seconds_of(self, run: Run) -> float:
        """How often the lease of a run is renewed: as its handler asks, and in time."""
        lease = run.lease_seconds or run.handler.lease or self._lease
        return min(run.handler.heartbeat or lease, lease / RENEWALS)

    async def _renew(self) -> None:
        believed = [run for run in self._runs if run.stage is not Stage.ENDED]
        if not (tokens := self._runs.tokens()):
            return
        renewal = await self._store.extend_leases(tokens)
        if renewal.is_rescue_due:
            self.tell_of_expired()
        for run in believed:
            # One that has ended meanwhile is the completer's: the database tells it whose it was.
            if run.stage is Stage.ENDED:
                continue
            if run.id not in renewal.held:
                logger.warning(
                    "job %s: the lease was lost, its handler is stopped",
                    run.id,
                    extra=event("job.lease_lost", job_id=run.id),
                )
                self._stop(run, Stop.LOST)
            elif run.id in renewal.stopping:
                run.job.stop_as = renewal.stopping[run.id]
                self._stop(run, Stop.ASKED)


class Presence(Service):
    """Registers this worker while it lives: what it takes, how much it runs, what fails in it."""

    def __init__(
        self,
        store: Store,
        row: WorkerRow,
        running: Callable[[], int],
        find_trouble: Callable[[], str | None],
    ) -> None:
        super().__init__()
        self._store = store
        self._row = row
        self._running = running
        self._find_trouble = find_trouble

    async def run_once(self) -> float:
        row = replace(self._row, running=self._running(), trouble=self._find_trouble())
        await self._store.register_worker(row, BELIEVED_SECONDS)
        return SAY_SECONDS

    async def leave(self) -> None:
        await self._store.drop_worker(self._row.id)
