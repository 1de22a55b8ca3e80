"""The pool, with some connections kept at hand.

asyncpg takes a connection back in a task of its own, under a timer, and asks for another round of
the event loop to lend it: twice what our statements take to be sent. A connection that is given
back as it was is therefore kept, and lent again at once; what went wrong goes back to asyncpg.
"""

from __future__ import annotations

from typing import Any, Final

import asyncpg

# More than a few at once are asked for in bursts only: asyncpg closes those when they are idle.
MOST_KEPT: Final = 3
ACQUIRE_SECONDS: Final = 30.0

Connection = Any  # asyncpg's proxy


class Pool:
    def __init__(self, pool: asyncpg.Pool[Any]) -> None:
        self._pool = pool
        self._kept: list[Connection] = []
        self._waiting = 0  # for a connection of asyncpg's
        self._is_closing = False

    def take(self) -> Connection | None:
        """A connection that is at hand, if the last one kept is still good."""
        if self._kept and not _is_lost(self._kept[-1]):
            return self._kept.pop()
        return None

    async def acquire(self) -> Connection:
        while self._kept:
            connection = self._kept.pop()
            if not _is_lost(connection):
                return connection
            await self._pool.release(connection)
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=ACQUIRE_SECONDS)
        finally:
            self._waiting -= 1

    def keep(self, connection: Connection) -> bool:
        """Take back a connection that no statement failed on, unless somebody waits for it at
        asyncpg's; whether it was taken."""
        if (
            self._waiting
            or self._is_closing
            or len(self._kept) >= MOST_KEPT
            or not _is_idle(connection)
        ):
            return False
        self._kept.append(connection)
        return True

    async def release(self, connection: Connection) -> None:
        """Take back a connection, whatever state it is in."""
        await self._pool.release(connection)

    async def close(self) -> None:
        """Wait until all are back, and close them."""
        self._is_closing = True
        while self._kept:
            await self._pool.release(self._kept.pop())
        await self._pool.close()

    def terminate(self) -> None:
        self._pool.terminate()


def _is_lost(connection: Connection) -> bool:
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:  # asyncpg has taken it back by itself
        return True


def _is_idle(connection: Connection) -> bool:
    """Whether no transaction is open. One that is lost is found out when it is taken."""
    try:
        return not connection.is_in_transaction()
    except asyncpg.InterfaceError:
        return False
