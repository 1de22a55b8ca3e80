"""Options that several commands share: those of a new job, and those about the log."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Annotated, Any

import typer

from windrow.cli.output import MISUSED, give_up, load, parse_duration
from windrow.errors import ConfigError
from windrow.logging import FORMATS, LEVELS, configure_logging, event
from windrow.settings import SUPERVISOR, Settings, unknown_variables

logger = logging.getLogger(__name__)


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

LogFormatOption = Annotated[
    str | None,
    typer.Option(metavar="|".join(FORMATS), help="Format of the log. Default: text."),
]
LogLevelOption = Annotated[
    str | None,
    typer.Option(metavar="LEVEL", help=f"Least level to log: {', '.join(LEVELS)}."),
]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Log completed runs and tracebacks, as --log-level debug."
    ),
]


def load_and_log(
    database: str | None,
    log_format: str | None,
    log_level: str | None,
    verbose: bool,
    *,
    default_level: str = "info",
) -> Settings:
    """The settings in force, with the log configured by them. Variables of the environment that
    look like settings but are none are logged, by the first process of a command only."""
    level = log_level or ("debug" if verbose else None)
    settings = load(database, log_format=log_format, log_level=level)
    if not settings.log_level:
        settings = replace(settings, log_level=default_level)
    try:
        configure_logging(settings.log_format, settings.log_level)
    except ConfigError as error:
        raise give_up(str(error), MISUSED) from error
    if SUPERVISOR not in os.environ:
        for name, meant in unknown_variables(os.environ).items():
            logger.warning(
                "%s is not a setting%s",
                name,
                f"; did you mean {meant}?" if meant else ": `windrow init` lists the settings",
                extra=event("setting.unknown", variable=name, suggestion=meant),
            )
    return settings
