"""What a worker logs when it starts, and kinds and queues that look like a mistake."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from windrow.logging import event
from windrow.queue.records import ReadyKind, WorkerRow
from windrow.queue.store import Store
from windrow.worker.registry import Handler, name_of
from windrow.worker.service import Service

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 10.0
MAX_FUNCTIONS: Final = 12  # the kinds of more handlers are shown without their functions
MAX_WARNINGS: Final = 20  # of one look; the others are counted
LOOK_AHEAD: Final = 20  # ready jobs at the front of each queue whose kinds are looked at


def log_started(worker: WorkerRow, handlers: Mapping[str, Handler], database: str | None) -> None:
    """The first lines of a worker: its database, queues, kinds and the functions that run them."""
    logger.info(
        "worker %s started: database %s, queues: %s, %d at once",
        worker.name,
        database or "unknown",
        "all" if worker.queues is None else ", ".join(worker.queues),
        worker.concurrency,
        extra=event(
            "worker.started",
            worker=worker.name,
            database=database,
            queues=worker.queues,
            kinds=worker.kinds,
            concurrency=worker.concurrency,
        ),
    )
    functions = {kind: name_of(handler.function) for kind, handler in sorted(handlers.items())}
    shows_functions = len(functions) <= MAX_FUNCTIONS
    logger.info(
        "handlers: %s",
        ", ".join(f"{kind} ({functions[kind]})" if shows_functions else kind for kind in functions),
        extra=event("worker.handlers", worker=worker.name, handlers=functions),
    )


class Startup(Service):
    """Warns of named queues that never had a job, at the start, and of kinds that wait and that no
    live worker runs, now and again; of each once. Jobs run all the same while it fails."""

    give_up_seconds = math.inf

    def __init__(self, store: Store, worker: WorkerRow, handlers: Mapping[str, Handler]) -> None:
        super().__init__()
        self._store = store
        self._worker = worker
        self._handlers = handlers
        self._has_looked_at_queues = worker.queues is None
        self._reported: set[tuple[str, str]] = set()

    async def run_once(self) -> float:
        if not self._has_looked_at_queues:
            await self._look_at_queues(self._worker.queues or ())
            self._has_looked_at_queues = True
        await self._look_at_kinds()
        return LOOK_SECONDS

    async def _look_at_queues(self, named: Sequence[str]) -> None:
        declared = {handler.queue for handler in self._handlers.values()}
        if set(named) <= declared:
            return
        used = {info.name for info in await self._store.list_queues()}
        for queue in sorted(set(named) - declared - used):
            suggestion = _nearest(queue, used | declared)
            logger.warning(
                "queue %r has never had a job%s",
                queue,
                _question(suggestion),
                extra=event("queue.unused", queue=queue, suggestion=suggestion),
            )

    async def _look_at_kinds(self) -> None:
        ready = await self._store.list_ready_kinds(LOOK_AHEAD)
        if all(self._worker.takes(one.queue, one.kind) for one in ready):
            return
        workers = [self._worker, *await self._store.list_workers()]
        unserved = _unserved(ready, workers)
        new = [one for one in unserved if (one.queue, one.kind) not in self._reported]
        self._reported.update((one.queue, one.kind) for one in new)
        for one in new[:MAX_WARNINGS]:
            self._warn(one, workers)
        if more := len(new[MAX_WARNINGS:]):
            logger.warning(
                "%d more kinds wait in queues from which no registered worker runs them",
                more,
                extra=event("kinds.unserved", count=more),
            )

    def _warn(self, ready: ReadyKind, workers: Sequence[WorkerRow]) -> None:
        known = {kind for worker in workers for kind in worker.kinds or ()}
        suggestion = "" if ready.kind in known else _nearest(ready.kind, known)
        logger.warning(
            "no registered worker runs kind %r from queue %r, as job %s%s",
            ready.kind,
            ready.queue,
            ready.example,
            _question(suggestion),
            extra=event(
                "kind.unserved",
                kind=ready.kind,
                queue=ready.queue,
                job_id=ready.example,
                suggestion=suggestion,
            ),
        )


def _unserved(ready: Iterable[ReadyKind], workers: Sequence[WorkerRow]) -> list[ReadyKind]:
    return [
        one for one in ready if not any(worker.takes(one.queue, one.kind) for worker in workers)
    ]


def _nearest(name: str, known: Collection[str]) -> str:
    return next(iter(get_close_matches(name, sorted(known), n=1)), "")


def _question(suggestion: str) -> str:
    return f"; did you mean {suggestion!r}?" if suggestion else ""
