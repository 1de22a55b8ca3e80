"""Renews the leases of claimed jobs, and stops handlers: of jobs that were lost to another worker,
and of those that somebody asked to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable

from windrow.queue.store import Store
from windrow.worker.runs import Run, Runs, Stage, Stop
from windrow.worker.service import Service

logger = logging.getLogger(__name__)


class Heartbeat(Service):
    def __init__(
        self, store: Store, runs: Runs, seconds: float, stop: Callable[[Run, Stop], None]
    ) -> None:
        super().__init__()
        self._store = store
        self._runs = runs
        self._seconds = seconds
        self._stop = stop

    async def run_once(self) -> float:
        believed = [run for run in self._runs if run.stage is not Stage.ENDED]
        if not self._runs.tokens():
            return self._seconds
        renewal = await self._store.extend_leases(self._runs.tokens())
        for run in believed:
            # One that has ended meanwhile is the completer's: the database tells it whose it was.
            if run.stage is Stage.ENDED:
                continue
            if run.job.id not in renewal.held:
                logger.warning("job %s: the lease was lost, its handler is stopped", run.job.id)
                self._stop(run, Stop.LOST)
            elif run.job.id in renewal.stopping:
                run.job.stop_as = renewal.stopping[run.job.id]
                self._stop(run, Stop.ASKED)
        return self._seconds
