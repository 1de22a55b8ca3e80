"""The end of runs.

Most runs complete, belong to no group and hand nothing on: one statement ends them all, and claims
the next ones too. Everything else is done in a transaction of several statements.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from operator import attrgetter
from typing import Any, Final

import msgspec

from windrow.db.postgres.connections import USUAL_PLANNING, Connections
from windrow.db.postgres.failures import wrapped_errors
from windrow.db.transactions import AsyncpgExecutor
from windrow.errors import ConfigError, LeaseLost, StoreUnavailable
from windrow.ids import are_plain_ids, is_id
from windrow.queue.job import Job, JobError, JobState
from windrow.queue.postgres.claiming import place_of
from windrow.queue.postgres.inserting import lock_ahead
from windrow.queue.postgres.rows import Row, columns, short_error
from windrow.queue.postgres.rows import sql as statement
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import NO_RESULT, Ending, Result, Work
from windrow.queue.records import Claim, Finish, Finished, Inserted, is_same_end
from windrow.queue.store import JobTransaction

_id_of: Final = attrgetter("id")
BLOB_FROM: Final = 1024 * 1024  # bytes of a result; larger ones are kept by their hash


class PostgresTransaction:
    """A transaction on a connection of its own, until `finish_jobs` or `rollback` ends it."""

    def __init__(self, database: Connections, connection: Any, transaction: Any) -> None:
        self._database = database
        self._connection = connection
        self._transaction = transaction

    @classmethod
    async def begin(cls, database: Connections) -> PostgresTransaction:
        connection = await database.lend()
        try:
            with wrapped_errors():
                transaction = connection.transaction()
                await transaction.start()
                await connection.execute(USUAL_PLANNING)
        except BaseException:
            await database.take_back(connection)
            raise
        return cls(database, connection, transaction)

    @property
    def executor(self) -> AsyncpgExecutor:
        self._require_open()
        return AsyncpgExecutor(self._connection)

    async def execute(self, sql: str, *args: Any) -> None:
        self._require_open()
        with wrapped_errors():
            await self._connection.execute(sql, *args)

    async def note(self, group_id: str, subject: str, texts: Sequence[str]) -> None:
        values = {"group_id": group_id, "subject": subject, "texts": list(texts)}
        with wrapped_errors():
            await self.executor.fetch(statement("add_group_notes"), values)

    async def fetch(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        self._require_open()
        with wrapped_errors():
            return [dict(row) for row in await self._connection.fetch(sql, *args)]

    async def commit(self) -> None:
        self._require_open()
        try:
            with wrapped_errors():
                await self._transaction.commit()
        finally:
            await self._database.take_back(self._connection)

    async def rollback(self) -> None:
        """Undo everything. Rolling back what has ended already changes nothing."""
        if not self._is_open:
            return
        try:
            # When the connection is lost the server rolls back by itself.
            with suppress(StoreUnavailable), wrapped_errors():
                await self._transaction.rollback()
        finally:
            await self._database.take_back(self._connection)

    @property
    def _is_open(self) -> bool:
        return self._database.is_lent(self._connection)

    def _require_open(self) -> None:
        if not self._is_open:
            raise ConfigError("the job's transaction has ended already")


@dataclass(slots=True)
class Ends:
    """What became of the ends that were reported."""

    lost: tuple[str, ...] = ()
    repeated: frozenset[str] = frozenset()  # had been written before …
    conflicting: tuple[str, ...] = ()  # … or had ended in another way
    then: list[Inserted] = field(default_factory=list)


class Finishing(Verbs):
    async def begin(self) -> JobTransaction:
        return await PostgresTransaction.begin(self._database)

    async def save_work(self, job_id: str, token: str, tx: JobTransaction) -> None:
        own = own_transaction(tx)
        try:
            with wrapped_errors():
                held = is_id(job_id) and is_id(token)
                if held:
                    values = {"id": job_id, "token": token}
                    held = bool(await own.executor.fetch(statement("hold_run"), values))
            if not held:
                raise LeaseLost(job_id)
            await own.commit()
        except BaseException:
            await own.rollback()
            raise

    async def finish_jobs(
        self,
        finishes: Sequence[Finish],
        *,
        claim: Claim | None = None,
        tx: JobTransaction | None = None,
    ) -> Finished:
        """Write the ends of runs, in one of two ways, and claim the next jobs.

        | ends                                            | way             | statement          |
        |-------------------------------------------------|-----------------|--------------------|
        | completed, outside groups, without follow-ups   | `_finish_plain` | complete_and_claim |
        | the same, if there is nothing to claim          | `_finish_plain` | complete_jobs      |
        | any others; passed over; or in a job's tx       | `end_runs`      | end_jobs           |
        """
        if tx is not None:
            return await self._finish_in(tx, finishes, claim)
        if not finishes:
            return Finished(claimed=tuple(await self._claim(claim)))
        if len({finish.id.lower() for finish in finishes}) < len(finishes):
            return await self._finish_in_turns(finishes, claim)
        if all(map(self._is_plain, finishes)):
            tokens = list(dict.fromkeys([finish.token for finish in finishes]))
            if are_plain_ids([finish.id for finish in finishes] + tokens):
                return await self._finish_plain(finishes, tokens, claim)
        return await self._finish_all(finishes, claim)

    async def _finish_in_turns(self, finishes: Sequence[Finish], claim: Claim | None) -> Finished:
        """Several runs of one job, of which one at most still has it: statements go by ids, so each
        of them is judged in a turn of its own."""
        *before, last = _turns(finishes)
        turns = [await self.finish_jobs(some) for some in before]
        turns.append(await self.finish_jobs(last, claim=claim))
        return Finished(
            lost=tuple(job_id for one in turns for job_id in one.lost),
            conflicting=tuple(job_id for one in turns for job_id in one.conflicting),
            claimed=turns[-1].claimed,
            then=tuple(inserted for one in turns for inserted in one.then),
        )

    async def _claim(self, claim: Claim | None) -> list[Job]:
        if claim is None:
            return []
        return await self._claimer.claim(self._database, claim, self.clock.now())

    def _is_plain(self, finish: Finish) -> bool:
        """Whether one statement can write this end, as far as is known here."""
        return (
            finish.state is JobState.COMPLETED
            and not finish.then
            and finish.error is None
            and not finish.uses_attempt
            and not _has_blob(finish)
            and not self._claimer.is_bound(finish.id)
        )

    async def _finish_plain(
        self, finishes: Sequence[Finish], tokens: Sequence[str], claim: Claim | None
    ) -> Finished:
        finishes = sorted(finishes, key=_id_of)  # the order rows are locked in
        results = [None if f.result is None else f.result.decode() for f in finishes]
        numbers = {token: number for number, token in enumerate(tokens, 1)}
        values = {
            # As text: the driver looks at each element of an array to see if it is one itself.
            "ids": f"{{{','.join([finish.id for finish in finishes])}}}",
            # Few, and slow to read for the server: each once.
            "tokens": f"{{{','.join(tokens)}}}",
            "holders": [numbers[f.token] for f in finishes] if len(tokens) > 1 else None,
            "results": results if any(results) else None,
            "are_cleaned": [f.result_is_cleaned for f in finishes] if any(results) else None,
        }
        if claim is None:
            claimed: list[Job] = []
            done = await self._complete(values)
        else:
            done, claimed = await self._complete_and_claim(finishes, values, claim)
        rest = _missing(finishes, done)
        if not rest:
            return Finished(claimed=tuple(claimed))
        # Stale ones, repeated ones, or jobs that became the root of a group elsewhere.
        finished = await self._finish_all(rest, None)
        return Finished(finished.lost, tuple(claimed), finished.then, finished.conflicting)

    async def _complete(self, values: dict[str, Any]) -> Sequence[Any]:
        rows = await self._run("complete_jobs", **values)
        done = [row["id"] for row in rows]
        self._tell(rows[0]["ready_queues"] if rows else (), done)
        return done

    async def _complete_and_claim(
        self, finishes: Sequence[Finish], values: dict[str, Any], claim: Claim
    ) -> tuple[Sequence[Any], list[Job]]:
        look = await self._claimer.look(
            self._database, claim, claim.limit, self.clock.now(), is_busy=True
        )
        if look is None:
            return await self._complete(values), []
        try:
            rows = await self._run(
                "complete_and_claim", **values, **look.values(claim), ends=len(finishes)
            )
        except BaseException:
            self._claimer.forget()
            raise
        summary = rows.pop()
        jobs = self._claimer.note(rows, look, claim)
        done = summary["done_ids"]
        if done is None:
            done = [finish.id for finish in finishes]
        self._tell(summary["ready_queues"], done)
        if look.may_have_more(len(jobs)):
            rest = msgspec.structs.replace(claim, limit=claim.limit - len(jobs))
            jobs = sorted(jobs + await self._claim(rest), key=place_of)
        return done, jobs

    async def _finish_all(self, finishes: Sequence[Finish], claim: Claim | None) -> Finished:
        claimed: list[Job] = []

        async def do(work: Work) -> Ends:
            ends = await end_runs(work, finishes)
            await work.settle()
            if claim is not None:
                # Last: a claim waits for nobody, but others wait for what it locked.
                claimed[:] = await self._claimer.claim(work.executor, claim, work.now)
            return ends

        ends = await self._transact(do)
        self._claimer.unbind(finish.id for finish in finishes)
        return Finished(ends.lost, tuple(claimed), tuple(ends.then), ends.conflicting)

    async def _finish_in(
        self, tx: JobTransaction, finishes: Sequence[Finish], claim: Claim | None
    ) -> Finished:
        """Finish in the job's own transaction. Nothing of it is kept if the end is refused, or was
        written before: then its statements were, too."""
        if len(finishes) != 1:
            raise ConfigError("a transaction is for exactly one finish")
        tx = own_transaction(tx)
        work = Work(tx.executor, self.clock.now(), is_patient=True)
        try:
            with wrapped_errors():
                ends = await end_runs(work, finishes)
                await work.settle()
            if ends.lost or ends.repeated or ends.conflicting:
                await tx.rollback()
            else:
                await tx.commit()
        except BaseException:
            await tx.rollback()
            raise
        await self._after_commit(work)
        self._claimer.unbind(finish.id for finish in finishes)
        claimed = tuple(await self._claim(claim))
        return Finished(ends.lost, claimed, tuple(ends.then), ends.conflicting)


def _turns(finishes: Sequence[Finish]) -> list[list[Finish]]:
    """The finishes, parted so that none has two of one job; those of a job in their order."""
    turns: list[list[Finish]] = []
    seen: Counter[str] = Counter()
    for finish in finishes:
        turn = seen[finish.id.lower()]
        seen[finish.id.lower()] += 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(finish)
    return turns


def own_transaction(tx: JobTransaction) -> PostgresTransaction:
    if not isinstance(tx, PostgresTransaction):
        raise ConfigError("tx is a transaction from begin() of this store")
    return tx


def _missing(finishes: Sequence[Finish], done: Sequence[Any]) -> list[Finish]:
    if len(done) == len(finishes):
        return []
    ids = set(map(str, done))
    return [finish for finish in finishes if finish.id.lower() not in ids]


async def end_runs(work: Work, finishes: Sequence[Finish]) -> Ends:
    """Write the ends of runs, each if its token is good. What follows is left to be settled."""
    given = {f.id.lower(): f for f in finishes if is_id(f.id) and is_id(f.token)}
    await _lock_rows(work, given)
    results = await _keep_blobs(work, given.values())
    accepted = await _wait(work, given.values(), results)
    accepted |= await _end(work, [f for i, f in given.items() if i not in accepted], results)
    accepted |= await _return(work, given.values())
    repeated, conflicting = await _find_repeated(
        work, [f for i, f in given.items() if i not in accepted]
    )
    good = [finish for job_id, finish in given.items() if job_id in accepted]
    await work.add_errors([(f.id, f.error) for f in good if f.error is not None])
    if good:
        await work.run("delete_leases", tokens=sorted({finish.token for finish in good}))
    known = accepted | repeated | conflicting
    return Ends(
        lost=tuple(f.id for f in finishes if f.id.lower() not in known),
        repeated=repeated,
        conflicting=tuple(f.id for f in finishes if f.id.lower() in conflicting),
        then=await _hand_on(work, finishes, accepted, repeated),
    )


async def _lock_rows(work: Work, finishes: Mapping[str, Finish]) -> None:
    """Lock the runs, and in the same statement what their follow-ups replace. A transaction that
    cannot be retried locks the roots of their groups too: it would wait for these when it has
    locked the groups, which whoever ends a root locks after it."""
    then = [row for finish in finishes.values() for row in finish.then]
    ids = {*finishes, *await lock_ahead(work.executor, then, leaving=finishes)}
    if work.is_patient:
        ids.update(str(row["id"]) for row in await work.run("find_roots", ids=sorted(finishes)))
    if len(ids) > 1 or any(map(_has_blob, finishes.values())):
        await work.run("lock_jobs", ids=sorted(ids))


def _has_blob(finish: Finish) -> bool:
    return finish.result is not None and len(finish.result) > BLOB_FROM


async def _keep_blobs(work: Work, finishes: Iterable[Finish]) -> dict[str, Result]:
    """The results as they are stored with the jobs; large ones are kept by their hash. That of a
    run which is refused afterwards stays behind until blobs are cleaned up."""
    results: dict[str, Result] = {}
    blobs: dict[bytes, bytes] = {}
    for finish in finishes:
        body = finish.result
        if body is None:
            results[finish.id] = NO_RESULT
        elif not _has_blob(finish):
            results[finish.id] = Result(body.decode(), None, finish.result_is_cleaned)
        else:
            digest = hashlib.sha256(body).digest()
            blobs[digest] = body
            results[finish.id] = Result(None, digest, finish.result_is_cleaned)
    if blobs:
        await work.run("add_blobs", hashes=list(blobs), bodies=list(blobs.values()))
    return results


async def _wait(
    work: Work, finishes: Iterable[Finish], results: Mapping[str, Result]
) -> frozenset[str]:
    """Completed roots wait for their groups."""
    completed = [f for f in finishes if f.state is JobState.COMPLETED]
    if not completed:
        return frozenset()
    ids, tokens, uses, bodies, hashes, are_cleaned = columns(
        [(f.id, f.token, f.uses_attempt, *astuple(results[f.id])) for f in completed], 6
    )
    waiting = await work.run(
        "wait_for_group",
        ids=ids,
        tokens=tokens,
        uses_attempts=uses,
        results=bodies,
        hashes=hashes,
        are_cleaned=are_cleaned,
    )
    for row in waiting:
        work.root_waits(row["id"], row["root_of"])
    return frozenset(str(row["id"]) for row in waiting)


async def _end(
    work: Work, finishes: Iterable[Finish], results: Mapping[str, Result]
) -> frozenset[str]:
    endings = [
        Ending(f.id, f.state, f.token, short_error(f.error), f.uses_attempt, results[f.id])
        for f in finishes
        if f.state is not JobState.READY
    ]
    return frozenset(await work.end_jobs(endings))


async def _return(work: Work, finishes: Iterable[Finish]) -> frozenset[str]:
    """Runs that go back to wait, or end because they may not."""
    back = sorted((f for f in finishes if f.state is JobState.READY), key=lambda f: f.id)
    if not back:
        return frozenset()
    ids, tokens, delays, errors, uses = columns(
        [(f.id, f.token, f.delay, short_error(f.error), f.uses_attempt) for f in back], 5
    )
    rows = await work.run(
        "return_jobs", ids=ids, tokens=tokens, delays=delays, errors=errors, uses_attempts=uses
    )
    work.ready_queues |= {row["queue"] for row in rows if row["state"] == JobState.READY}
    uses_attempt = {f.id.lower(): f.uses_attempt for f in back}
    stopped = {str(row["id"]): row for row in rows if row["state"] is None}
    await end_stopped(work, stopped, uses_attempt)
    return frozenset(str(row["id"]) for row in rows)


async def end_stopped(
    work: Work, stopped: dict[str, Row], uses_attempt: dict[str, bool] | None = None
) -> None:
    """End jobs that may not wait again: asked to end, or with a follower in their place."""
    endings = [
        Ending(
            job_id,
            JobState.CANCELLED,
            error=None if row["stop_as"] == "cancelled" else _replaced_by(row),
            uses_attempt=(uses_attempt or {}).get(job_id, False),
        )
        for job_id, row in stopped.items()
    ]
    ended = await work.end_jobs(endings)
    await work.add_errors(
        [(i, JobError(None, "cancel", row["error"] or "cancelled")) for i, row in ended.items()]
    )


def _replaced_by(row: Row) -> str:
    return f"replaced by job {row['follower_id']}"


async def _find_repeated(
    work: Work, finishes: Sequence[Finish]
) -> tuple[frozenset[str], frozenset[str]]:
    """Ends that were written before, and whose answer was lost on the way; and those of runs that
    had ended in another way."""
    if not finishes:
        return frozenset(), frozenset()
    found = await work.run(
        "find_applied", ids=[f.id for f in finishes], tokens=[f.token for f in finishes]
    )
    rows = {str(row["id"]): row for row in found}
    given = {f.id.lower(): f for f in finishes}
    repeated = frozenset(i for i, row in rows.items() if _is_same(given[i], row))
    return repeated, frozenset(rows) - repeated


def _is_same(finish: Finish, row: Row) -> bool:
    result = None if row["result"] is None else row["result"].encode()
    return is_same_end(finish, row["state"], result, row["result_hash"])


async def _hand_on(
    work: Work, finishes: Sequence[Finish], accepted: frozenset[str], repeated: frozenset[str]
) -> list[Inserted]:
    """Insert the follow-ups of accepted ends; those of repeated ones are there already."""
    new = [row for f in finishes if f.id.lower() in accepted for row in f.then]
    inserted = iter(await work.insert_follow_ups(new) if new else ())
    outcomes = []
    for finish in finishes:
        if finish.id.lower() in accepted:
            outcomes += [next(inserted) for _ in finish.then]
        elif finish.id.lower() in repeated:
            outcomes += [Inserted(row.id, "existing") for row in finish.then]
    return outcomes
