"""What a kind's handler says about new jobs of its kind: where they wait, how often they may fail.

A process that knows the handler enqueues by these; what `enqueue` or `NewJob` names comes first.
A process that does not know it takes the defaults of every job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from windrow.queue.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_CRASHES, DEFAULT_QUEUE


@dataclass(frozen=True, slots=True)
class Kind:
    queue: str = DEFAULT_QUEUE
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    max_crashes: int = DEFAULT_MAX_CRASHES
    limits: tuple[str, ...] = ()


_USUAL: Final = Kind()
_declared: Final[dict[str, Kind]] = {}


def declare(name: str, kind: Kind) -> None:
    """New jobs of this kind are made by these from now on; declared again, the last one counts."""
    _declared[name] = kind


def usual(name: str) -> Kind:
    return _declared.get(name, _USUAL)
