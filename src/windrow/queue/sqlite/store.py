"""The Store protocol on SQLite: each verb is one call to the writer thread or to a reader.

The verbs themselves are functions over a `Work`, in the modules named for what they do.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from msgspec.structs import replace

from windrow.clock import Clock
from windrow.db.sqlite.connection import time_now
from windrow.db.sqlite.database import SqliteDatabase
from windrow.db.sqlite.failures import translate
from windrow.db.sqlite.location import Location, parse_url
from windrow.db.sqlite.readers import Readers
from windrow.db.sqlite.writer import Writer
from windrow.errors import ConfigError
from windrow.queue.bells import Bell, any_event, end_of, work_in
from windrow.queue.copying import Parcel, QueueRow, Receipt
from windrow.queue.dialects.loading import DialectInfo
from windrow.queue.importing import Arrival, Import, ImportNote, Removal
from windrow.queue.job import Job, JobState, Step
from windrow.queue.notifying import Notifier
from windrow.queue.records import (
    Archive,
    Change,
    Claim,
    DiskUsage,
    ErrorCount,
    EventFilter,
    EventPage,
    Finish,
    Finished,
    Group,
    GroupFilter,
    GroupLook,
    GroupRow,
    Inserted,
    JobFilter,
    JobRow,
    LimitInfo,
    LimitRow,
    OnFull,
    ProgressReport,
    Pruned,
    QueueInfo,
    ReadyKind,
    Renewal,
    Retention,
    Schedule,
    ScheduleRow,
    Vitals,
    WorkerInfo,
    WorkerRow,
)
from windrow.queue.sqlite import (
    bounding,
    changing,
    claiming,
    copying,
    dialects,
    editing,
    enlisting,
    examining,
    far_runs,
    finishing,
    grouping,
    importing,
    leasing,
    limiting,
    looking,
    pruning,
    receiving,
    registering,
    scheduling,
    schema,
    streaming,
)
from windrow.queue.sqlite.rows import to_json
from windrow.queue.sqlite.settling import settle
from windrow.queue.sqlite.transaction import SqliteTransaction, numbered
from windrow.queue.sqlite.watching import watch_of
from windrow.queue.sqlite.work import Work
from windrow.queue.store import Capabilities, JobTransaction, Store

T = TypeVar("T")


class SqliteStore:
    """A queue in one file, for the processes of one machine."""

    capabilities = Capabilities(
        transactional_insert=True,
        reads_in_transaction=False,
        many_machines=False,
        tenancy=False,
        table_prefix="windrow_",
        needs_loop=False,
    )
    tenant: str | None = None

    def __init__(
        self, location: Location, writer: Writer, clock: Clock, notifier: Notifier | None
    ) -> None:
        self.clock = clock
        self._location = location
        self._writer = writer
        self._readers = Readers(location)
        self.database = SqliteDatabase(writer, self._readers, clock, location.path)
        self._watch = watch_of(location)
        self._notifier = notifier
        self._memory = claiming.Memory()
        self._held_after = ""  # where the next look at all keys of held jobs begins

    @classmethod
    async def open(cls, url: str, *, clock: Clock, notifier: Notifier | None = None) -> SqliteStore:
        location = parse_url(url)
        try:
            writer = await Writer.open(location)
        except sqlite3.Error as error:
            raise translate(error, location.path) from error
        return cls(location, writer, clock, notifier)

    def as_tenant(self, tenant: str, *, is_sole: bool = False) -> Store:
        raise ConfigError(
            "tenants are kept apart by Postgres: SQLite has no roles, and whoever can open its "
            "file reads all of it"
        )

    async def close(self) -> None:
        await self._writer.close()
        await self._readers.close()
        if self._notifier is not None:
            await self._notifier.close()

    async def _write(self, verb: Callable[[Work], T]) -> T:
        """Run a verb in a transaction of the writer, with all that follows from it."""

        works: list[Work] = []

        def run(connection: sqlite3.Connection) -> T:
            work = Work(connection, time_now(self.clock))
            result = verb(work)
            settle(work)
            works[:] = [work]
            return result

        def ring() -> None:
            for work in works:
                self._ring(work)

        try:
            return await self._writer.run(run, ring)
        except sqlite3.Error as error:
            self._memory.forget()
            raise translate(error, self._location.path) from error

    def _ring(self, work: Work) -> None:
        self._memory.stir(work.ready_queues)
        self._watch.belfry.ring(work.ready_queues, work.ended)
        if self._notifier is not None:
            self._notifier.tell(work.ready_queues, work.ended)
        if work.has_events:
            self._watch.belfry.ring_readers()

    async def _read(self, verb: Callable[[Work], T], *, is_short: bool = False) -> T:
        def run(connection: sqlite3.Connection) -> T:
            return verb(Work(connection, time_now(self.clock)))

        try:
            return await self._readers.run(run, is_short=is_short)
        except sqlite3.Error as error:
            raise translate(error, self._location.path) from error

    # Jobs from insert to end

    async def insert_jobs(self, rows: Sequence[JobRow], *, tx: Any = None) -> list[Inserted]:
        if tx is not None:
            return await enlisting.insert_jobs(tx, rows, self.clock, self._location.path)
        if not rows:
            return []
        try:
            inserted: list[Inserted] = await self._writer.join(self._insert_together, rows)
        except sqlite3.Error as error:
            raise translate(error, self._location.path) from error
        return inserted

    def _insert_together(
        self, connection: sqlite3.Connection, callers: Sequence[Sequence[JobRow]]
    ) -> tuple[list[list[Inserted]], Callable[[], None]]:
        """What several callers insert at the same time, as if one had: an outcome list for each."""
        work = Work(connection, time_now(self.clock))
        inserted = iter(bounding.insert_bounded(work, list(chain.from_iterable(callers))))
        settle(work)
        return [list(islice(inserted, len(rows))) for rows in callers], partial(self._ring, work)

    async def claim_jobs(self, claim: Claim) -> list[Job]:
        return claiming.to_jobs(
            await self._write(lambda work: claiming.claim_jobs(work, claim, self._memory))
        )

    async def finish_jobs(
        self,
        finishes: Sequence[Finish],
        *,
        claim: Claim | None = None,
        tx: JobTransaction | None = None,
    ) -> Finished:
        if tx is not None:
            tx = _own_transaction(tx)
        if not finishes and claim is None:
            return Finished()
        finished, leased = await self._write(
            lambda work: finishing.finish_jobs(work, finishes, claim, tx, self._memory)
        )
        if not leased:
            return finished
        return replace(finished, claimed=tuple(claiming.to_jobs(leased)))

    async def begin(self) -> JobTransaction:
        return SqliteTransaction()

    async def extend_leases(self, tokens: Sequence[str], seconds: int | None = None) -> Renewal:
        if not tokens:
            return Renewal()
        return await self._write(lambda work: leasing.extend_leases(work, tokens, seconds))

    async def report_progress(self, reports: Sequence[ProgressReport]) -> tuple[str, ...]:
        return await self._write(lambda work: leasing.report_progress(work, reports))

    async def save_step(self, job_id: str, token: str, name: str, result: str) -> str:
        return await self._write(lambda work: leasing.save_step(work, job_id, token, name, result))

    async def save_work(self, job_id: str, token: str, tx: JobTransaction) -> None:
        own = _own_transaction(tx)
        await self._write(lambda work: leasing.save_work(work, job_id, token, own))

    async def stage_jobs(self, limit: int = 1000) -> int:
        return await self._write(lambda work: leasing.stage_jobs(work, limit))

    async def rescue_jobs(self, limit: int = 1000) -> list[Change]:
        return await self._write(lambda work: leasing.rescue_jobs(work, limit))

    # Wake-ups

    def listen_for_work(self, queues: Sequence[str] | None) -> AbstractAsyncContextManager[Bell]:
        return self._watch.listen(work_in(queues), self._notifier)

    def listen_for_ends(self, job_ids: Sequence[str]) -> AbstractAsyncContextManager[Bell]:
        return self._watch.listen(end_of(job_ids), self._notifier)

    async def check_wake_ups(self) -> str | None:
        return await (self._notifier or self._watch).check()

    def listen_for_events(self) -> AbstractAsyncContextManager[Bell]:
        return self._watch.listen(any_event(), self._notifier)

    # Events

    async def read_events(
        self, after: int | None, wanted: EventFilter, *, span: int, limit: int
    ) -> EventPage:
        return await self._read(
            lambda work: streaming.read_events(work, after, wanted, span, limit)
        )

    async def prune_events(self, seconds: float, limit: int = 1000) -> bool:
        return await self._write(lambda work: streaming.prune_events(work, seconds, limit))

    # Jobs from outside

    async def get_jobs(self, ids: Sequence[str]) -> dict[str, Job]:
        return await self._read(lambda work: looking.get_jobs(work, ids))

    async def get_states(self, ids: Sequence[str]) -> dict[str, JobState]:
        return await self._read(lambda work: looking.get_states(work, ids))

    async def get_steps(self, job_id: str) -> list[Step]:
        found = await self._read(lambda work: looking.get_steps(work, [job_id]))
        return next(iter(found.values()), [])

    async def list_jobs(
        self, wanted: JobFilter, *, after: str | None = None, limit: int = 100
    ) -> list[Job]:
        return await self._read(lambda work: looking.list_jobs(work, wanted, after, limit))

    async def find_earlier(
        self, wanted: JobFilter, count: int, *, after: str | None = None
    ) -> str | None:
        return await self._read(lambda work: looking.find_earlier(work, wanted, count, after))

    async def list_ended(
        self,
        group_id: str,
        kind: str,
        state: JobState,
        *,
        after: str | None = None,
        skip: int = 0,
        limit: int = 100,
    ) -> list[str]:
        values: dict[str, Any] = {
            "group_id": group_id,
            "kind": kind,
            "state": state.value,
            "after": after,
            "skip": skip,
            "limit": limit,
        }
        return await self._read(lambda work: looking.list_ended(work, values))

    async def look_at_group(
        self, group_id: str, root_id: str, kind: str, *, skip: int = 0, limit: int = 100
    ) -> GroupLook:
        def look(work: Work) -> GroupLook:
            values: dict[str, Any] = {
                "group_id": group_id,
                "kind": kind,
                "state": JobState.COMPLETED.value,
                "after": None,
                "skip": skip,
                "limit": limit,
            }
            ids = looking.list_ended(work, values)
            jobs = looking.get_jobs(work, [root_id, *ids])
            ended = [jobs[job_id] for job_id in ids if job_id in jobs]
            return GroupLook(jobs.get(root_id), grouping.get_group(work, group_id), ended)

        return await self._read(look)

    async def cancel_jobs(self, ids: Sequence[str], reason: str) -> dict[str, Change]:
        return await self._write(lambda work: changing.cancel_jobs(work, ids, reason))

    async def pause_jobs(self, ids: Sequence[str]) -> dict[str, Change]:
        return await self._write(lambda work: changing.pause_jobs(work, ids))

    async def resume_jobs(self, ids: Sequence[str]) -> dict[str, Change]:
        return await self._write(lambda work: changing.resume_jobs(work, ids))

    async def retry_jobs(
        self, ids: Sequence[str], *, from_start: bool = False
    ) -> dict[str, Change]:
        return await self._write(lambda work: changing.retry_jobs(work, ids, from_start))

    async def edit_job(self, job_id: str, changes: Mapping[str, Any]) -> Change:
        return await self._write(lambda work: editing.edit_job(work, job_id, changes))

    async def delete_jobs(self, ids: Sequence[str]) -> dict[str, Change]:
        return await self._write(lambda work: changing.delete_jobs(work, ids))

    async def list_queues(self) -> list[QueueInfo]:
        return await self._read(looking.list_queues)

    async def count_tenant(self, tenant: str, most: int) -> dict[tuple[str, JobState], int]:
        return await self._read(lambda work: looking.count_tenant(work, tenant, most))

    async def list_ready_kinds(self, limit: int = 100) -> list[ReadyKind]:
        return await self._read(lambda work: looking.list_ready_kinds(work, limit))

    async def list_errors(
        self, queue: str | None = None, limit: int = 50, *, newest: int | None = None
    ) -> list[ErrorCount]:
        return await self._read(lambda work: looking.list_errors(work, queue, limit, newest))

    async def pause_queue(self, name: str) -> None:
        await self._write(lambda work: work.run("pause_queue", {"name": name}))

    async def resume_queue(self, name: str) -> None:
        await self._write(lambda work: looking.resume_queue(work, name))

    async def set_queue(self, name: str, max_depth: int | None, on_full: OnFull) -> None:
        values = {"name": name, "max_depth": max_depth, "on_full": on_full}
        await self._write(lambda work: work.run("set_queue", values))

    # Limits

    async def set_limit(self, row: LimitRow) -> None:
        await self._write(lambda work: limiting.set_limit(work, row))

    async def remove_limit(self, key: str) -> bool:
        return await self._write(lambda work: limiting.remove_limit(work, key))

    async def list_limits(self, *, counts_held: bool = True) -> list[LimitInfo]:
        return await self._read(lambda work: limiting.list_limits(work, counts_held))

    async def park_key(
        self, key: str, *, until: datetime | None = None, seconds: float | None = None
    ) -> None:
        await self._write(lambda work: limiting.park_key(work, key, until, seconds))

    async def promote_jobs(
        self,
        keys: Sequence[str] | None = None,
        limit: int = 1000,
        *,
        claim: Claim | None = None,
        rounds: int = 1,
    ) -> int:
        if keys is not None:
            return await self._promote(keys, limit, claim)
        promoted, seen = 0, set[str]()
        for _ in range(rounds):
            # Most often there is nothing held, and nothing to write.
            firsts, self._held_after = await self._read(
                lambda work: limiting.list_held_keys(work, self._held_after)
            )
            if seen.issuperset(firsts):
                break
            promoted += await self._promote(firsts, limit - promoted, claim)
            if promoted >= limit:
                break
            seen.update(firsts)
        return promoted

    async def _promote(self, keys: Sequence[str], limit: int, claim: Claim | None) -> int:
        if not keys:
            return 0
        return await self._write(lambda work: limiting.promote_jobs(work, keys, limit, claim))

    async def prune_limits(self, after: str = "", limit: int = 1000) -> tuple[int, str]:
        return await self._write(lambda work: limiting.prune_limits(work, after, limit))

    async def expire_jobs(self, limit: int = 1000) -> list[Change]:
        return await self._write(lambda work: limiting.expire_jobs(work, limit))

    # Groups

    async def create_group(self, row: GroupRow) -> Group:
        return await self._write(lambda work: grouping.create_group(work, row))

    async def keep_group_keys(
        self, group_id: str, keys: Sequence[str], job_id: str
    ) -> frozenset[str]:
        return await self._write(
            lambda work: grouping.keep_group_keys(work, group_id, keys, job_id)
        )

    async def add_group_notes(self, group_id: str, subject: str, texts: Sequence[str]) -> None:
        values = {"group_id": group_id, "subject": subject, "texts": to_json(list(texts))}
        await self._write(lambda work: work.run("add_group_notes", values))

    async def list_group_notes(
        self, group_id: str, subject: str, *, after: str, limit: int
    ) -> list[str]:
        values = {"group_id": group_id, "subject": subject, "after": after, "limit": limit}
        return await self._read(
            lambda work: [text for (text,) in work.rows("list_group_notes", values)]
        )

    async def get_group(self, group_id: str) -> Group | None:
        return await self._read(lambda work: grouping.get_group(work, group_id))

    async def list_groups(
        self, wanted: GroupFilter, *, after: str | None = None, limit: int = 100
    ) -> list[Group]:
        return await self._read(lambda work: grouping.list_groups(work, wanted, after, limit))

    async def close_group(self, group_id: str) -> Group:
        return await self._write(lambda work: grouping.close_group(work, group_id))

    async def end_empty_groups(self, seconds: float, held_seconds: float, limit: int = 1000) -> int:
        return await self._write(
            lambda work: grouping.end_empty_groups(work, seconds, held_seconds, limit)
        )

    async def pause_group(self, group_id: str) -> Group:
        return await self._write(lambda work: grouping.pause_group(work, group_id))

    async def resume_group(self, group_id: str) -> Group:
        return await self._write(lambda work: grouping.resume_group(work, group_id))

    async def cancel_group(self, group_id: str, reason: str) -> Group:
        return await self._write(lambda work: grouping.cancel_group(work, group_id, reason))

    # Schedules

    async def put_schedule(self, row: ScheduleRow) -> Schedule:
        return await self._write(lambda work: scheduling.put_schedule(work, row))

    async def delete_schedule(self, name: str) -> bool:
        return await self._write(lambda work: scheduling.delete_schedule(work, name))

    async def list_schedules(self) -> list[Schedule]:
        return await self._read(scheduling.list_schedules)

    async def pause_schedule(self, name: str) -> Schedule:
        return await self._write(lambda work: scheduling.pause_schedule(work, name))

    async def resume_schedule(self, name: str) -> Schedule:
        return await self._write(lambda work: scheduling.resume_schedule(work, name))

    async def fire_schedules(self, limit: int = 100) -> list[Inserted]:
        return await self._write(lambda work: scheduling.fire_schedules(work, limit))

    # Retention

    async def set_retention(self, queue: str, seconds: Mapping[str, int | None]) -> None:
        await self._write(lambda work: pruning.set_retention(work, queue, seconds))

    async def list_retention(self) -> dict[str, Retention]:
        return await self._read(pruning.list_retention)

    async def prune_jobs(self, limit: int = 500, *, archive: Archive | None = None) -> Pruned:
        step = min(limit, pruning.MOST_PER_STEP)
        return await self._write(lambda work: pruning.prune_jobs(work, step, archive))

    async def measure_disk(self) -> DiskUsage:
        return await self._read(pruning.measure_disk)

    # Copying

    async def take_jobs(self, target: str, limit: int) -> str | None:
        return await self._write(lambda work: copying.take_jobs(work, target, limit))

    async def take_groups(
        self, target: str, limit: int, after: str | None, settle: float
    ) -> tuple[list[str], str | None]:
        return await self._write(
            lambda work: copying.take_groups(work, target, limit, after, settle)
        )

    async def list_remaining(self, limit: int) -> list[str]:
        return await self._read(lambda work: copying.list_remaining(work, limit))

    async def take_back(self, number: str) -> Receipt:
        return await self._write(lambda work: copying.take_back(work, number))

    async def list_parcels(self) -> dict[str, str]:
        return await self._read(copying.list_parcels)

    async def read_parcel(self, number: str) -> Parcel | None:
        return await self._read(lambda work: copying.read_parcel(work, number))

    async def receive_parcel(self, parcel: Parcel) -> Receipt:
        return await self._write(lambda work: receiving.receive_parcel(work, parcel))

    async def drop_parcel(self, number: str, kept: Collection[str]) -> None:
        await self._write(lambda work: copying.drop_parcel(work, number, kept))

    async def has_received(self, number: str) -> bool:
        return await self._read(lambda work: receiving.has_received(work, number))

    async def add_queues(self, rows: Sequence[QueueRow]) -> None:
        await self._write(lambda work: receiving.add_queues(work, rows))

    # Importing

    async def import_arrivals(self, origin: str, arrivals: Sequence[Arrival]) -> Import:
        return await self._write(lambda work: importing.import_arrivals(work, origin, arrivals))

    async def find_imported(self, origin: str, keys: Sequence[str]) -> list[ImportNote]:
        return await self._read(lambda work: importing.find_imported(work, origin, keys))

    async def list_imported(self, origin: str, after: str, limit: int) -> list[ImportNote]:
        return await self._read(lambda work: importing.list_imported(work, origin, after, limit))

    async def remove_imported(
        self, origin: str, keys: Sequence[str], tables: Sequence[str], group: str | None = None
    ) -> Removal:
        return await self._write(
            lambda work: importing.remove_imported(work, origin, keys, tables, group)
        )

    async def note_dropped(self, origin: str, tables: Sequence[str]) -> list[str]:
        return await self._write(lambda work: importing.note_dropped(work, origin, tables))

    async def forget_dropped(self, origin: str, tables: Sequence[str]) -> None:
        await self._write(lambda work: importing.forget_dropped(work, origin, tables))

    async def list_dropped(self, origin: str) -> dict[str, datetime]:
        return await self._read(lambda work: importing.list_dropped(work, origin))

    # Runs of jobs whose queue is elsewhere

    async def keep_far_run(self, key: str, run: int, ended: str | None, tx: Any) -> str | None:
        own = _own_transaction(tx)
        return await self._write(lambda work: far_runs.keep(work, key, run, ended, own))

    async def find_far_ends(self, keys: Sequence[str]) -> dict[str, str]:
        return await self._read(lambda work: far_runs.find_ends(work, keys))

    async def list_far_runs(self, seconds: float, *, after: str = "", limit: int) -> list[str]:
        values = {"seconds": seconds, "after": after, "limit": limit}
        return await self._read(lambda work: far_runs.list_keys(work, values))

    async def drop_far_runs(self, keys: Sequence[str]) -> None:
        await self._write(lambda work: work.run("drop_far_runs", {"keys": to_json(list(keys))}))

    # Workers

    async def register_worker(self, row: WorkerRow, seconds: float) -> None:
        await self._write(lambda work: registering.register_worker(work, row, seconds))

    async def drop_worker(self, worker_id: str) -> bool:
        return await self._write(lambda work: registering.drop_worker(work, worker_id))

    async def list_workers(self) -> list[WorkerInfo]:
        return await self._read(registering.list_workers)

    # Maintenance

    async def elect_leader(self, role: str, holder: str, seconds: float) -> bool:
        return await self._write(lambda work: registering.elect_leader(work, role, holder, seconds))

    async def resign_leader(self, role: str, holder: str) -> bool:
        return await self._write(lambda work: registering.resign_leader(work, role, holder))

    async def fold_counts(self) -> None:
        """Nothing to fold: the one writer keeps totals."""

    async def check_health(self) -> Vitals:
        return await self._read(lambda work: examining.check_health(work, self._location.path))

    async def schema_version(self) -> int:
        return (await self._read(schema.read_history)).version

    async def check_schema(self) -> None:
        await self._read(schema.check_schema)

    async def migrate(self) -> list[str]:
        return await self._write(dialects.migrate)

    async def install_dialect(self, name: str) -> bool:
        return await self._write(lambda work: dialects.install_dialect(work, name))

    async def remove_dialect(self, name: str) -> bool:
        return await self._write(lambda work: dialects.remove_dialect(work, name))

    async def fetch_rows(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        text = numbered(sql)
        found = await self._read(lambda work: work.named_rows(text, args))
        return [dict(row) for row in found]

    async def change_rows(self, sql: str, *args: Any) -> list[dict[str, Any]]:
        text = numbered(sql)
        found = await self._write(lambda work: work.named_rows(text, args))
        return [dict(row) for row in found]

    async def list_dialects(self) -> list[DialectInfo]:
        return await self._read(dialects.list_dialects)


def _own_transaction(tx: JobTransaction) -> SqliteTransaction:
    if not isinstance(tx, SqliteTransaction):
        raise ConfigError("tx is a transaction from begin() of this store")
    return tx
