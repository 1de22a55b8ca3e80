"""What a run says of itself. One of these ends every claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow.queue.job import NewJob


@dataclass(frozen=True, slots=True)
class Done:
    """The work is finished; `then` are enqueued in the same transaction."""

    result: Any = None
    then: Sequence[NewJob] = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """The run failed and may be tried again after a while; uses up an attempt.

    `after` is in seconds; None asks the back-off policy.
    """

    error: BaseException | str = "asked for a retry"
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Snooze:
    """Not yet: run it again after `after` seconds; no attempt is used."""

    after: float


@dataclass(frozen=True, slots=True)
class Fail:
    """The run failed and trying again would not help."""

    error: BaseException | str


@dataclass(frozen=True, slots=True)
class Cancel:
    """The work is not wanted any more."""

    reason: str = "cancelled by its handler"


Outcome = Done | Retry | Snooze | Fail | Cancel
