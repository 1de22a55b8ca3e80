"""`windrow schedules`: jobs that come again and again."""

from __future__ import annotations

from typing import Annotated, Any

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
    DatabaseOption,
    JsonOption,
    YesOption,
    age,
    ask,
    given_options,
    parse_json,
    print_json,
    print_preview,
    print_table,
)
from windrow.queue.records import Schedule
from windrow.redaction import redact
from windrow.services.queues import (
    get_schedule,
    list_schedules,
    pause_schedule,
    put_schedule,
    remove_schedule,
    resume_schedule,
)

app = Noun(help="Add, list, show, pause, resume and remove schedules.", no_args_is_help=True)


Name = Annotated[str, typer.Argument(help="What the schedule is called.")]


@app.command()
def add(
    name: Name,
    kind: Annotated[str, typer.Argument(help="What runs its jobs.")],
    payload: Annotated[str | None, typer.Argument(help="As JSON.")] = None,
    every: Annotated[float | None, duration_option("As 90s, 30m, 2h, 7d.")] = None,
    cron: Annotated[str | None, typer.Option(help="As '30 2 * * MON-FRI'.")] = None,
    timezone: Annotated[str | None, typer.Option(help="For --cron. Default: UTC.")] = None,
    jitter: Annotated[float | None, duration_option("Up to so much after the slot.")] = None,
    catch_up: Annotated[str | None, typer.Option(help="one, all or skip.")] = None,
    queue: QueueOption = None,
    priority: PriorityOption = None,
    unique: UniqueOption = None,
    on_conflict: ConflictOption = None,
    tenant: TenantOption = None,
    headers: HeadersOption = None,
    tag: TagOption = None,
    max_attempts: MaxAttemptsOption = None,
    max_crashes: MaxCrashesOption = None,
    lease: LeaseOption = None,
    retention: RetentionOption = None,
    limit: LimitOption = None,
    max_hold: MaxHoldOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Enqueue a job again and again, or change the schedule of that name."""
    options = given_options(
        payload=None if payload is None else parse_json(payload),
        every=every,
        cron=cron,
        timezone=timezone,
        jitter=jitter,
        catch_up=catch_up,
        queue=queue,
        priority=priority,
        unique=unique,
        on_conflict=on_conflict,
        tenant=tenant,
        headers=None if headers is None else parse_json(headers),
        tags=tag or None,
        max_attempts=max_attempts,
        max_crashes=max_crashes,
        lease=lease,
        retention=retention,
        limits=limit or None,
        max_hold=max_hold,
    )
    schedule = ask(put_schedule, database, name, kind, **options)
    if as_json:
        print_json(schedule_fields(schedule))
    else:
        print(f"{schedule.name}: {when(schedule)}, next at {schedule.next_at}")


@app.command("list")
def list_(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """List schedules by name, with their next slot and the last one fired."""
    found = ask(list_schedules, database)
    if as_json:
        print_json([schedule_fields(schedule) for schedule in found])
        return
    print_table(
        ["name", "when", "queue", "kind", "paused", "next#", "last#"],
        [
            (
                schedule.name,
                when(schedule),
                schedule.job.queue,
                schedule.job.kind,
                "yes" if schedule.is_paused else "",
                "-" if schedule.is_paused else age(schedule.next_at),
                age(schedule.last_at),
            )
            for schedule in found
        ],
    )


@app.command()
def show(name: Name, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show one schedule: when it fires, and the job it enqueues."""
    fields = schedule_fields(ask(get_schedule, database, name))
    if as_json:
        print_json(fields)
        return
    width = max(len(field) for field in fields)
    for field, value in fields.items():
        if field != "payload" and value not in (None, (), {}):
            print(f"{field:<{width}}  {value}")
    if fields["payload"] is not None:
        print("\npayload")
        print_json(fields["payload"])


@app.command()
def pause(name: Name, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Fire no more slots of a schedule until it is resumed."""
    schedule = ask(pause_schedule, database, name)
    if as_json:
        print_json(schedule_fields(schedule))
    else:
        print(f"paused {schedule.name}")


@app.command()
def resume(name: Name, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Go on with a schedule's next slot from now; those of the pause are not caught up."""
    schedule = ask(resume_schedule, database, name)
    if as_json:
        print_json(schedule_fields(schedule))
    else:
        print(f"resumed {schedule.name}: next at {schedule.next_at}")


@app.command()
def remove(
    name: Name,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a schedule. The jobs it has enqueued stay."""
    if not yes:
        schedule = ask(get_schedule, database, name)
        print_preview(f"remove {name}, {when(schedule)}", {"name": name}, as_json)
        return
    ask(remove_schedule, database, name)
    if as_json:
        print_json({"is_done": True, "name": name})
    else:
        print(f"removed {name}")


def when(schedule: Schedule) -> str:
    """The timing in a few words."""
    if schedule.every_seconds is not None:
        return f"every {schedule.every_seconds:g} s"
    return f"{schedule.cron} {schedule.timezone}"


def schedule_fields(schedule: Schedule) -> dict[str, Any]:
    """A schedule for JSON: its timing, where it is, and the job it enqueues."""
    of_schedule = (
        "name cron timezone every_seconds jitter_seconds catch_up is_paused next_at last_at "
        "created_at"
    )
    of_job = (
        "queue kind priority tenant unique on_conflict tags max_attempts max_crashes "
        "lease_seconds retention_seconds limits max_hold_seconds"
    )
    job = schedule.job
    return {
        **{name: getattr(schedule, name) for name in of_schedule.split()},
        **{name: getattr(job, name) for name in of_job.split()},
        "headers": {} if job.headers is None else redact(msgspec.json.decode(job.headers)),
        "payload": redact(msgspec.json.decode(job.payload)),
    }
