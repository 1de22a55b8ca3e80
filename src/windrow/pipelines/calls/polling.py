"""When a provider is asked for a transcript: first when it can be there, then ever less often.

All of it follows from how long the job has waited, by the database's clock: nothing needs to be
kept from one poll to the next.
"""

from __future__ import annotations

from typing import Final

from windrow.ingest.transcribe import Transcriber
from windrow.queue.job import Job

SHORTEST_DEADLINE: Final = 3600.0
DEADLINE_PART: Final = 2.0  # of how long the recording is
WAIT_PART: Final = 0.25  # of how long it was waited for
LONGEST_WAIT: Final = 600.0


def first_wait(transcriber: Transcriber, seconds: float) -> float:
    """From the start to the first poll."""
    return max(seconds * transcriber.seconds_per_second, transcriber.poll_seconds)


def next_wait(transcriber: Transcriber, so_far: float) -> float:
    """From one poll to the next."""
    return max(min(so_far * WAIT_PART, LONGEST_WAIT), transcriber.poll_seconds)


def deadline(seconds: float) -> float:
    """How long after the start nobody believes in a transcript any more."""
    return max(SHORTEST_DEADLINE, seconds * DEADLINE_PART)


def waited(job: Job) -> float:
    """Since the start: the job was enqueued with its end."""
    now = job.started_at or job.created_at
    return (now - job.created_at).total_seconds()
