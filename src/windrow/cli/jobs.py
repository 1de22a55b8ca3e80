"""`windrow jobs`: looking at jobs, and deleting finished ones."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.cli.output import (
    DatabaseOption,
    JsonOption,
    age,
    job_fields,
    parse_duration,
    print_json,
    print_table,
    run,
)
from windrow.queue.job import Job, JobState
from windrow.services.jobs import clean_jobs, get_job, list_jobs
from windrow.settings import load_settings

app = typer.Typer(help="List, show and clean up jobs.", no_args_is_help=True)


@app.command("list")
def list_(
    queue: Annotated[str | None, typer.Option(help="Only this queue.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
    state: Annotated[list[str] | None, typer.Option(help="Only these states.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's.")] = None,
    group: Annotated[str | None, typer.Option(help="Only this group's.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only with this tag.")] = None,
    error: Annotated[str | None, typer.Option(help="Only with this in their error.")] = None,
    after: Annotated[str | None, typer.Option(help="The id the page before ended with.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at the most.")] = 50,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, newest first."""

    async def work() -> list[Job]:
        return await list_jobs(
            load_settings({"database_url": database}),
            queue=queue,
            kind=kind,
            state=state or None,
            tenant=tenant,
            group=group,
            tag=tag,
            error=error,
            after=after,
            limit=limit,
        )

    found = run(work())
    if as_json:
        print_json([job_fields(job) for job in found])
        return
    print_table(
        ["id", "queue", "kind", "state", "tries#", "age#", "error"],
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
            for job in found
        ],
    )
    if len(found) == limit:
        print(f"more: --after {found[-1].id}")


@app.command()
def show(job_id: str, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show one job: payload, result, progress and every error it had."""

    async def work() -> Job:
        return await get_job(load_settings({"database_url": database}), job_id)

    job = run(work())
    fields = job_fields(job)
    if as_json:
        print_json(fields)
        return
    long = ("payload", "result", "errors")
    width = max(len(name) for name in fields)
    for name, value in fields.items():
        if name not in long and value not in (None, (), {}):
            print(f"{name:<{width}}  {value}")
    for name in ("payload", "result"):
        if fields[name] is not None:
            print(f"\n{name}")
            print_json(fields[name])
    for line in job.errors:
        print(
            f"\n{line.reason} at {line.at}: {line.type + ': ' if line.type else ''}{line.message}"
        )
        if line.traceback:
            print(line.traceback.rstrip())


@app.command()
def clean(
    queue: Annotated[str | None, typer.Option(help="Only this queue.")] = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Only completed, failed or cancelled ones.")
    ] = None,
    older_than: Annotated[
        str, typer.Option(help="Only those that finished so long ago: 90s, 30m, 2h, 7d.")
    ] = "0s",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete finished jobs now, whatever their retention."""
    seconds = parse_duration(older_than)

    async def work() -> dict[str, dict[JobState, int]]:
        return await clean_jobs(
            load_settings({"database_url": database}),
            queue=queue,
            state=state or None,
            older_than=seconds,
            dry_run=dry_run,
        )

    found = run(work())
    total = sum(sum(counts.values()) for counts in found.values())
    if as_json:
        print_json({"jobs": total, "dry_run": dry_run, "queues": found})
        return
    print_table(
        ["queue", "state", "jobs#"],
        [(name, state, n) for name in sorted(found) for state, n in sorted(found[name].items())],
    )
    print(f"{total} jobs would be deleted" if dry_run else f"deleted {total} jobs")


def tries(job: Job) -> str:
    """Failed attempts of those allowed, and crashes if there were any."""
    crashed = f" +{job.crashes} crashed" if job.crashes else ""
    return f"{job.attempts}/{job.max_attempts}{crashed}"
