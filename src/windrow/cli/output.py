"""How commands print: a table that fits the terminal, or JSON for programs (`--json`)."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, Literal, ParamSpec, TypeVar

import msgspec
import typer

from windrow.errors import Blocked, ConfigError, InvalidOptions, InvalidSearch, WindrowError
from windrow.logging import configuration, event
from windrow.queue.job import Job, JobState
from windrow.redaction import redact, redact_text
from windrow.settings import Settings, load_settings, unknown_variables

if TYPE_CHECKING:
    from rich.console import Console

logger = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", "-d", metavar="URL", help="Default: WINDROW_DATABASE_URL."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
# Of every command that deletes, or that cancels or moves more than the jobs given by id.
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Do it. Without this, only say what would be done.")
]
AfterOption = Annotated[str | None, typer.Option(help="The id the page before ended with.")]

STATES = frozenset(JobState)
NARROWEST = 5  # a column is not cut below this
SHORT_ID = 18  # of an id: the time it was made, to a quarter of a microsecond

# Exit codes of every command: 0, all is well; these three.
FAILED = 1
MISUSED = 2
INTERRUPTED = 130  # as of a process that Ctrl-C has ended
MISUSES = (ConfigError, InvalidOptions, InvalidSearch)

_debugging = [False]

# As terminals know them.
BOLD: Final = "1"
STATE_STYLES: Final = {
    JobState.READY: "36",  # cyan
    JobState.ACTIVE: "32",  # green
    JobState.FAILED: "1;31",  # bold red
    JobState.CANCELLED: "33",  # yellow
    JobState.PAUSED: "33",
    JobState.HELD: "35",  # magenta
    JobState.COMPLETED: "2",  # dim
}


def ask(
    service: Callable[Concatenate[Settings, P], Coroutine[Any, Any, T]],
    database: str | None,
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Call a service with the settings in force, on the database that was named."""

    async def work() -> T:
        return await service(load_settings({"database_url": database}), *args, **kwargs)

    return run(work())


def load(database: str | None, **flags: Any) -> Settings:
    """The settings in force, with the database and other flags that were given."""
    try:
        return load_settings({"database_url": database, **flags})
    except ConfigError as error:
        raise give_up(str(error), MISUSED) from error


def run(
    work: Coroutine[Any, Any, T],
    loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    *,
    failed: int | None = None,
) -> T:
    """Run a command's work; an error is one line on stderr and an exit code, not a traceback.
    `failed` is that code, where another one means something else."""
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(work)
    except WindrowError as error:
        if shows_traces():
            raise
        code = MISUSED if isinstance(error, MISUSES) else FAILED
        code = code if failed is None else failed
        raise give_up(str(error), code, hint=error.hint) from error


def show_traces(is_wanted: bool) -> None:
    """Whether errors are raised as they are, for whoever looks for their cause."""
    _debugging[:] = [is_wanted]


def warn_of_misspelled_settings() -> None:
    for name, meant in unknown_variables(os.environ).items():
        if meant:
            print(f"warning: {name} is not a setting; did you mean {meant}?", file=sys.stderr)


def shows_traces() -> bool:
    return _debugging[0]


def give_up(why: str, code: int = FAILED, *, hint: str = "") -> typer.Exit:
    """Say on stderr what is wrong, and what helps; to be raised. Among JSON it is a record."""
    log = configuration()
    if log is not None and log.format == "json":
        failed = event("command.failed", exit_code=code, hint=hint)
        logger.critical("%s", why, extra=failed)
        return typer.Exit(code)
    print(f"error: {redact_text(why)}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    return typer.Exit(code)


def hint_at(why: str) -> str:
    """What helps against a failure that is known by its words only: it happened in a job."""
    return Blocked.hint if "a private network, which is not allowed" in why else ""


def make_console() -> Console:
    """Where people read: in colour on a terminal, unless NO_COLOR is set."""
    from rich.console import Console  # not at the top: it takes a tenth of a listing

    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(color_system=colours, highlight=False)


class StatusLine:
    """How far something is, in one line that is drawn anew, on stderr."""

    def __init__(self, *, is_shown: bool) -> None:
        from rich.console import Console

        self._status = Console(stderr=True, highlight=False).status("") if is_shown else None

    def __enter__(self) -> StatusLine:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, text: str) -> None:
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(text))


def print_json(value: Any) -> None:
    """JSON on stdout, indented; datetimes as ISO 8601."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    sys.stdout.write(text + "\n")


def print_preview(would: str, fields: Mapping[str, Any], as_json: bool) -> None:
    """What a command that waits for --yes would do; `would` is a clause like "remove x"."""
    if as_json:
        print_json({"is_done": False, **fields})
    else:
        print(f"would {would}: add --yes")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table as wide as the terminal."""
    width = shutil.get_terminal_size().columns
    for line in table_lines(columns, rows, width, is_coloured=_is_coloured()):
        print(line)


def _is_coloured() -> bool:
    """Where rich would print colours; to load it takes as long as to read the jobs of a table."""
    if os.environ.get("NO_COLOR"):
        return False
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    return is_terminal or bool(os.environ.get("FORCE_COLOR"))


