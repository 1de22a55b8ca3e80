"""Windrow: a durable job queue and ingestion engine for Python.

The names are loaded when they are first used, so that a command that needs none of them starts at
once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from windrow.errors import WindrowError
    from windrow.queue.job import Job, NewJob
    from windrow.queue.lease import Lease
    from windrow.queue.outcome import Cancel, Done, Fail, Retry, Snooze
    from windrow.queue.queue import Queue
    from windrow.worker.registry import handler
    from windrow.worker.worker import Worker

__version__ = "0.1.0"

__all__ = [
    "Cancel",
    "Done",
    "Fail",
    "Job",
    "Lease",
    "NewJob",
    "Queue",
    "Retry",
    "Snooze",
    "WindrowError",
    "Worker",
    "handler",
]

_HOMES: Final = {
    "Cancel": "queue.outcome",
    "Done": "queue.outcome",
    "Fail": "queue.outcome",
    "Job": "queue.job",
    "Lease": "queue.lease",
    "NewJob": "queue.job",
    "Queue": "queue.queue",
    "Retry": "queue.outcome",
    "Snooze": "queue.outcome",
    "WindrowError": "errors",
    "Worker": "worker.worker",
    "handler": "worker.registry",
    # What `import windrow` has always brought with it.
    "errors": "errors",
    "queue": "queue",
    "worker": "worker",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOMES[name]}")
    found = globals()[name] = getattr(module, name) if name in __all__ else module
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
