"""What is wrong, why, and what helps. Each check is a small function from what was seen to
findings; `diagnose` makes them all. An error keeps jobs from running now; a warning will, or loses
time; a note is as somebody wanted it, but explains why jobs wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Final, Literal

from windrow.errors import IndexLost, SchemaOutdated, SchemaTooNew, SchemaTooOld, WindrowError
from windrow.queue.job import JobState
from windrow.queue.notifying import POLLING
from windrow.queue.opening import open_store
from windrow.queue.queue import Queue
from windrow.queue.records import ReadyKind, Vitals
from windrow.services.examination import (
    MOST_FAILED,
    MOST_HELD,
    PATIENCE_SECONDS,
    Examination,
    examine,
)
from windrow.services.index_folder import find_elsewhere, find_unreachable
from windrow.services.queues import describe_places, untaken
from windrow.services.tenant_queue import TenantQueue
from windrow.settings import Settings

MIB: Final = 1024 * 1024
MOST_SKEW_SECONDS: Final = 2.0
MOST_READY_SECONDS: Final = 600.0
MOST_CONNECTIONS: Final = 0.8  # of those that are allowed
LEAST_FREE_BYTES: Final = 512 * MIB
# The log is written back to the file about every 4 MB; only a reader that stays keeps it from that.
MOST_LOG_BYTES: Final = 64 * MIB
MOST_DEAD_ROWS: Final = 20_000
MOST_DEAD_SHARE: Final = 5  # dead rows for each live one
SCHEMA_FIXES: Final[dict[type[WindrowError], str]] = {
    SchemaOutdated: "migrate the database: `windrow db migrate`",
    SchemaTooNew: "upgrade Windrow",
    SchemaTooOld: "start with a new database",
}

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know: what is the case, why, and what helps, if anything does. Names and
    commands are in backquotes."""

    level: Level
    what: str
    cause: str
    fix: str
    topic: Literal["", "failures"] = ""  # where there is more to see of it


Check = Callable[[Examination], Iterator[Finding]]


async def diagnose(settings: Settings, *, patience: float = PATIENCE_SECONDS) -> list[Finding]:
    """Everything that is wrong with the queue the settings name, the worst first."""
    try:
        store = await open_store(
            settings.database_url,
            direct_url=settings.database_direct_url or None,
            notifier=settings.notifier or None,
        )
    except WindrowError as error:
        fix = "start the database, or correct its URL"
        return [Finding("error", "the database cannot be used", str(error), fix)]
    try:
        await store.check_schema()
        seen = await look(Queue(store), settings, patience=patience)
        return judge(replace(seen, index_unreachable=await find_unreachable(settings, store)))
    except (SchemaOutdated, SchemaTooNew, SchemaTooOld) as error:
        fix = SCHEMA_FIXES[type(error)]
        return [Finding("error", "the tables do not fit this Windrow", str(error), fix)]
    except WindrowError as error:
        return [Finding("error", "the database does not answer", str(error), "look at its log")]
    finally:
        await store.close()


async def look(
    queue: Queue,
    settings: Settings,
    *,
    patience: float = PATIENCE_SECONDS,
    failed: int | None = None,
    most_held: int = MOST_HELD,
) -> Examination:
    """See all that there is to judge of a queue that is open. `failed`: jobs of the last hour,
    where they are counted."""
    return await examine(
        queue,
        is_polling_wanted=settings.notifier == POLLING,
        patience=patience,
        failed=failed,
        index_elsewhere=await find_elsewhere(settings, queue.store),
        most_held=most_held,
    )


async def look_own(jobs: TenantQueue, *, failed: int, most: int) -> Examination:
    """The same for a tenant: its own jobs, of which `most` are counted, and its own limit. No
    workers: they run for all."""
    return Examination(
        vitals=Vitals(now=jobs.queue.store.clock.now() or datetime.now(UTC)),
        queues=await jobs.list_queues(most=most),
        limits=await jobs.list_limits(),
        failed=failed,
    )


