"""Runs of jobs whose queue is elsewhere, and whose rows are in this database.

A queue that is no table (BullMQ) cannot end a job in the transaction that writes the job's rows. So
the rows are written first, and with them, in one transaction, how the run ended: from then on that
is how it ended. The queue is told after that, by whoever comes to it: the run itself, or, if it
died, the next one, which is not run any more. Runs of a job are numbered, and one that is behind
another that has written writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class FarRunStore(Protocol):
    async def keep_far_run(self, key: str, run: int, ended: str | None, tx: Any) -> str | None:
        """Commit what a run of a job has written in a transaction of `begin()`, with its end, or,
        without one, while it goes on.
        If the job has ended already nothing is committed, and that end is returned. Raises
        LeaseLost if a later run has written, and then commits nothing either."""
        ...

    async def find_far_ends(self, keys: Sequence[str]) -> dict[str, str]:
        """How jobs have ended, of those that have."""
        ...

    async def list_far_runs(self, seconds: float, *, after: str = "", limit: int) -> list[str]:
        """A page of the keys of jobs whose runs have written nothing for so long, in order."""
        ...

    async def drop_far_runs(self, keys: Sequence[str]) -> None:
        """Forget them: their jobs are gone, or have ended where their queue is."""
        ...
