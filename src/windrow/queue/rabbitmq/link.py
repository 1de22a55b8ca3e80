"""One connection to the broker, as long as it holds: an exchange to publish to, and a temporary
queue of our own, made when there is something to listen for, that goes with the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Self

import aio_pika
import msgspec
from aio_pika.abc import (
    AbstractChannel,
    AbstractConnection,
    AbstractExchange,
    AbstractIncomingMessage,
    AbstractQueue,
)
from aio_pika.exceptions import CONNECTION_EXCEPTIONS

from windrow.queue.rabbitmq.news import Letter

# What a connection that cannot be made, or does not hold, raises.
LOST: Final = (*CONNECTION_EXCEPTIONS, TimeoutError)
CONNECT_SECONDS: Final = 5.0
CALL_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 2.0
# Word that nobody has read after so long is of no use to anybody.
QUEUE_ARGUMENTS: Final[dict[str, Any]] = {"x-message-ttl": 60_000, "x-max-length": 10_000}

Hear = Callable[[bytes], None]


class Link:
    def __init__(
        self,
        connection: AbstractConnection,
        channel: AbstractChannel,
        exchange: AbstractExchange,
        hear: Hear,
    ) -> None:
        self.is_open = True
        self.bound: set[str] = set()
        self._connection = connection
        self._channel = channel
        self._exchange = exchange
        self._hear = hear
        self._queue: AbstractQueue | None = None
        self._lock = asyncio.Lock()  # one who binds at a time; the others find it bound
        self._lost: list[Callable[[], None]] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, address: str, exchange: str, hear: Hear) -> AsyncIterator[Self]:
        connection = await aio_pika.connect(address, timeout=CONNECT_SECONDS)
        try:
            # Nothing is lost with a message, so none is confirmed.
            channel = await connection.channel(publisher_confirms=False)
            declared = await channel.declare_exchange(
                exchange, aio_pika.ExchangeType.DIRECT, durable=True, timeout=CALL_SECONDS
            )
            link = cls(connection, channel, declared, hear)
            channel.close_callbacks.add(lambda *_: link.drop())
            connection.close_callbacks.add(lambda *_: link.drop())
            try:
                yield link
            finally:
                if link.is_open:  # answered when all that was published has been taken
                    await _within_reason(channel.close())
        finally:
            await _within_reason(connection.close())

    def on_lost(self, tell: Callable[[], None]) -> None:
        self._lost.append(tell)

    def drop(self) -> None:
        """It is of no more use."""
        self.is_open = False
        for tell in self._lost:
            tell()

    async def publish(self, letter: Letter) -> None:
        first, *others = letter.keys()
        message = aio_pika.Message(
            msgspec.json.encode(letter),
            content_type="application/json",
            headers={"BCC": list(others)},
        )
        await self._exchange.publish(
            message, routing_key=first, mandatory=False, timeout=CALL_SECONDS
        )

    async def bind(self, keys: frozenset[str]) -> None:
        """When this returns, whatever is published under these keys is heard."""
        if not keys - self.bound:
            return
        async with self._lock:
            queue = self._queue or await self._declare()
            for key in sorted(keys - self.bound):
                await queue.bind(self._exchange, key, timeout=CALL_SECONDS)
                self.bound.add(key)

    async def keep_only(self, wanted: Callable[[], frozenset[str]]) -> None:
        """Unbind the rest. What is wanted is asked each time: it may be wanted again by now."""
        async with self._lock:
            for key in sorted(self.bound):
                if self._queue is not None and key not in wanted():
                    self.bound.discard(key)
                    await self._queue.unbind(self._exchange, key, timeout=CALL_SECONDS)

    async def _declare(self) -> AbstractQueue:
        self._queue = await self._channel.declare_queue(
            exclusive=True, auto_delete=True, arguments=QUEUE_ARGUMENTS, timeout=CALL_SECONDS
        )
        await self._queue.consume(self._take, no_ack=True, timeout=CALL_SECONDS)
        return self._queue

    async def _take(self, message: AbstractIncomingMessage) -> None:
        self._hear(message.body)


async def _within_reason(closing: Awaitable[object]) -> None:
    """Close in order if the broker answers; else there is nothing left to close."""
    with suppress(*LOST):
        async with asyncio.timeout(CLOSE_SECONDS):
            await closing
