"""`windrow limits`: how many jobs with a key may run, and how often one may start."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windrow.cli.lazy import Noun
from windrow.cli.output import (
    DatabaseOption,
    JsonOption,
    YesOption,
    age,
    ask,
    given_options,
    parse_duration,
    print_json,
    print_preview,
    print_table,
)
from windrow.queue.records import LimitInfo
from windrow.services.queues import list_limits, park_key, remove_limit, set_limit

LimitKey = Annotated[str, typer.Argument(help="Which key.")]

app = Noun(help="List, set and remove limits; park a key.", no_args_is_help=True)


@app.command("list")
def list_(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """List keys that have a limit or jobs: what they allow, how many of their jobs run
    (in use), are ready and are held."""
    found = ask(list_limits, database)
    if as_json:
        print_json([limit_fields(info) for info in found])
        return
    print_table(
        [
            "key",
            "active#",
            "per second#",
            "burst#",
            "in use#",
            "ready#",
            "held#",
            "parked#",
        ],
        [
            (
                info.key,
                info.active,
                None if info.per_second is None else f"{info.per_second:g}",
                info.burst,
                info.in_use,
                info.ready,
                info.held,
                age(info.parked_until),
            )
            for info in found
        ],
    )


@app.command("set")
def set_(
    key: LimitKey,
    active: Annotated[int | None, typer.Option(help="So many jobs at once.")] = None,
    per_second: Annotated[float | None, typer.Option(help="So many starts a second.")] = None,
    burst: Annotated[int | None, typer.Option(help="So many starts at once.")] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a key allows, at once; what is left out is not limited."""
    allowed = given_options(active=active, per_second=per_second, burst=burst)
    info = ask(set_limit, database, key, **allowed)
    if as_json:
        print_json(limit_fields(info))
    else:
        print(f"{key}: {in_words(info)}")


@app.command()
def remove(
    key: LimitKey,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove the limit of a key, and end its parking. Jobs that it held may start."""
    if not yes:
        found = {info.key: info for info in ask(list_limits, database)}
        held = found[key].held if key in found else 0
        print_preview(f"remove the limit of {key}, which holds {held} jobs", {"key": key}, as_json)
        return
    was_set = ask(remove_limit, database, key)
    if as_json:
        print_json({"is_done": True, "key": key, "was_set": was_set})
    else:
        print(f"removed the limit of {key}" if was_set else f"{key} had no limit")


@app.command()
def park(
    key: LimitKey,
    time: Annotated[
        float | None,
        typer.Argument(parser=parse_duration, metavar="TIME", help="As 90s, 30m, 2h."),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Go on at once.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start no job with this key for a time. Jobs that run go on."""
    if (time is None) != off:
        raise typer.BadParameter("say for how long, as 90s or 30m, or --off")
    info = ask(park_key, database, key, time)
    if as_json:
        print_json(limit_fields(info))
    elif info.parked_until is None:
        print(f"{key} goes on")
    else:
        print(f"{key} is parked until {info.parked_until}")


def in_words(info: LimitInfo) -> str:
    """What a key allows, in a few words."""
    parts = []
    if info.active is not None:
        parts.append(f"{info.active} active")
    if info.per_second is not None:
        parts.append(f"{info.per_second:g} per second")
    if info.burst is not None:
        parts.append(f"burst {info.burst}")
    return ", ".join(parts) or "not limited"


def limit_fields(info: LimitInfo) -> dict[str, Any]:
    """A key for JSON."""
    shown = "key active per_second burst in_use ready held parked_until"
    return {name: getattr(info, name) for name in shown.split()}
