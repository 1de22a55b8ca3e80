"""`windrow groups`: jobs that belong together, steered as one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windrow.cli.lazy import Noun
from windrow.cli.output import (
    AfterOption,
    DatabaseOption,
    JsonOption,
    YesOption,
    age,
    ask,
    given_options,
    print_fields,
    print_json,
    print_table,
)
from windrow.queue.job import JobState
from windrow.queue.records import Group
from windrow.services.jobs import (
    cancel_group,
    get_group,
    list_groups,
    pause_group,
    resume_group,
)

app = Noun(help="List, show, pause, resume and cancel groups.", no_args_is_help=True)

GroupId = Annotated[str, typer.Argument(metavar="GROUP", help="Its id, or the beginning of it.")]


@app.command("list")
def list_(
    state: Annotated[
        str | None, typer.Option(help="Only active, completed or cancelled ones.")
    ] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Only paused ones.")] = False,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's.")] = None,
    after: AfterOption = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at the most.")] = 50,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List groups, newest first."""
    wanted = given_options(state=state, is_paused=paused or None, tenant=tenant, after=after)
    found = ask(list_groups, database, **wanted, limit=limit)
    if as_json:
        print_json([group_fields(group) for group in found])
        return
    print_table(
        ["id", "state", "left#", "done#", "failed#", "cancelled#", "age#"],
        [
            (
                group.id,
                "paused" if group.is_paused and group.state == "active" else group.state,
                group.pending,
                *(group.counts.get(state, 0) for state in (JobState.COMPLETED, JobState.FAILED)),
                group.counts.get(JobState.CANCELLED, 0),
                age(group.created_at),
            )
            for group in found
        ],
    )
    if len(found) == limit:
        print(f"more: --after {found[-1].id}")


@app.command()
def show(group: GroupId, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show one group with its jobs by state."""
    found = ask(get_group, database, group)
    if as_json:
        print_json(group_fields(found))
        return
    print_fields(group_fields(found))
    print(f"\nits jobs: windrow jobs list --group {found.id}")


@app.command()
def pause(group: GroupId, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Start no more jobs of a group. Running ones go on."""
    _print_done(ask(pause_group, database, group), "paused", as_json)


@app.command()
def resume(group: GroupId, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Let a paused group go on."""
    _print_done(ask(resume_group, database, group), "resumed", as_json)


@app.command()
def cancel(
    group: GroupId,
    reason: Annotated[str, typer.Option(help="Kept with each job.")] = "group cancelled by hand",
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel what waits in a group and tell what runs. It takes no more jobs."""
    if yes:
        found = ask(cancel_group, database, group, reason)
        if found.is_cancelled:
            _print_done(found, "cancelled", as_json)
            return
    else:
        found = ask(get_group, database, group)
    running = found.counts.get(JobState.ACTIVE, 0)
    if as_json:
        print_json({"is_done": False, **group_fields(found)})
    elif found.state != "active":
        print(f"group {found.id} has ended: there is nothing to cancel")
    else:
        waiting = found.pending - running
        print(f"{waiting} jobs would be cancelled and {running} running ones told: add --yes")


def group_fields(group: Group) -> dict[str, Any]:
    """A group for JSON."""
    shown = (
        "id state is_paused is_open pending members max_jobs counts root tenant created_at ended_at"
    )
    return {name: getattr(group, name) for name in shown.split()}


def _print_done(group: Group, done: str, as_json: bool) -> None:
    if as_json:
        print_json({"is_done": True, **group_fields(group)})
    else:
        print(f"{done} {group.id}: {group.pending} jobs left")
