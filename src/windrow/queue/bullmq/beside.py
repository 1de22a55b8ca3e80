"""The database beside the queue: what jobs write in `job.tx`, and with it how they ended.

Redis and a database of SQL have no transaction in common. So the rows of a run are committed first,
together with its end (`far_runs`), and BullMQ is told of the end after that. Whoever dies in
between leaves a job whose end is known: its lock runs out, and whoever claims it next tells BullMQ,
and runs nothing. So does, first of all, whoever cancels, deletes or moves it. What a run writes is
refused when its lock is gone, and once more by the database itself: there a run that is behind
another one, or behind the end, writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from redis.asyncio.client import Pipeline

from windrow.errors import LeaseLost
from windrow.queue.bullmq import rows
from windrow.queue.bullmq.claiming import Leases, queue_of
from windrow.queue.bullmq.connection import Links
from windrow.queue.bullmq.finishing import WAITS
from windrow.queue.bullmq.looking import Found, find_jobs
from windrow.queue.job import FINAL
from windrow.queue.records import Finish, read_row
from windrow.queue.store import JobTransaction, Store

# How long runs are remembered: longer than any that was taken for dead may still try to write.
KEPT_SECONDS: Final = 86_400
PRUNE_SECONDS: Final = 3600
PAGE: Final = 500


class Key(msgspec.Struct, frozen=True, array_like=True):
    """Which life of which job: one that is retried by hand, or added anew, begins another."""

    prefix: str
    id: str
    created: str
    retries: str

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True, slots=True)
class _Held:
    """A run that has its job: which one it is."""

    key: str
    number: int


class Beside:
    def __init__(self, links: Links, store: Store) -> None:
        self.store = store
        self._links = links
        self._pruned_at: float | None = None

    async def close(self) -> None:
        await self.store.close()

    async def end(self, finish: Finish, tx: JobTransaction) -> Finish:
        """Commit what a run has written, with its end; the end that BullMQ is to be told: this one,
        or that of a run that came before. Of a run that has lost its job nothing is committed, and
        BullMQ will refuse its end."""
        held = await self._find_held(finish.id, finish.token)
        if held is None:
            await tx.rollback()
            return finish
        packed = _pack(finish) if finish.state in FINAL else None  # else it is to run again
        try:
            ended = await self.store.keep_far_run(held.key, held.number, packed, tx)
        except LeaseLost:
            return finish
        return finish if ended is None else _unpack(ended, finish.token)

    async def save(self, job_id: str, token: str, tx: JobTransaction) -> None:
        """Commit what a run has written while it goes on. If the job has an end already nothing is
        committed: what comes of this run changes nothing either."""
        held = await self._find_held(job_id, token)
        if held is None:
            await tx.rollback()
            raise LeaseLost(job_id)
        try:
            await self.store.keep_far_run(held.key, held.number, None, tx)
        except LeaseLost:
            raise LeaseLost(job_id) from None

    async def settle(self, finishes: Sequence[Finish], leases: Leases) -> list[Finish]:
        """The ends that BullMQ is to be told of runs that have written nothing: if an earlier run
        of the job has ended, that is how it ended."""
        again = [one for one in finishes if one.state in FINAL and leases.ran_before(one.token)]
        held = {one.token: await self._find_held(one.id, one.token) for one in again}
        keys = {token: one.key for token, one in held.items() if one is not None}
        ends = await self.store.find_far_ends(list(keys.values())) if keys else {}
        told = {token: ends[key] for token, key in keys.items() if key in ends}
        return [
            _unpack(told[one.token], one.token) if one.token in told else one for one in finishes
        ]

    async def find_ends(
        self, queue: str, claimed: Sequence[tuple[str, str, Mapping[str, str]]]
    ) -> dict[str, Finish]:
        """Of jobs that are claimed (token, BullMQ's id, hash), those that have ended already, by
        their tokens."""
        keys = {
            token: _key_of(self._links, rows.our_id(queue, job_id), fields)
            for token, job_id, fields in claimed
            if int(fields.get("ats") or 0) > 1
        }
        ends = await self.store.find_far_ends(list(keys.values())) if keys else {}
        return {token: _unpack(ends[key], token) for token, key in keys.items() if key in ends}

    async def find_end(self, found: Found) -> Finish | None:
        """How a job that waits has ended already, if it has. Else no run of it up to now can end it
        any more, so that whoever asks may take the job away."""
        if found.job.state not in WAITS or found.job.runs < 1:
            return None
        key = _key_of(self._links, found.job.id, found.fields or {})
        try:
            # As the next run would: those before it are refused from now on.
            ended = await self.store.keep_far_run(
                key, found.job.runs + 1, None, await self.store.begin()
            )
        except LeaseLost:  # it was claimed since it was looked at, which its watcher will see
            return None
        return None if ended is None else _unpack(ended, "")

    async def prune(self) -> None:
        """Forget runs of jobs that are gone or have ended in BullMQ as well."""
        now = time.monotonic()
        if self._pruned_at is not None and now - self._pruned_at < PRUNE_SECONDS:
            return
        self._pruned_at = now
        page = await self.store.list_far_runs(KEPT_SECONDS, limit=PAGE)
        while page:
            await self._prune_page(page)
            page = (
                await self.store.list_far_runs(KEPT_SECONDS, after=page[-1], limit=PAGE)
                if len(page) == PAGE
                else []
            )

    async def _prune_page(self, texts: Sequence[str]) -> None:
        keys = [msgspec.json.decode(text, type=Key) for text in texts]
        own = [key for key in keys if key.prefix == self._links.prefix]
        found = await find_jobs(self._links, [key.id for key in own])
        over = [key.text for key in own if not _is_live(key, found.get(key.id))]
        if over:
            await self.store.drop_far_runs(over)

    async def _find_held(self, job_id: str, token: str) -> _Held | None:
        """The run that a token is of; None: it has lost its job, or has ended it."""
        queue, bullmq_id = queue_of(token), rows.their_id(job_id)[1]

        async def fill(pipe: Pipeline) -> None:
            pipe.get(self._links.lock_key(queue, bullmq_id))
            pipe.hgetall(self._links.job_key(queue, bullmq_id))

        # In one transaction: the number must be that of the run that has the lock.
        lock, fields = await self._links.together(fill)
        if lock != token or not fields:
            return None
        return _Held(_key_of(self._links, job_id, fields), int(fields.get("ats") or 0))


def _key_of(links: Links, job_id: str, fields: Mapping[str, str]) -> str:
    retries = fields.get(rows.RETRIES) or "0"
    return Key(links.prefix, job_id, fields.get("timestamp") or "0", retries).text


def _is_live(key: Key, found: Found | None) -> bool:
    if found is None or found.job.state in FINAL:
        return False
    fields = found.fields or {}
    life = (fields.get("timestamp") or "0", fields.get(rows.RETRIES) or "0")
    return life == (key.created, key.retries)


def _pack(finish: Finish) -> str:
    """An end as it is kept, without the token: somebody else may tell it."""
    return msgspec.json.encode(msgspec.structs.replace(finish, token="")).decode()


def _unpack(text: str, token: str) -> Finish:
    fields: dict[str, Any] = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    then = msgspec.json.decode(fields.pop("then", b"[]"), type=list[msgspec.Raw])
    finish = msgspec.json.decode(msgspec.json.encode(fields), type=Finish)
    following = tuple(read_row(bytes(row)) for row in then)
    return msgspec.structs.replace(finish, token=token, then=following)
