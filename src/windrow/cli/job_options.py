"""The options of a new job, as `jobs add` and `schedules add` take them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windrow.cli.output import parse_duration


def duration_option(help: str) -> Any:
    return typer.Option(parser=parse_duration, metavar="TIME", help=help)


QueueOption = Annotated[str | None, typer.Option(help="The queue of the job (default: default).")]
PriorityOption = Annotated[int | None, typer.Option(help="Higher runs first (default: 5).")]
UniqueOption = Annotated[
    str | None, typer.Option(help="Unique key: no second live job has the same one.")
]
ConflictOption = Annotated[
    str | None,
    typer.Option(help="For --unique: return (default), reject, replace or follow."),
]
TenantOption = Annotated[str | None, typer.Option(help="The tenant that owns the job.")]
HeadersOption = Annotated[str | None, typer.Option(metavar="JSON", help="A JSON object.")]
TagOption = Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")]
MaxAttemptsOption = Annotated[int | None, typer.Option(help="Runs that may fail (default: 5).")]
MaxCrashesOption = Annotated[int | None, typer.Option(help="Runs that may crash (default: 5).")]
LeaseOption = Annotated[
    float | None, duration_option("Length of a lease (default: the handler's).")
]
RetentionOption = Annotated[
    float | None, duration_option("How long it is kept after its end (default: the queue's).")
]
LimitOption = Annotated[
    list[str] | None, typer.Option(help="The key of a limit it counts under; may be repeated.")
]
MaxHoldOption = Annotated[
    float | None, duration_option("Fail it if limits hold it for longer (default: never).")
]
