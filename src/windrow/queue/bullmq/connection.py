"""The connection to Redis, the scripts of BullMQ for each queue, and what we keep beside them.

BullMQ's keys are `prefix:queue:…`. Ours are `prefix.windrow:…`, which no queue can have; what
belongs to one job is in fields of the job's own hash, so that it goes when the job does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from bullmq.redis_connection import RedisConnection
from bullmq.scripts import Scripts
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import WatchError

from windrow.errors import ConfigError, InvalidJob, StoreConflict
from windrow.queue.bullmq.failures import wrapped_errors
from windrow.queue.bullmq.location import Location

# How often a transaction is begun anew because somebody changed what it had looked at.
TRIES: Final = 50
# Looking for queues: so many keys in one command, so many commands at a time, and so long between
# one time through all keys and the next.
SCAN_KEYS: Final = 1000
SCAN_PARTS: Final = 50
SCAN_SECONDS: Final = 60.0

Fill = Callable[[Pipeline], Awaitable[Any]]


class RawScripts(Scripts):  # type: ignore[misc]
    """BullMQ's scripts of one queue, with payloads as the JSON they came as."""

    def addJobArgs(self, job: Any) -> list[Any]:  # noqa: N802
        packed, _, options = super().addJobArgs(job)
        return [packed, job.json, options]

    async def run(
        self, pipe: Pipeline, name: str, keys: Sequence[Any], args: Sequence[Any]
    ) -> None:
        """Have a script run with the others of a pipeline."""
        await self.commands[name](keys=keys, args=args, client=pipe)


class Links:
    """What every verb needs: the client, the scripts by queue, the keys."""

    def __init__(self, location: Location) -> None:
        # What is repeated, and how, is decided by those who know what a lost reply means.
        # Its types do not know that answers are texts here.
        try:
            self.client: Any = Redis.from_url(
                location.redis_url, decode_responses=True, retry=Retry(NoBackoff(), 0)
            )
        except ValueError as error:
            raise ConfigError(f"an option in the address of the Redis is wrong: {error}") from error
        self.prefix = location.prefix
        self._connection = RedisConnection(self.client)
        self._scripts: dict[str, RawScripts] = {}
        self._known: set[str] = set()
        self._seen: set[str] = set()  # queues, some of them known
        self._cursor = 0
        self._scan_at = 0.0

    async def check(self) -> None:
        """Raise StoreUnavailable, now and not later, if there is no Redis."""
        with wrapped_errors():
            await self.client.execute_command("PING")

    async def close(self) -> None:
        await self.client.aclose()

    def key(self, *parts: str) -> str:
        """A key of ours."""
        return ":".join((f"{self.prefix}.windrow", *parts))

    def scripts(self, queue: str) -> RawScripts:
        found = self._scripts.get(queue)
        if found is None:
            found = self._scripts[queue] = RawScripts(self.prefix, queue, self._connection)
        return found

    def job_key(self, queue: str, job_id: str) -> str:
        return f"{self.prefix}:{queue}:{job_id}"

    def lock_key(self, queue: str, job_id: str) -> str:
        return f"{self.prefix}:{queue}:{job_id}:lock"

    async def know(self, queues: Iterable[str]) -> None:
        """Remember queues that something was put into, or asked of."""
        if fresh := set(queues) - self._known:
            for name in fresh:
                check_queue(name)
            with wrapped_errors():
                await self.client.execute_command("SADD", self.key("queues"), *sorted(fresh))
            self._known |= fresh

    async def queues(self) -> list[str]:
        """Every queue that Windrow has heard of, in any process."""
        with wrapped_errors():
            found = await self.client.execute_command("SMEMBERS", self.key("queues"))
        self._known |= set(found)
        return sorted(self._known)

    async def all_queues(self) -> list[str]:
        """Those, and queues that somebody else has made here: to be looked at, not to be taken
        from. Keys are gone through a part at a time, and again after a while."""
        known = await self.queues()
        if self._cursor or time.monotonic() >= self._scan_at:
            await self._scan()
        return sorted({*known, *self._seen})

    async def _scan(self) -> None:
        plain = re.sub(r"([*?\[\]\\])", r"\\\1", self.prefix)  # no pattern of its own
        start, end = f"{self.prefix}:", ":meta"
        for _ in range(SCAN_PARTS):
            with wrapped_errors():
                self._cursor, keys = await self.client.scan(
                    self._cursor, match=f"{plain}:*{end}", count=SCAN_KEYS
                )
            names = [key.removeprefix(start).removesuffix(end) for key in keys]
            self._seen |= {name for name in names if is_queue(name)}
            if not self._cursor:
                self._scan_at = time.monotonic() + SCAN_SECONDS
                return

    async def together(self, fill: Fill, *, transaction: bool = True) -> list[Any]:
        """Send commands at once; with `transaction` nothing of others comes in between."""
        with wrapped_errors():
            async with self.client.pipeline(transaction=transaction) as pipe:
                await fill(pipe)
                answers: list[Any] = await pipe.execute()
                return answers

    async def guarded(
        self, keys: Sequence[str], look: Callable[[Pipeline], Awaitable[Fill | None]]
    ) -> list[Any] | None:
        """Look, decide, and write what follows: nothing is written if one of these keys was
        changed, or ran out, since the look; then it is done again. `look` reads, and returns what
        fills the transaction; None: nothing is to be written."""
        with wrapped_errors():
            for _ in range(TRIES):
                async with self.client.pipeline(transaction=True) as pipe:
                    await pipe.watch(*keys)
                    fill = await look(pipe)
                    if fill is None:
                        return None
                    pipe.multi()
                    await fill(pipe)
                    try:
                        answers: list[Any] = await pipe.execute()
                    except WatchError:
                        continue
                    return answers
        raise StoreConflict("Redis: too many change the same jobs at once")


def is_queue(name: str) -> bool:
    return ":" not in name


def check_queue(name: str) -> None:
    if not is_queue(name):
        raise InvalidJob(f"the queue {name!r} has a colon, which BullMQ does not take in its names")


def now_ms() -> int:
    """The time as BullMQ has it: that of whoever calls."""
    return round(time.time() * 1000)