def judge(seen: Examination) -> list[Finding]:
    """Everything that is wrong, the worst first."""
    return _judge(seen, CHECKS)


def judge_own(seen: Examination) -> list[Finding]:
    """What a tenant may know, of its own jobs. What helps is not theirs to do, but for failures."""
    found = _judge(seen, OWN_CHECKS)
    return [one if one.topic == "failures" else replace(one, fix="") for one in found]


def _judge(seen: Examination, checks: Sequence[Check]) -> list[Finding]:
    found = [finding for check in checks for finding in check(seen)]
    return sorted(found, key=lambda finding: ("error", "warning", "note").index(finding.level))


def check_workers(seen: Examination) -> Iterator[Finding]:
    """Nobody says that it is alive."""
    waiting = seen.count(JobState.READY) + seen.count(JobState.SCHEDULED)
    if seen.workers or not waiting:
        return
    running = seen.count(JobState.ACTIVE)
    yield Finding(
        "warning" if running else "error",
        "no worker is alive",
        f"{_many(waiting, 'job waits', 'jobs wait')}, and no worker has said lately that it is "
        "there"
        + (
            f"; {_many(running, 'job runs', 'jobs run')}: somebody claims silently"
            if running
            else ""
        ),
        "start a worker on this database: `windrow worker`, or `windrow worker MODULE`",
    )


def check_broken_workers(seen: Examination) -> Iterator[Finding]:
    """A part of a living worker fails again and again."""
    for worker in seen.workers:
        if worker.trouble:
            yield Finding(
                "error",
                f"worker `{worker.name}` does not work",
                f"{worker.trouble}; it tries again, and stops if this lasts",
                "read the traceback in its log, correct the cause, and restart it",
            )


def check_failures(seen: Examination) -> Iterator[Finding]:
    """Jobs that failed for good lately."""
    if seen.failed:
        some = "or more " if seen.failed == MOST_FAILED else ""
        yield Finding(
            "warning",
            f"{seen.failed} {some}{'job' if seen.failed == 1 else 'jobs'} failed in the last hour",
            "their attempts are used up, or their handlers gave them up; they do not run again",
            "read their errors (`windrow jobs list --state failed`), correct the cause, then run "
            "them again: `windrow jobs retry --error TEXT --yes`",
            "failures",
        )


def check_kinds(seen: Examination) -> Iterator[Finding]:
    """Jobs at the front of a queue that no living worker takes."""
    for one in _untaken(seen):
        looking = [w for w in seen.workers if w.queues is None or one.queue in w.queues]
        cause = (
            f"{_many(len(looking), 'worker looks', 'workers look')} at the queue, "
            f"and none has a handler for `{one.kind}`"
            if looking
            else f"no worker looks at the queue `{one.queue}`"
        )
        yield Finding(
            "error",
            f"nobody takes `{one.kind}` in queue `{one.queue}`",
            f"{cause}; of the next jobs {_many(one.count, 'is', 'are')} of that kind, "
            f"as {one.example}",
            f"start a worker that has a handler for it: {worker_for(one.queue)}",
        )


def _untaken(seen: Examination) -> list[ReadyKind]:
    if not seen.workers:
        return []
    return untaken(seen.ready_kinds, seen.workers)


def check_paused_queues(seen: Examination) -> Iterator[Finding]:
    for info in seen.queues:
        if info.is_paused:
            ready = info.counts.get(JobState.READY, 0)
            yield Finding(
                "warning" if ready else "note",
                f"queue `{info.name}` is paused",
                f"somebody paused it; {_many(ready, 'job in it is', 'jobs in it are')} ready",
                f"resume it: `windrow queues resume {quote(info.name)}`",
            )


def check_paused_groups(seen: Examination) -> Iterator[Finding]:
    for group in seen.paused_groups:
        yield Finding(
            "warning" if group.pending else "note",
            f"group {group.id} is paused",
            f"somebody paused it; {group.pending} of its jobs "
            f"{'has' if group.pending == 1 else 'have'} not ended",
            f"resume it: `windrow groups resume {group.id}`",
        )


