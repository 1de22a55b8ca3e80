"""Says that this worker is alive, what it takes and how much it runs: for people to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from windrow.queue.records import WorkerRow
from windrow.queue.store import Store
from windrow.worker.service import Service

SAY_SECONDS: Final = 10.0
BELIEVED_SECONDS: Final = 30.0


class Presence(Service):
    def __init__(self, store: Store, row: WorkerRow, running: Callable[[], int]) -> None:
        super().__init__()
        self._store = store
        self._row = row
        self._running = running

    async def run_once(self) -> float:
        row = replace(self._row, running=self._running())
        await self._store.register_worker(row, BELIEVED_SECONDS)
        return SAY_SECONDS

    async def leave(self) -> None:
        await self._store.drop_worker(self._row.id)
