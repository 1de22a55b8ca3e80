"""Changing jobs from outside, by id. Each verb locks the rows first and then decides."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from windrow.errors import InvalidJob
from windrow.ids import is_id
from windrow.queue.checks import HOLD_WITHOUT_LIMITS
from windrow.queue.job import FINAL, UNCLAIMED, JobState
from windrow.queue.postgres.rows import Row, as_json
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import Work
from windrow.queue.records import Change

RETRIABLE: Final = frozenset({JobState.FAILED, JobState.CANCELLED})
_STORED_BESIDE: Final = ("payload", "headers", "tags")

Found = Mapping[str, Row]  # locked rows by id
Decide = Callable[[Work, Found], Awaitable[Mapping[str, Change]]]


class Changing(Verbs):
    async def cancel_jobs(self, ids: Sequence[str], reason: str) -> dict[str, Change]:
        async def decide(work: Work, found: Found) -> Mapping[str, Change]:
            live = [job_id for job_id, row in found.items() if _state(row) not in FINAL]
            ended = await work.cancel_jobs(live, reason)
            return {
                job_id: Change(
                    job_id,
                    _state(found[job_id]),
                    JobState.CANCELLED if job_id in ended else _state(found[job_id]),
                )
                for job_id in live
            }

        return await self._change(ids, decide)

    async def pause_jobs(self, ids: Sequence[str]) -> dict[str, Change]:
        async def decide(work: Work, found: Found) -> Mapping[str, Change]:
            unclaimed = _in_states(found, UNCLAIMED)
            running = _in_states(found, {JobState.ACTIVE})
            await work.run("pause_jobs", ids=unclaimed)
            await work.run("tell_jobs", ids=running, stop_as="paused", reason=None)
            changes = {i: Change(i, _state(found[i]), JobState.PAUSED) for i in unclaimed}
            return changes | {i: Change(i, JobState.ACTIVE, JobState.ACTIVE) for i in running}

        return await self._change(ids, decide)

    async def resume_jobs(self, ids: Sequence[str]) -> dict[str, Change]:
        async def decide(work: Work, found: Found) -> Mapping[str, Change]:
            rows = await work.run("resume_jobs", ids=list(found))
            work.ready_queues |= {row["queue"] for row in rows}
            return _moved(rows, found)

        return await self._change(ids, decide)

    async def retry_jobs(
        self, ids: Sequence[str], *, from_start: bool = False
    ) -> dict[str, Change]:
        async def decide(work: Work, found: Found) -> Mapping[str, Change]:
            scheduled = _in_states(found, {JobState.SCHEDULED})
            ended = _in_states(found, RETRIABLE)
            hastened = await work.run("hasten_jobs", ids=scheduled)
            retried = await work.run("retry_jobs", ids=ended)
            for row in retried:
                work.member_moved(row["group_id"], JobState(row["before"]), JobState.READY)
            rows = [*hastened, *retried]
            work.ready_queues |= {row["queue"] for row in rows}
            changes = {
                str(row["id"]): Change(
                    str(row["id"]), _state(found[str(row["id"])]), JobState(row["after"])
                )
                for row in rows
            }
            if from_start:
                await work.run("delete_steps", ids=list(changes))
            blocked = await work.run("find_blockers", ids=[i for i in ended if i not in changes])
            return changes | {
                str(row["id"]): _refused(str(row["id"]), found, blocked_by=str(row["blocked_by"]))
                for row in blocked
            }

        return await self._change(ids, decide)

    async def delete_jobs(self, ids: Sequence[str]) -> dict[str, Change]:
        async def decide(work: Work, found: Found) -> Mapping[str, Change]:
            gone = await work.run("delete_jobs", ids=_in_states(found, UNCLAIMED | FINAL))
            for row in gone:
                work.member_moved(row["group_id"], JobState(row["before"]), None)
                work.key_freed(row["unique_key"])
            await delete_blobs(work, {row["hash"] for row in gone if row["hash"] is not None})
            return {
                str(row["id"]): Change(str(row["id"]), JobState(row["before"]), None)
                for row in gone
            }

        return await self._change(ids, decide)

    async def edit_job(self, job_id: str, changes: Mapping[str, Any]) -> Change:
        async def decide(work: Work, found: Found) -> Mapping[str, Change]:
            [(known_id, _)] = found.items()
            columns = {k: v for k, v in changes.items() if k not in _STORED_BESIDE}
            edited = await work.run("edit_job", id=known_id, changes=as_json(columns))
            if not edited:
                return {}
            if changes.get("max_hold_seconds") is not None and not edited[0]["is_limited"]:
                raise InvalidJob(HOLD_WITHOUT_LIMITS)
            await _edit_payload(work, known_id, changes)
            work.ready_queues |= {row["queue"] for row in edited}
            [row] = edited
            return {known_id: Change(known_id, JobState(row["before"]), JobState(row["after"]))}

        return (await self._change([job_id], decide))[job_id]

    async def _change(self, ids: Sequence[str], decide: Decide) -> dict[str, Change]:
        """Change what is there and may be changed; say of the rest why it was not."""
        known = {given: str(uuid.UUID(given)) for given in ids if is_id(given)}

        async def do(work: Work) -> dict[str, Change]:
            found = await _lock(work, sorted(set(known.values())))
            changes = await decide(work, found) if found else {}
            return {given: _told(given, known.get(given), changes, found) for given in ids}

        return await self._transact(do) if known else {i: Change(i, None, None) for i in ids}


async def _lock(work: Work, ids: list[str]) -> dict[str, Row]:
    """The jobs that are there, locked. A live one that is just ending is waited for, and found
    among the finished ones by the second statement."""
    found = {str(row["id"]): row for row in await work.run("lock_jobs", ids=ids)}
    rest = [job_id for job_id in ids if job_id not in found]
    if rest:
        finished = await work.run("lock_finished", ids=rest)
        found |= {str(row["id"]): row for row in finished}
    return found


def _told(given: str, known: str | None, changes: Mapping[str, Change], found: Found) -> Change:
    if known is None or known not in found:
        return Change(given, None, None)
    return changes.get(known) or _refused(known, found)


def _refused(job_id: str, found: Found, blocked_by: str | None = None) -> Change:
    state = _state(found[job_id])
    return Change(job_id, state, state, is_refused=True, blocked_by=blocked_by)


def _moved(rows: Iterable[Row], found: Found) -> dict[str, Change]:
    ids = {str(row["id"]): row for row in rows}
    return {i: Change(i, _state(found[i]), JobState(row["state"])) for i, row in ids.items()}


def _state(row: Row) -> JobState:
    return JobState(row["state"])


def _in_states(found: Found, states: Iterable[JobState]) -> list[str]:
    wanted = set(states)
    return [job_id for job_id, row in found.items() if _state(row) in wanted]


async def _edit_payload(work: Work, job_id: str, changes: Mapping[str, Any]) -> None:
    if not any(name in changes for name in _STORED_BESIDE):
        return
    await work.run(
        "edit_payload",
        id=job_id,
        payload=_raw(changes.get("payload")),
        headers=_raw(changes.get("headers")),
        tags=list(changes.get("tags") or ()),
        **{f"has_{name}": name in changes for name in _STORED_BESIDE},
    )


def _raw(value: msgspec.Raw | None) -> str | None:
    return None if value is None else bytes(value).decode()


async def delete_blobs(work: Work, hashes: set[bytes]) -> None:
    if hashes:
        await work.run("lock_blobs", hashes=sorted(hashes))
        await work.run("delete_blobs", hashes=sorted(hashes))
