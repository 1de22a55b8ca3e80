"""The ends of runs: BullMQ's own scripts, which check the lock, many in one transaction.

What BullMQ cannot do in one script (follow-up jobs, a cancelled job that is kept) is sent in a
transaction that is carried out only if the locks are still what they were when they were looked at.
The ids of follow-ups are made from the job's, so that a hand-off that is repeated adds nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec
from redis.asyncio.client import Pipeline

from windrow.queue.bullmq import ended, rows
from windrow.queue.bullmq.connection import Fill, Links, now_ms
from windrow.queue.bullmq.inserting import add_job, check_row, read_answers
from windrow.queue.bullmq.looking import Found, read_places
from windrow.queue.job import Job, JobError, JobState
from windrow.queue.records import Finish, Inserted, JobRow, sorted_json

MOST_ERRORS: Final = 100
KEEP: Final = {"count": -1}
REMOVE: Final = {"count": 0}
# States of jobs that nobody has, and that are in BullMQ.
WAITS: Final = (JobState.READY, JobState.SCHEDULED)
# Of a job that is locked and ended in one transaction; BullMQ takes the lock away with the end.
HOME_LOCK_MS: Final = 5000

# The end of a job that waits, if one of its runs has written it in the rows beside the queue.
FindEnd = Callable[[Found], Awaitable[Finish | None]]


@dataclass(frozen=True, slots=True)
class Ended:
    lost: tuple[str, ...] = ()
    then: tuple[Inserted, ...] = ()
    ready_queues: frozenset[str] = frozenset()
    ended: tuple[str, ...] = ()
    conflicting: tuple[str, ...] = ()


@dataclass(slots=True)
class _End:
    """One finish with what is known of its job, and the attributes that the scripts ask for."""

    finish: Finish
    queue_name: str
    id: str
    fields: Mapping[str, str]
    opts: dict[str, Any]
    attempts: int
    attemptsMade: int  # noqa: N815
    expires: int | None = None
    then: tuple[JobRow, ...] = ()
    queue: Any = field(default_factory=lambda: _Settings())


@dataclass(frozen=True, slots=True)
class _Settings:
    opts: Mapping[str, Any] = field(default_factory=dict)


def check_ends(finishes: Sequence[Finish]) -> None:
    """Refuse, before anything is written, follow-ups that BullMQ cannot take."""
    for finish in finishes:
        for row in finish.then:
            check_row(row)


async def finish_jobs(links: Links, finishes: Sequence[Finish]) -> Ended:
    await links.know({row.queue for finish in finishes for row in finish.then})
    known, gone = await _read(links, finishes)
    lost = [finish.id for finish in gone]
    waiting = [end for end in known if not rows.has_ended(end.fields, end.finish.token)]
    alone = [end for end in waiting if end.then or _is_cancelled(end)]
    plain = [end for end in waiting if not (end.then or _is_cancelled(end))]
    accepted: list[_End] = []
    for end, is_accepted in zip(plain, await _end_plainly(links, plain), strict=True):
        if is_accepted:
            accepted.append(end)
        else:
            lost.append(end.finish.id)
    then: list[Inserted] = []
    for end in alone:
        inserted = await _end_guarded(links, end)
        if inserted is None:
            lost.append(end.finish.id)
        else:
            accepted.append(end)
            then += inserted
    return Ended(
        tuple(lost),
        tuple(then),
        frozenset(end.queue_name for end in accepted if end.finish.state is JobState.READY)
        | frozenset(row.queue for end in accepted for row in end.then),
        tuple(end.finish.id for end in accepted if end.finish.state is not JobState.READY),
        tuple(end.finish.id for end in known if _is_conflicting(end)),
    )


def _is_conflicting(end: _End) -> bool:
    """Whether this run has ended already, and in another way. Of cancelled jobs nothing is left
    there to compare."""
    finish, fields = end.finish, end.fields
    if not rows.has_ended(fields, finish.token):
        return False
    if "returnvalue" in fields:
        result, kept = finish.result or b"null", fields["returnvalue"].encode()
        is_same = result == kept or sorted_json(result) == sorted_json(kept)
        return finish.state is not JobState.COMPLETED or not is_same
    is_final = "finishedOn" in fields
    return finish.state is JobState.COMPLETED or is_final != (finish.state is JobState.FAILED)


async def _read(links: Links, finishes: Sequence[Finish]) -> tuple[list[_End], list[Finish]]:
    """What is known of each job; and those that are not there any more."""
    places = [(finish.token.rpartition(":")[0], rows.their_id(finish.id)[1]) for finish in finishes]
    retention = await read_retention(links)

    async def fill(pipe: Pipeline) -> None:
        for queue, job_id in places:
            pipe.hgetall(links.job_key(queue, job_id))
            ended.ask_for(pipe, links, queue, job_id)

    answers = await links.together(fill, transaction=False) if places else []
    known: list[_End] = []
    gone: list[Finish] = []
    step = 1 + len(ended.ENDS)
    for number, (finish, (queue, job_id)) in enumerate(zip(finishes, places, strict=True)):
        fields, *rest = answers[number * step : (number + 1) * step]
        if fields:
            known.append(_end(finish, queue, job_id, fields, retention.get(queue, {})))
            continue
        kept = ended.found(rest)
        if kept is None or kept.token != finish.token:
            gone.append(finish)
    return known, gone


def _end(
    finish: Finish,
    queue: str,
    job_id: str,
    fields: Mapping[str, str],
    retention: Mapping[str, int | None],
) -> _End:
    if finish.state is JobState.READY and fields.get(rows.STOP):
        reason = fields.get(rows.STOP_REASON) or "cancelled"
        finish = msgspec.structs.replace(
            finish, state=JobState(fields[rows.STOP]), error=JobError(None, "cancel", reason)
        )
    options = rows.options_of(fields)
    now = now_ms()
    return _End(
        finish=finish,
        queue_name=queue,
        id=job_id,
        fields=fields,
        opts=options,
        attempts=int(options.get("attempts") or 1),
        attemptsMade=int(fields.get("atm") or 0),
        expires=_expiry(finish.state, rows.extras_of(options), retention, now),
        then=tuple(
            msgspec.structs.replace(
                row, id=row.id if row.may_exist else follow_up_id(finish, fields, number)
            )
            for number, row in enumerate(finish.then)
        ),
    )


def _expiry(
    state: JobState, extras: rows.Extras, retention: Mapping[str, int | None], now: int
) -> int | None:
    if state not in rows.DEFAULT_SECONDS:
        return None
    seconds = extras.retention
    if seconds is None:
        seconds = retention.get(state.value)
    if seconds is None:
        seconds = rows.DEFAULT_SECONDS[state]
    kept = rows.retention_ms(seconds)
    return None if kept is None else now + kept


def follow_up_id(finish: Finish, fields: Mapping[str, str], number: int) -> str:
    """The id of a follow-up: the same whenever this end of this job is told again, and sorted among
    those made when the job was."""
    retries = fields.get(rows.RETRIES) or "0"
    told = f"{finish.id} {finish.state.value} {retries} {number}"
    return rows.dated_id(int(fields.get("timestamp") or 0), told)


def _is_cancelled(end: _End) -> bool:
    return end.finish.state is JobState.CANCELLED


async def _end_plainly(links: Links, ends: Sequence[_End]) -> list[bool]:
    """End runs that need one script each; whether each was accepted."""
    if not ends:
        return []
    places: list[int] = []  # of the scripts among the answers

    async def fill(pipe: Pipeline) -> None:
        for end in ends:
            places.append(len(pipe))
            await _fill_end(pipe, links, end)

    answers = await links.together(fill)
    return [_is_accepted(answers[place]) for place in places]


async def _end_guarded(
    links: Links, end: _End, *, waiting: Found | None = None
) -> list[Inserted] | None:
    """End one run with what is written beside it; None: the lock is not ours any more. `waiting`:
    nobody has the job, and this is how it was found."""
    jobs = [rows.to_bullmq(row, now_ms()) for row in end.then]
    job_key = links.job_key(end.queue_name, end.id)
    lock = links.lock_key(end.queue_name, end.id)
    unique = f"{links.scripts(end.queue_name).keys['de']}:{end.fields.get('deid')}"
    places: list[int] = []  # among the answers: of the first follow-up, and of the end

    async def look(pipe: Pipeline) -> Fill | None:
        if waiting is not None:
            now = await read_places(links, [(end.queue_name, end.id)])
            if not now or now[0].job.state not in WAITS or now[0].fields != waiting.fields:
                return None
        elif await pipe.get(lock) != end.finish.token:
            return None
        return partial(fill, holds_key=await pipe.get(unique) == end.id)

    async def fill(pipe: Pipeline, *, holds_key: bool) -> None:
        if waiting is not None:
            _activate(pipe, links, end)
        if holds_key:  # a follow-up may have the key of the job that makes place for it
            pipe.delete(unique)
        places[:] = [len(pipe)]
        for row, job in zip(end.then, jobs, strict=True):
            await add_job(pipe, links, row.queue, job)
        places.append(len(pipe))
        await _fill_end(pipe, links, end)

    watched = [lock, unique] if waiting is None else [lock, unique, job_key]
    answers = await links.guarded(watched, look)
    if answers is None or not _is_accepted(answers[places[1]]):
        return None
    return read_answers(end.then, jobs, answers[places[0] : places[1]])


def _activate(pipe: Pipeline, links: Links, end: _End) -> None:
    """Add to a transaction that ends the job: BullMQ takes ends of locked, active jobs only, and
    has no script that makes one of them active."""
    keys = links.scripts(end.queue_name).keys
    for name in ("wait", "paused"):
        pipe.lrem(keys[name], 0, end.id)
    for name in ("prioritized", "delayed"):
        pipe.zrem(keys[name], end.id)
    pipe.lpush(keys["active"], end.id)
    pipe.set(links.lock_key(end.queue_name, end.id), end.finish.token, px=HOME_LOCK_MS)


async def bring_home(links: Links, found: Found, finish: Finish) -> None:
    """Tell BullMQ the end of a job that waits there. If it does not wait any more nothing is done:
    whoever has claimed it tells."""
    token = f"{found.queue}:{secrets.token_hex(16)}"
    await links.know({row.queue for row in finish.then})
    retention = (await read_retention(links)).get(found.queue, {})
    told = msgspec.structs.replace(finish, token=token)
    end = _end(told, found.queue, found.bullmq_id, found.fields or {}, retention)
    await _end_guarded(links, end, waiting=found)


def _is_accepted(code: Any) -> bool:
    return not (isinstance(code, int) and code < 0)


async def _fill_end(pipe: Pipeline, links: Links, end: _End) -> None:
    """Add the end to a transaction, the script that checks the lock first."""
    finish = end.finish
    scripts = links.scripts(end.queue_name)
    fields = _fields(end)
    if finish.state is JobState.COMPLETED:
        fields |= _expires(end)
        keys, args = scripts.moveToFinishedArgs(
            end, None, "returnvalue", KEEP, "completed", finish.token, False, fields
        )
        args[3] = "null" if finish.result is None else finish.result.decode()
        await scripts.run(pipe, "moveToFinished", keys, args)
        _note_expiry(pipe, links, end)
        return
    if finish.state is JobState.FAILED:
        fields |= _expires(end)
        keys, args = scripts.moveToFinishedArgs(
            end, _message(finish), "failedReason", KEEP, "failed", finish.token, False, fields
        )
        await scripts.run(pipe, "moveToFinished", keys, args)
        _note_expiry(pipe, links, end)
        return
    if finish.state is JobState.CANCELLED:
        keys, args = scripts.moveToFinishedArgs(
            end, _message(finish), "failedReason", REMOVE, "failed", finish.token, False
        )
        await scripts.run(pipe, "moveToFinished", keys, args)
        ended.keep(pipe, links, _kept(end))
        return
    delay = round(finish.delay * 1000)
    if finish.uses_attempt and not delay:
        keys, args = scripts.retryJobArgs(end.id, False, finish.token, {"fieldsToUpdate": fields})
        await scripts.run(pipe, "retryJob", keys, args)
        return
    options = {"fieldsToUpdate": fields, "skipAttempt": not finish.uses_attempt}
    keys, args = scripts.moveToDelayedArgs(end.id, now_ms(), finish.token, delay, options)
    await scripts.run(pipe, "moveToDelayed", keys, args)


def _expires(end: _End) -> dict[str, str]:
    return {rows.EXPIRES: "" if end.expires is None else str(end.expires)}


def _note_expiry(pipe: Pipeline, links: Links, end: _End) -> None:
    if end.expires is not None:
        pipe.zadd(links.key("expiring"), {f"{end.queue_name}:{end.id}": end.expires})


def _fields(end: _End) -> dict[str, str]:
    """Fields that are set with the end, if it is accepted."""
    fields = {rows.TOKEN: rows.ended_run(end.fields, end.finish.token)}
    if end.finish.state is JobState.COMPLETED:
        fields[rows.ATTEMPTS] = str(end.attemptsMade + end.finish.uses_attempt)
    if end.finish.result_is_cleaned:
        fields[rows.CLEANED] = "1"
    if end.finish.error is None:
        return fields
    errors = [*rows.errors_of(end.fields), _dated(end.finish.error)][-MOST_ERRORS:]
    traces = [error.traceback or error.message for error in errors]
    return fields | {
        rows.ERRORS: msgspec.json.encode(errors).decode(),
        "failedReason": _message(end.finish),
        "stacktrace": msgspec.json.encode(traces).decode(),
    }


def _message(finish: Finish) -> str:
    return "" if finish.error is None else finish.error.message


def _dated(error: JobError) -> JobError:
    return error if error.at else msgspec.structs.replace(error, at=rows.from_ms(now_ms()))


def _kept(end: _End) -> ended.Kept:
    """A job that is cancelled by the end of its run, as it is kept."""
    job = rows.to_job(end.queue_name, end.id, end.fields, JobState.ACTIVE)
    job.attempts += end.finish.uses_attempt
    job.errors = [*job.errors, _dated(end.finish.error or JobError(None, "cancel", "cancelled"))]
    return cancelled(job, end.fields, end.expires, end.finish.token)


def cancelled(
    job: Job, fields: Mapping[str, str], expires: int | None, token: str | None = None
) -> ended.Kept:
    job.state = JobState.CANCELLED
    job.error = rows.one_line(job.errors[-1].message)
    job.finished_at = rows.from_ms(now_ms())
    job.expires_at = None if expires is None else rows.from_ms(expires)
    return ended.pack(job, rows.steps_of(fields), token, int(fields.get(rows.RETRIES) or 0))


def expiry_of_cancelled(
    fields: Mapping[str, str], retention: Mapping[str, int | None]
) -> int | None:
    extras = rows.extras_of(rows.options_of(fields))
    return _expiry(JobState.CANCELLED, extras, retention, now_ms())


async def read_retention(links: Links) -> dict[str, dict[str, int | None]]:
    """What was set for queues, by queue and state."""

    async def fill(pipe: Pipeline) -> None:
        pipe.hgetall(links.key("retention"))

    [kept] = await links.together(fill, transaction=False)
    return {name: msgspec.json.decode(text) for name, text in kept.items()}
