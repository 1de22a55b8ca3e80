"""`windrow calls`: recordings of calls, on their way to a transcript and what is made of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from msgspec import structs

from windrow.cli.lazy import Noun
from windrow.cli.output import (
    INTERRUPTED,
    DatabaseOption,
    JsonOption,
    StatusLine,
    age,
    ask,
    give_up,
    load,
    plain,
    print_fields,
    print_json,
    print_table,
    run,
)
from windrow.settings import Settings

if TYPE_CHECKING:
    from windrow.catalog.calls import Call
    from windrow.queue.queue import Queue
    from windrow.services.calls import CallInfo

T = TypeVar("T")

app = Noun(help="Add, list and show recordings of calls.", no_args_is_help=True)
OrgOption = Annotated[str | None, typer.Option("--org", metavar="ID", help="Whose they are.")]


@app.command("add")
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording, or a film.")],
    org: Annotated[str | None, typer.Option("--org", metavar="ID", help="Whose it is.")] = None,
    collection: Annotated[str, typer.Option(help="Where it is searched.")] = "default",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Until it is analysed?")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have a call transcribed, analysed and made searchable."""
    settings = load(database)
    from windrow.services.calls import run_add

    with StatusLine(is_shown=not quiet and sys.stderr.isatty()) as line:
        done = run(
            run_add(
                settings,
                file,
                lambda info: line.show(progress(info)),
                org=org,
                collection=collection,
                waits=wait,
            )
        )
    if as_json:
        print_json(call_fields(done.info))
    else:
        print(f"{done.info.call.id}  {plain(_title(done.info.call))}  {progress(done.info)}")
    if done.is_interrupted:
        print("Left as it is; a worker goes on with it.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    if done.info.call.status == "failed":
        raise give_up(plain(done.info.call.error or "failed"))


@app.command("show")
def show(
    call: Annotated[str, typer.Argument(metavar="ID", help="As `calls add` prints it.")],
    org: OrgOption = None,
    transcript: Annotated[bool, typer.Option("--transcript", help="With what was said.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a call: how far it is, stage by stage, and what was made of it."""
    from windrow.services.calls import get_call, get_transcript

    info = _ask(lambda queue: get_call(queue, call, org=org), database)
    fields = call_fields(info)
    if transcript:
        found = run(get_transcript(load(database), info.call))
        lines = [] if found is None else [structs.asdict(line) for line in found.lines]
        fields["transcript"] = lines if as_json else "\n".join(one["text"] for one in lines)
    if as_json:
        print_json(fields)
        return
    shown = {**fields, "stages": ", ".join(_stage(one) for one in fields["stages"])}
    shown["artifacts"] = ", ".join(f"{one.name} ({one.size} bytes)" for one in info.artifacts)
    print_fields(shown)


@app.command("list")
def list_(
    org: OrgOption = None,
    status: Annotated[str | None, typer.Option(help="Only these: done, failed, …")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at the most.")] = 50,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List calls, the newest first."""
    from windrow.services.calls import list_calls

    found = _ask(lambda queue: list_calls(queue, org=org, status=status, limit=limit), database)
    if as_json:
        print_json([_row_fields(call) for call in found])
        return
    print_table(
        ["id", "org", "status", "seconds#", "age#", "title", "error"],
        [
            (
                call.id,
                call.tenant,
                call.status,
                None if call.seconds is None else round(call.seconds),
                age(call.created_at),
                _title(call),
                call.error,
            )
            for call in found
        ],
    )


def call_fields(info: CallInfo) -> dict[str, Any]:
    analysis = dict(info.call.analysis or {})
    return {
        **_row_fields(info.call),
        "stages": [
            {"name": one.name, "state": one.state, "message": one.message} for one in info.stages
        ],
        "artifacts": [
            {"name": one.name, "key": one.key, "size": one.size} for one in info.artifacts
        ],
        **{name: analysis[name] for name in analysis if name != "title"},
    }


def progress(info: CallInfo) -> str:
    """How far a call is, in a few words."""
    if info.is_settled:
        return info.call.status
    running = next((one for one in info.stages if one.state == "running"), None)
    name = running.name if running else info.call.status
    message = f": {running.message}" if running and running.message else ""
    return f"{name} ({info.done + 1} of {len(info.stages)}){plain(message)}"


def _row_fields(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "org": call.tenant,
        "file": call.name,
        "title": (call.analysis or {}).get("title"),
        "status": call.status,
        "error": call.error,
        "seconds": call.seconds,
        "note": call.note,
        "collection": call.collection,
        "created_at": call.created_at,
    }


def _stage(fields: dict[str, Any]) -> str:
    message = f" ({plain(fields['message'])})" if fields["message"] else ""
    return f"{fields['name']} {fields['state']}{message}"


def _title(call: Call) -> str:
    return (call.analysis or {}).get("title") or call.name


def _ask(work: Callable[[Queue], Coroutine[Any, Any, T]], database: str | None) -> T:
    from windrow.services.jobs import open_queue

    async def answer(settings: Settings) -> T:
        async with open_queue(settings, migrate=None) as queue:
            return await work(queue)

    return ask(answer, database)
