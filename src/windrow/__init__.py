"""Windrow: a durable job queue and ingestion engine for Python."""

from __future__ import annotations

from windrow.errors import WindrowError
from windrow.queue.job import Job, NewJob
from windrow.queue.lease import Lease
from windrow.queue.outcome import Cancel, Done, Fail, Retry, Snooze
from windrow.queue.queue import Queue
from windrow.worker.registry import handler
from windrow.worker.worker import Worker

__version__ = "0.1.0.dev0"

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