def table_lines(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    width: int,
    *,
    is_coloured: bool = False,
) -> Iterator[str]:
    """A table no wider than this; if need be columns in which there is nothing are left out, ids
    are cut to a beginning that still names the job, then the widest cells. A column whose name ends
    in # is set to the right."""
    cells = [[column.rstrip("#") for column in columns]]
    cells += [[_cell(value) for value in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > width:
        columns, cells = _without_empty(columns, cells)
        widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    widths = _fitted(widths, columns, width)
    for number, row in enumerate(cells):
        shown = [
            _painted(
                _set(text, room, column),
                (_style(text, column) if number else BOLD) if is_coloured else "",
            )
            for text, room, column in zip(row, widths, columns, strict=True)
        ]
        yield "  ".join(shown).rstrip()


def _painted(text: str, style: str) -> str:
    word = text.strip()
    return text.replace(word, f"\033[{style}m{word}\033[0m", 1) if style and word else text


def _without_empty(
    columns: Sequence[str], cells: list[list[str]]
) -> tuple[Sequence[str], list[list[str]]]:
    told = [
        any(text not in ("", "-") for text in column) for column in zip(*cells[1:], strict=True)
    ]
    if not any(told):
        return columns, cells
    return list(compress(columns, told)), [list(compress(row, told)) for row in cells]


def _style(text: str, column: str) -> str:
    return STATE_STYLES.get(JobState(text), "") if column == "state" and text in STATES else ""


def _fitted(widths: list[int], columns: Sequence[str], width: int) -> list[int]:
    """Widths cut down until a line fits."""
    room = width - 2 * (len(widths) - 1)
    if sum(widths) > room:
        widths = [
            min(wide, SHORT_ID) if column == "id" else wide
            for wide, column in zip(widths, columns, strict=True)
        ]
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda i: -1 if columns[i] == "id" else widths[i])
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _set(text: str, width: int, column: str) -> str:
    if _width(text) > width:
        # What is left of an id is copied to the next command: nothing may be added to it.
        return text[:width] if column == "id" else _shortened(text, width - 1) + "…"
    gap = " " * (width - _width(text))
    return gap + text if column.endswith("#") else text + gap


def _width(text: str) -> int:
    """How many columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # not at the top: most tables need no rich

    return cell_len(text)


def _shortened(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    from rich.cells import set_cell_size

    return set_cell_size(text, width)


def job_fields(job: Job) -> dict[str, Any]:
    """A job for JSON: everything a person may want to see of it."""
    shown = (
        "id seq queue kind state priority attempts crashes runs max_attempts max_crashes "
        "created_at run_at started_at finished_at expires_at tenant group root_of unique error "
        "worker lease_expires_at stop_as limits max_hold_seconds is_cleaned headers tags payload "
        "result errors progress"
    )
    fields = {name: getattr(job, name) for name in shown.split()}
    return {**fields, "headers": redact(job.headers), "payload": redact(job.payload)}


def age(moment: datetime | None) -> str:
    """How long ago, in one short word."""
    if moment is None:
        return "-"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    sign, seconds = ("in ", -seconds) if seconds < 0 else ("", seconds)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{sign}{int(seconds // size)}{unit}"
    return f"{sign}{int(seconds)}s"


def _cell(value: object) -> str:
    return "-" if value is None else plain(" ".join(str(value).split()))


def plain(text: str) -> str:
    """Text that came from a job, without what a terminal would obey."""
    return "".join(
        char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def cut(text: str, width: int | None = None) -> str:
    """A line that fits the terminal."""
    return _set(_cell(text), width or shutil.get_terminal_size().columns, "").rstrip()


def print_fields(fields: Mapping[str, Any]) -> None:
    """One line for each field that says something."""
    width = max(map(len, fields))
    for name, value in fields.items():
        if value not in (None, (), {}, [], ""):
            print(f"{name:<{width}}  {plain(_spelled(value))}")


def _spelled(value: Any) -> str:
    if isinstance(value, datetime):
        ago = "" if value > datetime.now(UTC) else " ago"
        return f"{value.isoformat(sep=' ', timespec='seconds')} ({age(value)}{ago})"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return str(value)


def given_options(**options: Any) -> dict[str, Any]:
    """The options somebody gave. Those left out keep the defaults of what they are handed to."""
    return {name: value for name, value in options.items() if value is not None}


def parse_json(text: str) -> Any:
    """A value written as JSON on the command line."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"{text!r} is not JSON: {error}") from None


_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def parse_duration(text: str) -> float:
    """Seconds from what people write: 90, 90s, 30m, 2h, 7d, 1.5h."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a duration: write 90s, 30m, 2h or 7d") from None
    if not 0 <= seconds < float("inf"):
        raise typer.BadParameter(f"{text!r} is not a duration that can have passed")
    return seconds


def parse_time(text: str) -> datetime:
    """A time in ISO 8601; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a time: write 2026-01-31T02:30+01:00") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
