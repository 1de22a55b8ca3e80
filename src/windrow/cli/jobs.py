"""`windrow jobs`: add, look at, retry, edit, cancel and delete jobs."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import msgspec
import typer

from windrow.cli.lazy import Noun
from windrow.cli.options import (
    ConflictOption,
    HeadersOption,
    LeaseOption,
    LimitOption,
    MaxAttemptsOption,
    MaxCrashesOption,
    MaxHoldOption,
    PriorityOption,
    QueueOption,
    RetentionOption,
    TagOption,
    TenantOption,
    UniqueOption,
    duration_option,
)
from windrow.cli.output import (
    MISUSED,
    AfterOption,
    DatabaseOption,
    JsonOption,
    StatusLine,
    YesOption,
    age,
    ask,
    cut,
    give_up,
    given_options,
    job_fields,
    parse_duration,
    parse_json,
    parse_time,
    plain,
    print_fields,
    print_json,
    print_table,
)
from windrow.errors import ConfigError
from windrow.queue.job import LIVE, Job, JobState
from windrow.queue.records import Change
from windrow.redaction import redact
from windrow.services.jobs import (
    Preview,
    cancel_all,
    cancel_jobs,
    clean_jobs,
    edit_job,
    get_job,
    list_errors,
    list_jobs,
    preview_jobs,
    retry_all,
    retry_jobs,
    wait_for_jobs,
)

app = Noun(help="Add, list, show, retry, edit, cancel and clean up jobs.", no_args_is_help=True)

Ids = Annotated[list[str] | None, typer.Argument(help="Whole ids, or beginnings of them.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="Its id, or how that begins.")]
QueueFilter = Annotated[str | None, typer.Option(help="Only this queue.")]
KindFilter = Annotated[str | None, typer.Option(help="Only this kind.")]
StateFilter = Annotated[list[str] | None, typer.Option(help="Only these states.")]
TenantFilter = Annotated[str | None, typer.Option(help="Only this tenant's.")]
GroupFilter = Annotated[str | None, typer.Option(help="Only this group's.")]
TagFilter = Annotated[str | None, typer.Option(help="Only with this tag.")]
ErrorFilter = Annotated[str | None, typer.Option(help="Only with this in their error.")]
AllOption = Annotated[bool, typer.Option("--all", help="All, without a filter.")]


@app.command()
def add(
    kind: Annotated[str, typer.Argument(help="The kind of the job: the name of its handler.")],
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="The payload; @FILE, or - for stdin.")
    ] = None,
    delay: Annotated[float | None, duration_option("Run it so much later (default: now).")] = None,
    run_at: Annotated[
        datetime | None,
        typer.Option(
            parser=parse_time, metavar="TIME", help="Run it at this time (ISO 8601, default: now)."
        ),
    ] = None,
    queue: QueueOption = None,
    priority: PriorityOption = None,
    unique: UniqueOption = None,
    on_conflict: ConflictOption = None,
    tenant: TenantOption = None,
    group: Annotated[str | None, typer.Option(help="The id of the group it is added to.")] = None,
    group_key: Annotated[
        str | None, typer.Option(help="With --group: the group takes one job with this key.")
    ] = None,
    headers: HeadersOption = None,
    tag: TagOption = None,
    max_attempts: MaxAttemptsOption = None,
    max_crashes: MaxCrashesOption = None,
    lease: LeaseOption = None,
    retention: RetentionOption = None,
    limit: LimitOption = None,
    max_hold: MaxHoldOption = None,
    id: Annotated[
        str | None, typer.Option(help="A UUID for the job; enqueued twice, it is one job.")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Enqueue a job and print its id. What keeps it from running is said on stderr."""
    options = given_options(
        payload=None if payload is None else parse_json(_read(payload)),
        delay=delay,
        run_at=run_at,
        queue=queue,
        priority=priority,
        unique=unique,
        on_conflict=on_conflict,
        tenant=tenant,
        group=group,
        group_key=group_key,
        headers=None if headers is None else parse_json(headers),
        tags=tag or None,
        max_attempts=max_attempts,
        max_crashes=max_crashes,
        lease=lease,
        retention=retention,
        limits=limit or None,
        max_hold=max_hold,
        id=id,
    )
    from windrow.services.explaining import add_job  # not at the top: lists start without it

    job, why = ask(add_job, database, kind, **options)
    if as_json:
        print_json({**job_fields(job), "why": why})
        return
    print(job.id)
    for finding in why:
        if finding.level != "note":
            print(f"waiting: {finding.what}: {finding.cause}", file=sys.stderr)
            print(f"hint: {finding.fix}", file=sys.stderr)


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(help="JSON lines; - for stdin.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the lines and write nothing.")
    ] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Enqueue a job for each line of a file: an object with kind, payload and the options of
    `Queue.enqueue` (queue, priority, run_at, unique, id …).

    All lines are checked before the first job is written. The same file may be imported again:
    jobs that are stored are left as they are. Jobs that have run and were pruned would run again.
    """
    from windrow.services.job_import import JobImport, import_jobs

    stored = JobImport()

    def show(report: JobImport) -> None:
        nonlocal stored
        stored = report
        line.show(f"lines imported: {report.lines}")

    with _open_lines(file) as lines, StatusLine(is_shown=sys.stderr.isatty()) as line:
        try:
            report = ask(import_jobs, database, lines, is_dry_run=dry_run, show=show)
        except typer.Exit:
            if stored.lines:
                print(f"lines imported: {stored.lines}; run the command again", file=sys.stderr)
            raise
    if as_json:
        print_json({"is_done": not dry_run, **msgspec.to_builtins(report)})
        return
    if dry_run:
        print(f"lines checked: {report.lines}; nothing was written")
        return
    print(f"{report.outcomes['inserted']} of {report.lines} jobs are new")
    for outcome, count in sorted(report.outcomes.items()):
        if outcome != "inserted":
            print(f"{outcome}: {count}")


@app.command("list")
def list_(
    queue: QueueFilter = None,
    kind: KindFilter = None,
    state: StateFilter = None,
    tenant: TenantFilter = None,
    group: GroupFilter = None,
    tag: TagFilter = None,
    error: ErrorFilter = None,
    unique: Annotated[str | None, typer.Option(help="Only with this unique key.")] = None,
    text: Annotated[str | None, typer.Option(help="Only with this in their payload.")] = None,
    by_error: Annotated[
        bool, typer.Option("--by-error", help="Count failed jobs by their kind of error instead.")
    ] = False,
    after: AfterOption = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at the most.")] = 50,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, newest first."""
    filters = _filters(queue, kind, state, tenant, group, tag, error)
    if by_error:
        _list_errors(filters, limit, database, as_json)
        return
    filters |= {"unique": unique, "text": text}
    found = ask(list_jobs, database, **filters, after=after, limit=limit)
    if as_json:
        print_json([job_fields(job) for job in found])
        return
    print_jobs(found)
    if len(found) == limit:
        print(f"more: --after {found[-1].id}")