def check_limits(seen: Examination) -> Iterator[Finding]:
    """Keys that keep jobs waiting. That is what they are for."""
    for limit in seen.limits:
        held = (
            _many(limit.held, "job is held", "jobs are held")
            if seen.has_counted_held
            else "many jobs are held"
        )
        if limit.parked_until is not None:
            yield Finding(
                "note",
                f"key `{limit.key}` is parked until {limit.parked_until:%Y-%m-%d %H:%M:%S} UTC",
                f"somebody asked to start nothing with it until then; {held}",
                f"wait, or end it: `windrow limits park {quote(limit.key)} --off`",
            )
        elif limit.active is None or limit.taken < limit.active:
            continue
        elif limit.held or not seen.has_counted_held:
            places = describe_places(limit, seen.queues, seen.workers, seen.ready_kinds)
            yield Finding(
                "note",
                f"limit `{limit.key}` is reached",
                f"{places}, and {held}",
                f"wait, or set a higher limit: `windrow limits set {quote(limit.key)} --active N`",
            )


def check_leases(seen: Examination) -> Iterator[Finding]:
    """Leases that ran out and whose jobs nobody brought back."""
    late = seen.vitals.now - timedelta(seconds=seen.patience)
    lost = [job for job in seen.active if job.lease_expires_at and job.lease_expires_at <= late]
    if lost:
        names = ", ".join(sorted({job.worker or "?" for job in lost})[:3])
        yield Finding(
            "error",
            f"{_many(len(lost), 'job is', 'jobs are')} left behind by workers that are gone",
            f"the leases of {names} ran out long ago, and nobody brings their jobs back",
            "start a worker on this database, it brings back what others left behind: "
            "`windrow worker`",
        )


def check_oldest(seen: Examination) -> Iterator[Finding]:
    """Queues whose workers do not keep up. More of them help no job that none of them takes."""
    explained = {one.queue for one in _untaken(seen)}
    for info in seen.queues:
        if info.oldest_ready_at is None or not seen.workers:
            continue
        if info.is_paused or info.name in explained:
            continue
        waited = (seen.vitals.now - info.oldest_ready_at).total_seconds()
        if waited > MOST_READY_SECONDS:
            ready = info.counts.get(JobState.READY, 0)
            yield Finding(
                "warning",
                f"a job in queue `{info.name}` has been ready for {waited / 60:.0f} minutes",
                f"{_many(ready, 'job is', 'jobs are')} ready there, and the workers do not keep up",
                "start more workers, or let them run more jobs at once: "
                "`windrow worker --concurrency N`",
            )


def check_wake_ups(seen: Examination) -> Iterator[Finding]:
    if seen.polls_because is not None:
        yield Finding(
            "note" if seen.is_polling_wanted else "warning",
            "new work is found by polling",
            seen.polls_because,
            "do what the cause says, or live with up to a second until a job starts",
        )


def check_transactions(seen: Examination) -> Iterator[Finding]:
    held = seen.vitals.oldest_transaction
    if held is None or held.seconds <= seen.patience:
        return
    who = f"prepared transaction {held.name}" if held.is_prepared else f"process {held.name}"
    about = ", ".join(
        part for part in (held.application, f"user {held.user}", held.state, held.statement) if part
    )
    end = (
        f"ROLLBACK PREPARED '{held.name}'"
        if held.is_prepared
        else f"SELECT pg_terminate_backend({held.name})"
    )
    yield Finding(
        "warning",
        f"a transaction has been open for {held.seconds:.0f} s",
        f"{who} ({about}) keeps dead rows from being cleaned up, so claims get slower",
        f"let it end, or end it: `{end}`",
    )


def check_dead_rows(seen: Examination) -> Iterator[Finding]:
    dead, live = seen.vitals.dead_rows, seen.vitals.live_rows
    if dead is not None and dead > max(MOST_DEAD_ROWS, MOST_DEAD_SHARE * (live or 0)):
        yield Finding(
            "warning",
            f"{dead} dead rows lie among {live} live jobs",
            "autovacuum does not keep up, or an open transaction keeps it from its work",
            "end old transactions, then `VACUUM windrow.job_live`",
        )


