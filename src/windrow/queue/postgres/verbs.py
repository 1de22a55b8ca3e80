"""What the parts of the store share: the database, the clock, and transactions that are settled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from typing import Any, TypeVar

from windrow.clock import Clock
from windrow.db.postgres.connections import PATIENT_TRY, Connections
from windrow.db.postgres.database import PostgresDatabase
from windrow.db.transactions import Executor
from windrow.queue.notifying import Notifier
from windrow.queue.postgres.claiming import Claimer
from windrow.queue.postgres.rows import Row, sql
from windrow.queue.postgres.work import Work

T = TypeVar("T")
ALL = 2**31 - 1


class Verbs:
    def __init__(
        self, database: Connections, clock: Clock, notifier: Notifier | None = None
    ) -> None:
        self.clock = clock
        self._database = database
        self.database = PostgresDatabase(database, clock)
        self._claimer = Claimer()
        self._notifier = notifier

    async def _run(self, name: str, /, **values: Any) -> list[Row]:
        """Run one statement, which commits by itself."""
        return await self._database.fetch(sql(name), {"now": self.clock.now(), **values})

    async def _transact(self, do: Callable[[Work], Awaitable[T]]) -> T:
        """Do the work in a transaction and settle what follows from it."""

        tries = count(1)

        async def once(executor: Executor) -> tuple[T, Work]:
            work = Work(executor, self.clock.now(), is_patient=next(tries) >= PATIENT_TRY)
            result = await do(work)
            await work.settle()
            return result, work

        result, work = await self._database.in_transaction(once)
        await self._after_commit(work)
        return result

    async def _after_commit(self, work: Work) -> None:
        self._tell(work.ready_queues, work.ended)
        await self._promote_again(work.followed_keys)

    async def _promote_again(self, keys: set[str]) -> None:
        """A follower may have been inserted just while its holder ended, neither seeing the other.
        Now both have committed, so another look finds it."""
        if keys:
            promoted = await self._run("promote_followers", keys=sorted(keys), limit=ALL)
            self._tell({row["queue"] for row in promoted})

    def _tell(self, queues: Iterable[str], ended: Iterable[Any] = ()) -> None:
        """What was committed just now: jobs of these queues may be claimable, also before the place
        up to which was claimed, and these jobs have ended."""
        names = set(queues)
        self._claimer.floors.drop(names)
        if self._notifier is not None:
            self._notifier.tell(names, map(str, ended))
