"""Work that waits in Redis: the messages of Celery, the jobs of RQ.

Both are read as tables, one for each list or set of ids; nothing is taken out of them, and `drop`
removes what was read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import msgspec

from windrow.errors import MigrationFailed, MissingExtra
from windrow.redaction import redact_url
from windrow.services.migration.origins import BATCH, Row, Table

_HERE: Final = ("localhost", "127.0.0.1", "::1")  # one machine by three names
CELERY: Final = "celery/"
UNACKED: Final = (
    "celery/unacked"  # what workers of Celery hold, with those that wait for their time
)
RQ: Final = "rq/"
_BINDING: Final = "_kombu.binding."
_SEPARATOR: Final = "\x06\x16"
_PRIORITIES: Final = (0, 3, 6, 9)  # of each queue a list, the first one without the number
# Sets of RQ: what their jobs are, and whether the score is a time.
_RQ_SETS: Final = {"scheduled": True, "wip": False, "deferred": False, "failed": False}
_RQ_PARTS: Final = (  # of a job, as RQ spells them
    "rq:job:{}",
    "rq:job:{}:dependents",
    "rq:job::{}:dependencies",
)


class RedisOrigin:
    errors: ClassVar[tuple[type[Exception], ...]] = (OSError,)  # and those of the driver
    _changed: ClassVar[type[Exception]]

    def __init__(self, names: Sequence[str], client: Any) -> None:
        self.name = names[0]
        self.former = names[1:]
        self._client = client
        self._pipe: Any = None  # that drops what is held, if it has not changed

    @classmethod
    async def open(cls, url: str) -> RedisOrigin:
        try:
            from redis.asyncio import Redis
            from redis.exceptions import RedisError, WatchError
        except ImportError as error:
            raise MissingExtra("bullmq") from error
        cls.errors = (RedisError, OSError)
        cls._changed = WatchError
        try:
            parts = urlsplit(url)
            rest = f"{parts.port or 6379}/{parts.path.strip('/') or '0'}"
            hosts = _HERE if parts.hostname in _HERE else [parts.hostname]
            client = Redis.from_url(url)
        except ValueError as error:
            raise MigrationFailed(f"{redact_url(url)} cannot be opened: {error}") from error
        try:
            await client.ping()
        except (RedisError, OSError) as error:
            await client.aclose()
            raise MigrationFailed(f"{redact_url(url)} cannot be opened: {error}") from error
        return cls([f"redis:{host}:{rest}" for host in hosts], client)

    async def keep_name(self, *, is_known: bool) -> None:
        """It is known by its address."""

    async def list_tables(self) -> list[Table]:
        names = [CELERY + queue for queue in await self._celery_queues()]
        if await self._client.exists("unacked"):
            names.append(UNACKED)
        for queue in sorted(map(_text, await self._client.smembers("rq:queues"))):
            short = queue.removeprefix("rq:queue:")
            names += [f"{RQ}queue/{short}", *(f"{RQ}{kind}/{short}" for kind in _RQ_SETS)]
        return [Table(name, frozenset()) for name in names]

    async def _celery_queues(self) -> list[str]:
        """Those that are bound, and lists that hold messages: a binding may have expired."""
        queues: set[str] = set()
        async for key in self._client.scan_iter(f"{_BINDING}*", count=1000):
            for member in await self._client.smembers(key):
                queues.add(_text(member).rpartition(_SEPARATOR)[2])
        async for key in self._client.scan_iter(count=1000, _type="list"):
            ends = [await self._client.lindex(key, 0), await self._client.lindex(key, -1)]
            if any(map(_is_message, ends)):
                queues.add(_text(key).partition(_SEPARATOR)[0])
        return sorted(queue for queue in queues if not _is_reply(queue))

    async def read(self, table: Table, order: Sequence[str]) -> AsyncIterator[list[Row]]:
        if table.name == UNACKED:
            async for rows in self._read_unacked():
                yield rows
        elif table.name.startswith(CELERY):
            async for rows in self._read_celery(table.name.removeprefix(CELERY)):
                yield rows
        else:
            async for rows in self._read_rq(table.name):
                yield rows

    async def _read_celery(self, queue: str) -> AsyncIterator[list[Row]]:
        """Who sends pushes to the left, so the oldest is on the right."""
        for priority in _PRIORITIES:
            key = f"{queue}{_SEPARATOR}{priority}" if priority else queue
            if await self._client.type(key) != b"list":
                continue
            length = await self._client.llen(key)
            for end in range(length, 0, -BATCH):
                found = await self._client.lrange(key, max(0, end - BATCH), end - 1)
                yield [_message(text, queue) for text in reversed(found)]

    async def _read_unacked(self) -> AsyncIterator[list[Row]]:
        rows = []
        async for _, text in self._client.hscan_iter("unacked"):
            try:
                message, _, routing_key = msgspec.json.decode(text)
            except (msgspec.DecodeError, ValueError):
                rows.append(_message(text, "unacked"))
                continue
            rows.append(_message(msgspec.json.encode(message), str(routing_key)))
        for start in range(0, len(rows), BATCH):
            yield rows[start : start + BATCH]

    async def _read_rq(self, name: str) -> AsyncIterator[list[Row]]:
        kind, _, queue = name.removeprefix(RQ).partition("/")
        if kind == "queue":
            ids = [
                (_text(id), None) for id in await self._client.lrange(f"rq:queue:{queue}", 0, -1)
            ]
        else:
            found = await self._client.zrange(f"rq:{kind}:{queue}", 0, -1, withscores=True)
            # What runs is named with its execution: job:execution.
            ids = [(_text(id).partition(":")[0], score) for id, score in found]
        for start in range(0, len(ids), BATCH):
            rows = []
            for id, score in ids[start : start + BATCH]:
                fields = await self._client.hgetall(f"rq:job:{id}")
                row: Row = {_text(name): value for name, value in fields.items()}
                is_time = _RQ_SETS.get(kind, False)
                rows.append(row | {"id": id, "queue": queue, "due": score if is_time else None})
            yield rows

    async def mark(self, tables: Sequence[str], is_deprecated: bool) -> None:
        """Lists have no place to say it."""

    async def hold(self, tables: Sequence[str]) -> None:
        """Nobody can be kept from writing; but if somebody does, nothing is dropped."""
        self._pipe = self._client.pipeline(transaction=True)
        await self._pipe.watch(*(key for name in tables for key in _keys(name)))

    async def release(self) -> None:
        if self._pipe is not None:
            await self._pipe.reset()

    async def drop(self, tables: Sequence[str]) -> None:
        gone = [key for name in tables for key in _keys(name)]
        for name in tables:
            if not name.startswith(CELERY):
                async for rows in self._read_rq(name):
                    gone += [part.format(row["id"]) for row in rows for part in _RQ_PARTS]
        self._pipe.multi()
        for start in range(0, len(gone), BATCH):
            self._pipe.delete(*gone[start : start + BATCH])
        try:
            await self._pipe.execute()
        except self._changed as error:
            raise MigrationFailed(
                "something came there meanwhile, and nothing is dropped: migrate again"
            ) from error

    async def close(self) -> None:
        await self.release()
        await self._client.aclose()


def _keys(table: str) -> list[str]:
    """Where in Redis it is."""
    if table == UNACKED:
        return ["unacked", "unacked_index"]
    if table.startswith(CELERY):
        queue = table.removeprefix(CELERY)
        return [queue, *(f"{queue}{_SEPARATOR}{one}" for one in _PRIORITIES[1:])]
    kind, _, queue = table.removeprefix(RQ).partition("/")
    return [f"rq:{kind}:{queue}"]


def _message(text: bytes, queue: str) -> Row:
    try:
        message = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = None
    if not isinstance(message, dict):
        return {"queue": queue, "unreadable": text.decode(errors="replace")}
    headers = message.get("headers")
    id = headers.get("id") if isinstance(headers, dict) else None
    return {"queue": queue, "id": id, "message": message}


def _is_message(text: bytes | None) -> bool:
    message = _message(text or b"", "").get("message")
    return message is not None and "properties" in message and "body" in message


def _is_reply(queue: str) -> bool:
    """Queues for events and control, whose messages are no work."""
    return queue.endswith((".celery.pidbox", ".reply.celery.pidbox")) or "celeryev" in queue


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