def check_connections(seen: Examination) -> Iterator[Finding]:
    used, most = seen.vitals.connections, seen.vitals.max_connections
    if used is not None and most and used >= MOST_CONNECTIONS * most:
        yield Finding(
            "warning",
            f"{used} of {most} connections to the database are in use",
            "when all are, nobody else gets in: workers pause and enqueueing fails",
            "allow more connections, make pools smaller (`pool_size` in the URL), or use a pooler",
        )


def check_disk(seen: Examination) -> Iterator[Finding]:
    free = seen.vitals.free_bytes
    if free is not None and free < LEAST_FREE_BYTES:
        yield Finding(
            "warning" if free > LEAST_FREE_BYTES / 8 else "error",
            f"only {_size(free)} are free on the disk of the database",
            "when it is full nothing can be enqueued or finished",
            "make room, or keep finished jobs for a shorter time",
        )


def check_index(seen: Examination) -> Iterator[Finding]:
    """An index that only another machine has, or whose server does not answer."""
    if seen.index_unreachable is not None:
        yield Finding(
            "error",
            "the index does not answer",
            str(seen.index_unreachable),
            seen.index_unreachable.hint
            if isinstance(seen.index_unreachable, IndexLost)
            else "start the Qdrant server, or correct WINDROW_QDRANT_URL and WINDROW_QDRANT_KEY",
        )
    if seen.index_elsewhere is not None:
        yield Finding(
            "error",
            "the index is in another folder of this machine"
            if seen.index_elsewhere.data_dir
            else "the index is in a folder of another machine",
            str(seen.index_elsewhere),
            seen.index_elsewhere.hint,
        )


def check_log(seen: Examination) -> Iterator[Finding]:
    """SQLite's write-ahead log, which a reader that stays lets grow."""
    if (seen.vitals.log_bytes or 0) > MOST_LOG_BYTES:
        yield Finding(
            "warning",
            f"the write-ahead log has grown to {_size(seen.vitals.log_bytes or 0)}",
            "a process has had a reading transaction open for long, so it cannot be written back",
            "end that transaction or its process",
        )
    if seen.vitals.journal_mode not in (None, "wal"):
        yield Finding(
            "error",
            f"the journal mode of the database is {seen.vitals.journal_mode}, not wal",
            "the file system does not allow a write-ahead log, or another program changed it",
            "put the file on a local disk",
        )


def check_file_system(seen: Examination) -> Iterator[Finding]:
    kind = seen.vitals.network_file_system
    if kind is not None:
        yield Finding(
            "error",
            f"the database lies on a network file system ({kind})",
            "SQLite's locks do not hold there: a file that several machines use gets corrupted",
            "put the file on a local disk, or move to Postgres",
        )


def check_clock(seen: Examination) -> Iterator[Finding]:
    if abs(seen.skew) > MOST_SKEW_SECONDS:
        side = "ahead of" if seen.skew > 0 else "behind"
        yield Finding(
            "warning",
            f"the database's clock is {abs(seen.skew):.0f} s {side} this machine's",
            "jobs go by the database's clock; times you give as run_at are off by that",
            "let both set their clocks from the network (NTP)",
        )


OWN_CHECKS: Final[tuple[Check, ...]] = (check_failures, check_paused_queues)
CHECKS: Final[tuple[Check, ...]] = (
    check_workers,
    check_broken_workers,
    check_kinds,
    check_failures,
    check_leases,
    check_oldest,
    check_paused_queues,
    check_paused_groups,
    check_limits,
    check_wake_ups,
    check_transactions,
    check_dead_rows,
    check_connections,
    check_disk,
    check_index,
    check_log,
    check_file_system,
    check_clock,
)


def worker_for(queue: str) -> str:
    """What to type for somebody to look at a queue."""
    return f"`windrow worker MODULE --queues {quote(queue)}`"


def _many(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def _size(count: int) -> str:
    return f"{count / MIB:.1f} MiB"