@app.command()
def show(job_id: JobId, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show one job: why it is not running, payload, result, progress and every error it had."""
    from windrow.cli.doctor import print_findings
    from windrow.services.explaining import explain_job

    job, why = ask(explain_job, database, job_id)
    fields = job_fields(job)
    if as_json:
        print_json({**fields, "why": why})
        return
    contents = {name: fields.pop(name) for name in ("payload", "result")}
    del fields["errors"]
    if job.progress is not None:
        fields["progress"] = f"{job.progress.percent} % {job.progress.message or ''}"
    if job.is_finished:  # a handler may allow fewer attempts than the job
        del fields["max_attempts"], fields["max_crashes"]
    print_fields(fields)
    for name, value in contents.items():
        if value is not None:
            print(f"\n{name}")
            print_json(value)
    for line in job.errors:
        text = f"{line.type}: {line.message}" if line.type else line.message
        print(f"\n{line.reason} at {line.at}: {plain(text)}")
        if line.traceback:
            print(plain(line.traceback.rstrip()))
    if not job.is_finished:
        print()
        print_findings(why)


@app.command()
def retry(
    job_ids: Ids = None,
    queue: QueueFilter = None,
    kind: KindFilter = None,
    state: Annotated[list[str] | None, typer.Option(help="Default: failed.")] = None,
    tenant: TenantFilter = None,
    group: GroupFilter = None,
    tag: TagFilter = None,
    error: ErrorFilter = None,
    every: AllOption = False,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Forget what their steps gave back.")
    ] = False,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run failed or cancelled jobs again, with all their attempts: some by id, or all that fit."""
    filters = _filters(queue, kind, state, tenant, group, tag, error)
    if _are_named(job_ids, filters, every):
        changes = ask(retry_jobs, database, job_ids or [], from_start=from_start)
        _print_changes(changes, as_json)
        return
    filters["state"] = state or [JobState.FAILED]
    if not yes:
        _print_preview(ask(preview_jobs, database, **filters), "retried", as_json)
        return
    total = ask(retry_all, database, **filters, from_start=from_start)
    _print_total(total, "retried", as_json)


@app.command()
def cancel(
    job_ids: Ids = None,
    queue: QueueFilter = None,
    kind: KindFilter = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Default: all that have not ended.")
    ] = None,
    tenant: TenantFilter = None,
    group: GroupFilter = None,
    tag: TagFilter = None,
    error: ErrorFilter = None,
    every: AllOption = False,
    reason: Annotated[str, typer.Option(help="Kept with each job.")] = "cancelled by hand",
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel jobs: some by id, or all that fit. Running ones are told to stop."""
    filters = _filters(queue, kind, state, tenant, group, tag, error)
    if _are_named(job_ids, filters, every):
        _print_changes(ask(cancel_jobs, database, job_ids or [], reason), as_json)
        return
    filters["state"] = state or [one for one in JobState if one in LIVE]
    if not yes:
        _print_preview(ask(preview_jobs, database, **filters), "cancelled", as_json)
        return
    _print_total(ask(cancel_all, database, reason, **filters), "cancelled", as_json)


@app.command()
def edit(
    job_id: JobId,
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="The new payload; @FILE, or - for stdin.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="The new kind.")] = None,
    queue: Annotated[str | None, typer.Option(help="The new queue.")] = None,
    priority: Annotated[int | None, typer.Option(help="The new priority.")] = None,
    is_retried: Annotated[bool, typer.Option("--retry", help="Then run it again.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a job that is not running. Without options, its payload opens in $EDITOR."""
    changes = given_options(kind=kind, queue=queue, priority=priority)
    if payload is not None:
        changes["payload"] = parse_json(_read(payload))
    elif not changes:
        before = ask(get_job, database, job_id)
        changes = _edit_payload(before)
        if not changes and not is_retried:
            print_json(job_fields(before)) if as_json else print("nothing was changed")
            return
    job = ask(edit_job, database, job_id, changes, is_retried=is_retried)
    if as_json:
        print_json(job_fields(job))
    else:
        done = ["changed " + ", ".join(changes)] if changes else []
        print(
            f"{job.id} {job.state}: {' and '.join([*done, *(['retried'] if is_retried else [])])}"
        )


@app.command()
def wait(
    job_ids: Annotated[list[str], typer.Argument(help="Whole ids, or beginnings of them.")],
    timeout: Annotated[
        float | None,
        typer.Option(parser=parse_duration, metavar="TIME", help="As 90, 15m, 24h. Default: none."),
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Wait until jobs have ended. Exit code 0 only if all of them are completed."""
    jobs = ask(wait_for_jobs, database, job_ids, timeout)
    if as_json:
        print_json([job_fields(job) for job in jobs])
    else:
        print_jobs(jobs)
    if running := [job.id for job in jobs if not job.is_finished]:
        raise give_up(f"still not ended when the time was up: {', '.join(running)}")
    if any(job.state != JobState.COMPLETED for job in jobs):
        raise typer.Exit(1)


@app.command()
def clean(
    queue: QueueFilter = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Only completed, failed or cancelled ones.")
    ] = None,
    older_than: Annotated[
        float | None,
        typer.Option(
            parser=parse_duration,
            metavar="TIME",
            help="Only those that finished so long ago: 90, 15m, 24h, 7d; 0 means all.",
        ),
    ] = None,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete finished jobs now, whatever their retention."""
    found = ask(
        clean_jobs,
        database,
        queue=queue,
        state=state or None,
        older_than=older_than or 0.0,
        dry_run=not yes,
    )
    total = sum(sum(counts.values()) for counts in found.values())
    if as_json:
        print_json({"jobs": total, "is_done": yes, "queues": found})
        return
    if found:
        print_table(
            ["queue", "state", "jobs#"],
            [
                (name, state, n)
                for name in sorted(found)
                for state, n in sorted(found[name].items())
            ],
        )
    print(f"deleted {total} jobs" if yes else f"{total} jobs would be deleted{_hint(total)}")


def print_jobs(jobs: Sequence[Job]) -> None:
    print_table(
        ["id", "queue", "kind", "state", "runs#", "age#", "error"],
        [
            (
                job.id,
                job.queue,
                job.kind,
                job.state,
                tries(job),
                age(job.created_at),
                job.error or "",
            )
            for job in jobs
        ],
    )


def tries(job: Job) -> str:
    """How often the job was run, and how many of the runs failed or crashed. Not of how many: a
    handler may allow fewer attempts than the job does."""
    failed = f", {job.attempts} failed" if job.attempts else ""
    crashed = f", {job.crashes} crashed" if job.crashes else ""
    return f"{job.runs}{failed}{crashed}"


def _filters(
    queue: str | None,
    kind: str | None,
    state: Sequence[str] | None,
    tenant: str | None,
    group: str | None,
    tag: str | None,
    error: str | None,
) -> dict[str, Any]:
    return given_options(
        queue=queue,
        kind=kind,
        state=state or None,
        tenant=tenant,
        group=group,
        tag=tag,
        error=error,
    )


def _are_named(job_ids: Sequence[str] | None, filters: dict[str, Any], every: bool) -> bool:
    """Whether jobs were named one by one; else by a filter, or all of them."""
    if job_ids and (filters or every):
        raise give_up("name jobs, or say which by options, not both", MISUSED)
    if not (job_ids or filters or every):
        raise give_up("name jobs by their ids, or say which by options, or --all", MISUSED)
    return bool(job_ids)


def _list_errors(filters: dict[str, Any], limit: int, database: str | None, as_json: bool) -> None:
    if set(filters) - {"queue"} and filters.get("state") != ["failed"]:
        raise give_up("--by-error goes with --queue and --state failed only", MISUSED)
    found = ask(list_errors, database, filters.get("queue"), limit)
    if as_json:
        print_json(found)
        return
    print_table(
        ["jobs#", "first#", "last#", "id", "error"],
        [(one.count, age(one.first_at), age(one.last_at), one.example, one.title) for one in found],
    )


def _print_changes(changes: Sequence[Change], as_json: bool) -> None:
    if as_json:
        print_json([{"id": one.id, "before": one.before, "after": one.after} for one in changes])
        return
    for one in changes:
        told = " (it runs, and is told)" if one.after == JobState.ACTIVE else ""
        print(f"{one.id} was {one.before}, is {one.after}{told}")


def _print_preview(found: Preview, done: str, as_json: bool) -> None:
    if as_json:
        examples = [job.id for job in found.examples]
        counts = {"jobs": found.jobs, "has_more": found.has_more, "states": found.states}
        print_json({"is_done": False, **counts, "examples": examples})
        return
    for job in found.examples:
        print(cut(f"  {job.id} {job.state} {job.queue} {job.kind} {job.error or ''}"))
    if found.jobs > len(found.examples):
        print("  …")
    states = ", ".join(f"{count} {state}" for state, count in sorted(found.states.items()))
    count = f"more than {found.jobs}" if found.has_more else str(found.jobs)
    print(f"{count} jobs would be {done}{f' ({states})' if states else ''}{_hint(found.jobs)}")


def _hint(total: int) -> str:
    return ": add --yes" if total else ""


def _print_total(total: int, done: str, as_json: bool) -> None:
    if as_json:
        print_json({"is_done": True, "jobs": total})
    else:
        print(f"{done} {total} jobs")


def _read(given: str) -> str:
    """JSON as it was given, or from where it was said to be."""
    if given == "-":
        return sys.stdin.read()
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{given[1:]} cannot be read: {error}") from error


def _open_lines(file: str) -> BinaryIO:
    """A file that can be read twice; what comes from stdin is stored in a temporary one."""
    if file != "-":
        try:
            return Path(file).open("rb")
        except OSError as error:
            raise typer.BadParameter(f"{file} cannot be read: {error}") from error
    lines = tempfile.TemporaryFile()  # noqa: SIM115 - its caller closes it
    shutil.copyfileobj(sys.stdin.buffer, lines)
    lines.seek(0)
    return cast(BinaryIO, lines)


def _edit_payload(job: Job) -> dict[str, Any]:
    """Let a person change the payload; nothing if it is the same afterwards. What is hidden in it
    stays as it is."""
    text = msgspec.json.format(msgspec.json.encode(redact(job.payload)), indent=2).decode()
    try:
        from windrow.cli.terminal import edit_text

        edited = edit_text(text + "\n", ".json")
    except ConfigError as error:
        raise give_up(str(error)) from error
    return {} if edited.strip() == text.strip() else {"payload": parse_json(edited)}
