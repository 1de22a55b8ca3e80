"""One transaction's work: its statements, its time, and what it owes before it commits.

Verbs note what follows from their changes while they go: members that came to or left a group,
keys that were freed, groups whose root ended badly. `settle` pays it all, in a loop, because the
end of a group may end its root, which may be a member of another group.

Lock order, everywhere: job rows in the order of their ids, then unique keys, then groups, the
newest first. So the end of an inner group, which goes on to the one around it, keeps to the order.
What is needed out of it, as the root of a group that ends, is not waited for: it is seized, or all
is done again from the start. docs/decisions/0012-lock-order.md has the whole of it.
New jobs with a group key, for which nobody waits, are inserted when their group is locked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from datetime import datetime
from typing import Any, Final

from windrow.db.statements import parse_statement
from windrow.db.transactions import Executor
from windrow.queue.job import FINAL, UNCLAIMED, JobError, JobState
from windrow.queue.postgres.inserting import Insertion, insert_rows
from windrow.queue.postgres.keying import (
    Part,
    find_repeated,
    find_surplus,
    groups_of,
    insert_keyed,
    put_together,
    rooms_of,
    split,
)
from windrow.queue.postgres.rows import Row, as_json, as_text, columns, short_error, sql
from windrow.queue.records import Inserted, JobRow, read_row

ACTIVE_ONLY: Final = (JobState.ACTIVE,)
NOT_RUNNING: Final = (*UNCLAIMED, JobState.WAITING)
_ALL: Final = 2**31 - 1
_SAVE: Final = parse_statement("save", "SAVEPOINT windrow_follow_ups")
_UNDO: Final = parse_statement("undo", "ROLLBACK TO SAVEPOINT windrow_follow_ups")


@dataclass(frozen=True, slots=True)
class Result:
    """What a run gave back: as JSON, or by the hash of its blob."""

    json: str | None = None
    hash: bytes | None = None
    is_cleaned: bool = False


NO_RESULT: Final = Result()


@dataclass(frozen=True, slots=True)
class Ending:
    """The final state a job is to go to. Without a token, whoever holds it."""

    id: str
    state: JobState
    token: str | None = None
    error: str | None = None
    uses_attempt: bool = False
    result: Result = NO_RESULT


@dataclass(slots=True)
class Delta:
    """What happened to a group."""

    id: str
    members: int = 0
    pending: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    is_closed: bool = False
    cancel_reason: str | None = None

    def moved(self, before: JobState | None, after: JobState | None) -> None:
        """A member went from one state to another; None: it was not there, is not there."""
        for state, step in ((before, -1), (after, 1)):
            if state in FINAL:
                setattr(self, state, getattr(self, state) + step)
            elif state is not None:
                self.pending += step


class Work:
    def __init__(
        self, executor: Executor, now: datetime | None, *, is_patient: bool = False
    ) -> None:
        """`is_patient`: what is needed out of the lock order is waited for, because the transaction
        cannot be done again, or has been often enough."""
        self.now = now
        self.executor = executor
        self.ready_queues: set[str] = set()  # where jobs became claimable, behind a claim's floor
        self.ended: set[str] = set()
        self.followed_keys: set[str] = set()  # that have a new follower
        self._deltas: dict[str, Delta] = {}
        self._freed_keys: set[str] = set()
        self.is_patient = is_patient
        self._orphaned: dict[str, str] = {}  # groups whose root ended badly, and why
        self._falling: dict[str, str] = {}  # groups whose members are cancelled, and why
        self._cancelled: set[str] = set()  # members of these that were cancelled or told to stop
        self._waiting: dict[str, str] = {}  # roots that wait now, and their groups
        self._held: set[str] = set()  # groups that are locked

    async def run(self, name: str, /, **values: Any) -> Sequence[Row]:
        """Run a statement; `now` is given to each that asks for it."""
        return await self.executor.fetch(sql(name), {"now": self.now, **values})

    def group(self, group_id: Any) -> Delta:
        key = str(group_id)
        return self._deltas.setdefault(key, Delta(key))

    def member_moved(self, group_id: Any, before: JobState | None, after: JobState | None) -> None:
        if group_id is not None:
            self.group(group_id).moved(before, after)

    def members_joined(self, counts: Mapping[str, int]) -> None:
        for group_id, count in counts.items():
            delta = self.group(group_id)
            delta.members += count
            delta.pending += count

    def groups_locked(self, ids: Iterable[str]) -> None:
        self._held.update(ids)

    def key_freed(self, unique_key: str | None) -> None:
        if unique_key is not None:
            self._freed_keys.add(unique_key)

    def root_waits(self, root: Any, group_id: Any) -> None:
        self._waiting[str(root)] = str(group_id)

    async def end_jobs(
        self, endings: Sequence[Ending], from_states: Iterable[JobState] = ACTIVE_ONLY
    ) -> dict[str, Row]:
        """Move jobs to their final states; those that were in one of `from_states`, by id."""
        if not endings:
            return {}
        ordered = sorted(endings, key=lambda ending: ending.id)
        given = [
            (e.id, e.token, e.state, e.error, e.uses_attempt, *astuple(e.result)) for e in ordered
        ]
        ids, tokens, states, errors, uses, results, hashes, are_cleaned = columns(given, 8)
        ended = await self.run(
            "end_jobs",
            ids=ids,
            tokens=tokens,
            states=states,
            errors=errors,
            uses_attempts=uses,
            results=results,
            hashes=hashes,
            are_cleaned=are_cleaned,
            from_states=list(from_states),
        )
        for row in ended:
            after = JobState(row["after"])
            self.member_moved(row["group_id"], JobState(row["before"]), after)
            self.key_freed(None if row["is_follower"] else row["unique_key"])
            if row["root_of"] is not None and after is not JobState.COMPLETED:
                self._orphaned[str(row["root_of"])] = row["error"] or f"its root job is {after}"
        by_id = {str(row["id"]): row for row in ended}
        self.ended.update(by_id)
        return by_id

    async def add_errors(self, errors: Sequence[tuple[str, JobError]]) -> None:
        if errors:
            ids, times, reasons, types, messages, tracebacks = columns(
                [(i, e.at, e.reason, e.type, e.message, e.traceback) for i, e in errors], 6
            )
            await self.run(
                "add_errors",
                ids=ids,
                times=times,
                reasons=reasons,
                types=types,
                messages=messages,
                tracebacks=tracebacks,
            )

    async def cancel_jobs(self, ids: Iterable[str], reason: str) -> dict[str, Row]:
        """End those that do not run, ask the others to stop; the ended ones by id. The groups of
        their roots are cancelled in the same transaction, whether the root runs or not."""
        error = JobError(None, "cancel", reason)
        endings = [Ending(i, JobState.CANCELLED, error=short_error(error)) for i in ids]
        ended = await self.end_jobs(endings, NOT_RUNNING)
        await self.add_errors([(job_id, error) for job_id in ended])
        running = [e.id for e in endings if e.id not in ended]
        if running:
            told = await self.run("tell_jobs", ids=running, stop_as="cancelled", reason=reason)
            for row in told:
                if row["root_of"] is not None:
                    self.cancel_group(str(row["root_of"]), reason)
        return ended

    async def settle(self) -> None:
        """Do all that follows. Called once, before the transaction commits."""
        while self._freed_keys or self._orphaned or self._groups_to_settle():
            await self._hand_on_places()
            await self._settle_groups()

    def _groups_to_settle(self) -> set[str]:
        return {*self._deltas, *self._falling, *self._waiting.values()}

    async def _hand_on_places(self) -> None:
        """What takes no lock on groups, and is to be done before keys are taken by new jobs."""
        await self._end_waiting_roots(await self._find_groups(self._waiting.values()))
        while self._freed_keys or self._orphaned:
            await self._promote_followers()
            await self._cancel_orphaned()

    async def _promote_followers(self) -> None:
        if not self._freed_keys:
            return
        keys, self._freed_keys = sorted(self._freed_keys), set()
        for row in await self.run("promote_followers", keys=keys, limit=_ALL):
            self.ready_queues.add(row["queue"])

    def cancel_group(self, group_id: str, reason: str) -> None:
        self._orphaned.setdefault(group_id, reason)

    async def _cancel_orphaned(self) -> None:
        orphaned, self._orphaned = self._orphaned, {}
        running = await self._find_groups(orphaned)
        new = {i: orphaned[i] for i, row in running.items() if i not in self._falling}
        self._falling |= {i: reason for i, reason in new.items() if _is_running(running[i])}
        await self._cancel_members({i: r for i, r in new.items() if i in self._falling})

    async def _cancel_members(self, reasons: Mapping[str, str]) -> None:
        """Cancel those members of groups that are there, if it was not done before."""
        members = await self.run("find_members", ids=list(reasons)) if reasons else ()
        found = {str(row["id"]): reasons[str(row["group_id"])] for row in members}
        found = {i: reason for i, reason in found.items() if i not in self._cancelled}
        await self._lock_jobs(found)
        for reason in sorted(set(found.values())):
            await self.cancel_jobs([i for i, why in found.items() if why == reason], reason)
        self._cancelled.update(found)

    async def _lock_jobs(self, ids: Iterable[str]) -> None:
        """Lock jobs; without waiting if that is against the order."""
        is_late = bool(self._held) and not self.is_patient
        wanted = sorted(ids)
        if wanted:
            await self.run("seize_jobs" if is_late else "lock_jobs", ids=wanted)

    async def lock_groups(self, ids: Iterable[str]) -> dict[str, Row]:
        """Lock groups, with all that are to be settled; without waiting if others are locked that
        come after them in the order."""
        wanted = {*ids, *self._groups_to_settle()}
        new = wanted - self._held
        is_late = bool(self._held and new) and max(new) > min(self._held) and not self.is_patient
        self._held |= wanted
        name = "seize_groups" if is_late else "lock_groups"
        return {str(row["id"]): row for row in await self.run(name, ids=as_json(sorted(wanted)))}

    async def _find_groups(self, ids: Iterable[str]) -> dict[str, Row]:
        wanted = sorted(set(ids))
        found = await self.run("find_groups", ids=wanted) if wanted else ()
        return {str(row["id"]): row for row in found}

    async def _end_waiting_roots(self, groups: Mapping[str, Row]) -> None:
        """Roots that began to wait for a group that had ended before."""
        over = [
            root
            for root, group_id in self._waiting.items()
            if group_id not in groups or groups[group_id]["state"] != "active"
        ]
        for root in over:
            del self._waiting[root]
        await self.end_jobs([Ending(i, JobState.COMPLETED) for i in over], (JobState.WAITING,))

    async def _settle_groups(self) -> None:
        if self._falling or self._waiting:
            await self._settle_locked()
        if not self._deltas:
            return
        if self._held:
            await self.lock_groups(())
        deltas, self._deltas = self._deltas, {}
        self._held.update(deltas)
        ended = await settle_groups(self.executor, deltas.values(), self.now)
        await self._end_roots([row for row in ended if row["root"] is not None])
        for row in ended:
            if row["finish_job"] is not None:
                await self._insert_finish_job(row["finish_job"])

    async def _settle_locked(self) -> None:
        """What is to be decided under a group's lock. A root that waits: either we see the group's
        end here, or the one who ends it sees the root waiting. Members that came to a group while
        it was being cancelled are seen now, and after that no more can come."""
        groups = await self.lock_groups(())
        await self._end_waiting_roots(groups)
        self._waiting.clear()
        falling, self._falling = self._falling, {}
        running = {i: r for i, r in falling.items() if i in groups and _is_running(groups[i])}
        for group_id, reason in running.items():
            self.group(group_id).cancel_reason = reason
        await self._cancel_members(running)

    async def _end_roots(self, groups: Sequence[Row]) -> None:
        roots = [
            Ending(str(row["root"]), JobState(row["state"]), error=row["cancel_reason"])
            for row in groups
        ]
        await self._lock_jobs(ending.id for ending in roots)
        await self.end_jobs(roots, (JobState.WAITING,))

    async def _insert_finish_job(self, text: str) -> None:
        await self.insert_follow_ups([read_row(text)])

    async def insert_follow_ups(self, rows: Sequence[JobRow]) -> list[Inserted]:
        """Insert rows that must not fail the transaction: those for groups that take no more are
        dropped. Their members are counted when the work is settled."""
        # Who waits for a freed key goes before a newcomer, and a group that goes down with its root
        # takes none.
        await self._hand_on_places()
        insertion = await self._insert_where_open(rows)
        self.members_joined(insertion.joined)
        self.ready_queues |= insertion.ready_queues
        self.followed_keys |= insertion.followed_keys
        return insertion.all_outcomes()

    async def _insert_where_open(self, rows: Sequence[JobRow]) -> Insertion:
        """Insert the rows whose groups take them. A unique key may have to be waited for, so groups
        are locked after that; if one is closed then, or too full, it is done again."""
        plain, keyed = split(rows)
        repeated, late = await find_repeated(self.executor, keyed)
        closed: set[str | None] = {*self._falling}
        left_out: frozenset[str] = frozenset()
        while True:
            kept = [row for row in plain if row.group not in closed and row.id not in left_out]
            wanted = groups_of(kept)
            before = set(self._held)
            if wanted:
                await self.executor.fetch(_SAVE, {})
            insertion = await insert_rows(
                self.executor,
                kept,
                self.now,
                is_lenient=True,
                is_late=True,
                is_patient=self.is_patient,
            )
            taking = await self._lock_open(wanted | groups_of(late))
            rooms = rooms_of(taking.values(), self._joined_with(insertion))
            surplus = find_surplus(kept, insertion, rooms)
            if wanted <= taking.keys() and not surplus:
                break
            await self.executor.fetch(_UNDO, {})
            self._held = before
            closed |= wanted - taking.keys()
            left_out |= surplus
        if len(kept) == len(rows):
            return insertion
        late = [row for row in late if row.group in taking]
        return put_together(
            rows,
            [
                Part(kept, insertion),
                Part.of([row for row in plain if row.id in left_out], "left_out"),
                repeated,
                Part(late, await insert_keyed(self.executor, late, rooms, self.now)),
            ],
            others="dropped",
        )

    def _joined_with(self, insertion: Insertion) -> Counter[str]:
        """Members that came in this transaction and are not counted on their groups' rows yet."""
        return insertion.joined + Counter({i: delta.members for i, delta in self._deltas.items()})

    async def _lock_open(self, ids: set[str]) -> dict[str, Row]:
        """Those groups that take more members, locked now with all that will be settled."""
        if not ids:
            return {}
        locked = await self.lock_groups(ids)
        taking = {i: locked[i] for i in ids if i in locked and i not in self._falling}
        return {i: row for i, row in taking.items() if _is_running(row)}


def _is_running(group: Row) -> bool:
    return group["state"] == "active" and not group["is_cancelled"]


async def settle_groups(
    executor: Executor, deltas: Iterable[Delta], now: datetime | None
) -> Sequence[Row]:
    """Write what happened to groups; those that ended by it."""
    given = as_json([asdict(delta) for delta in deltas])
    return await executor.fetch(sql("settle_groups"), {"deltas": given, "now": as_text(now)})
