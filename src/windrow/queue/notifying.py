"""Who carries word between processes that there is work, or that a job has ended.

By default the database does: NOTIFY on Postgres, the file on SQLite. Another notifier can be named,
and then a store tells it of every commit and hangs its bells there. Word is a hint and never a
promise: what a notifier loses is found by looking, as it is when there is none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from windrow.errors import ConfigError, MissingExtra
from windrow.queue.bells import Belfry, Bell, Wish

POSTGRES: Final = "postgres"
POLLING: Final = "polling"
RABBITMQ: Final = ("amqp", "amqps")


class Notifier:
    """`polling`: word goes round in this process alone, and the others look from time to time."""

    def __init__(self) -> None:
        self.belfry = Belfry()

    @asynccontextmanager
    async def listen(self, wish: Wish) -> AsyncIterator[Bell]:
        """A bell for what is wished; hung up before this returns."""
        bell = Bell()
        self.belfry.hang(bell, wish)
        try:
            yield bell
        finally:
            self.belfry.take_down(bell)

    def tell(self, queues: Iterable[str], job_ids: Iterable[str]) -> None:
        """Committed: there may be work in these queues, these jobs have ended. Called from any
        thread; never waits and never fails."""
        self.belfry.ring(queues, job_ids)

    async def check(self) -> str | None:
        """Why nothing is heard of other processes; None if it is."""
        return f"the notifier is {POLLING}"

    async def close(self) -> None:
        """Nobody listens any more; what was told has gone out, or goes unsaid."""


def open_notifier(name: str | None, scheme: str) -> Notifier | None:
    """The notifier of that name for a store of that scheme; None if the database itself is it."""
    if not name or (name == POSTGRES and scheme != "sqlite"):
        return None
    if name == POLLING:
        return Notifier()
    if name.partition(":")[0] in RABBITMQ:
        return _open_rabbitmq(name)
    if name == POSTGRES:
        raise ConfigError("SQLite has no NOTIFY: name no notifier, and it watches its file")
    raise ConfigError(
        f"no notifier {name.partition('//')[0]!r}: use {POSTGRES}, {POLLING} or "
        "amqp://user:password@host/vhost"
    )


def _open_rabbitmq(address: str) -> Notifier:
    try:
        from windrow.queue.rabbitmq.notifier import RabbitMq
    except ModuleNotFoundError as error:
        if error.name != "aio_pika":
            raise
        raise MissingExtra("rabbitmq", "a RabbitMQ notifier") from error
    return RabbitMq(address)
