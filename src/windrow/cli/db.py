"""`windrow db`: the database's tables."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from windrow.cli import cron, dialect, rls
from windrow.cli.lazy import Noun
from windrow.cli.output import (
    DatabaseOption,
    JsonOption,
    YesOption,
    ask,
    give_up,
    load,
    print_json,
    print_preview,
    print_table,
    run,
)
from windrow.cli.queues import print_queues
from windrow.queue.job import JobState
from windrow.queue.sqlite.backups import Backup
from windrow.services.copying import SETTLE_SECONDS, WAIT_SECONDS, CopyReport, copy_database
from windrow.services.database import (
    back_up_database,
    database_status,
    migrate_database,
    restore_database,
)
from windrow.services.jobs import count_expired, prune_jobs
from windrow.services.taking_back import count_leaving, take_back_jobs
from windrow.settings import load_settings

app = Noun(help="Make, upgrade and look at the database.", no_args_is_help=True)
app.add_typer(cron.app, name="cron")
app.add_typer(dialect.app, name="dialect")
app.add_typer(rls.app, name="rls")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; it must not be there.")],
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy an SQLite database to a file while it is in use. Postgres has pg_dump for that."""
    _print_backup(ask(back_up_database, database, file), "backed up to", as_json)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `db backup` wrote.")],
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an SQLite database anew from a backup. Stop workers, and move the old file away first;
    the index is built again when they start."""
    _print_backup(ask(restore_database, database, file), "restored to", as_json)


@app.command()
def migrate(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Bring the tables up to date. Safe to run twice, or from two places at once."""

    async def work() -> list[str]:
        return await migrate_database(load_settings({"database_url": database}).database_url)

    applied = run(work())
    if as_json:
        print_json({"applied": applied})
    elif applied:
        print("\n".join(f"applied {name}" for name in applied))
    else:
        print("nothing to do: the tables are up to date")


@app.command()
def status(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show the schema version and the queues. Exit code 1 when the tables do not fit."""

    async def work() -> None:
        settings = load_settings({"database_url": database})
        found = await database_status(
            settings.database_url, settings.database_direct_url, settings.notifier
        )
        if as_json:
            print_json(found)
        else:
            print(f"{found.url}\nschema version {found.version}")
            if found.problem is None:
                print_queues(found.queues)
            for target in found.leaving_for:
                print(f"jobs are on their way to {target}: run `windrow db copy` there again")
            if found.polls_because is not None:
                print(f"new work is found by polling: {found.polls_because}")
        if found.problem is not None:
            raise give_up(found.problem)

    run(work())


@app.command()
def index(
    here: Annotated[
        bool, typer.Option("--here", help="Move it to this machine's folder, to be built again.")
    ] = False,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where the search index is, or move an embedded one to this machine."""
    from windrow.services.index_folder import move_here, show_place

    settings = load(database)
    moves = here and yes
    if moves:
        run(move_here(settings))
    place = run(show_place(settings))
    folder = place.recorded
    if as_json:
        print_json(
            {
                "home": place.home,
                "host": folder.host if folder else None,
                "path": folder.path if folder else None,
                "is_here": place.is_here,
                "is_moved": moves,
            }
        )
    elif folder is None:
        print(
            "in a folder of the first worker that writes it" if place.home == "edge" else place.home
        )
    else:
        print(f"{folder.path} on {folder.host}, which is {'' if place.is_here else 'not '}here")
        if moves:
            print("the next worker or command that indexes builds it again from the documents")
        elif here and not place.is_here:
            print("would be moved to this machine; add --yes to do it")


@app.command()
def install(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What: video.")],
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set up a pipeline's table, with its trigger and queues. Safe to repeat."""
    if name != "video":
        raise typer.BadParameter(f"there is no {name!r} to install; there is: video")
    from windrow.services.jobs import open_queue
    from windrow.services.video import Installed, install_video

    async def work() -> Installed:
        settings = load_settings({"database_url": database})
        async with open_queue(settings, migrate=None) as queue:
            return await install_video(queue, settings)

    done = run(work())
    if as_json:
        print_json(asdict(done))
        return
    print("clipnest_videos is set up" if done.is_new else "clipnest_videos is up to date")
    if done.is_visible:
        print("its queues are pgmq.q_scrape_jobs and pgmq.q_enrich_jobs")
    else:
        print(f"its queues are scrape_jobs and enrich_jobs, not seen as PGMQ's: {done.why_not}")


@app.command()
def prune(
    archive: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write jobs there first, as JSON lines.")
    ] = None,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove jobs and groups that are past their time now; workers do it all the time."""
    if not yes:
        jobs = ask(count_expired, database)
        print_preview(f"remove up to {jobs} jobs that are past their time", {"jobs": jobs}, as_json)
        return
    pruned = ask(prune_jobs, database, archive)
    if as_json:
        print_json({"is_done": True, "jobs": pruned.jobs, "groups": pruned.groups})
    else:
        print(f"removed {pruned.jobs} jobs and {pruned.groups} groups")


@app.command()
def copy(
    to: Annotated[
        str | None, typer.Option("--to", metavar="URL", help="Where everything moves.")
    ] = None,
    wait: Annotated[
        float, typer.Option(help="Seconds to wait for running jobs before they are left behind.")
    ] = WAIT_SECONDS,
    settle: Annotated[
        float, typer.Option(help="Seconds for which nothing has come to a group that moves.")
    ] = SETTLE_SECONDS,
    drain: Annotated[
        bool, typer.Option("--drain", help="Pause the queues here first: nothing starts any more.")
    ] = False,
    yes: YesOption = False,
    take_back: Annotated[
        bool,
        typer.Option(
            "--take-back",
            help="Give up: what is on its way becomes live here again. With --to the target is "
            "asked first what it has; without, if it is lost, nobody can tell.",
        ),
    ] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move all jobs to another database while they are in use; without --yes, only say what would
    move. Run it again if it was interrupted.

    Exit code 3 when something was left behind."""

    url = load_settings({"database_url": database}).database_url
    if take_back and not yes:
        jobs = run(count_leaving(url))
        print_preview(f"take back {jobs} jobs that are on their way", {"jobs": jobs}, as_json)
        return
    if take_back:
        _take_back(url, to, as_json)
        return
    if to is None:
        raise typer.BadParameter("say where to: --to URL", param_hint="--to")
    report = run(
        copy_database(url, to, wait=wait, settle=settle, is_draining=drain, is_dry_run=not yes)
    )
    if as_json:
        fields = asdict(report) | {"moved": dict(report.moved)}
        print_json({"is_over": report.is_over, **fields})
    else:
        _print_copy(report)
    if not report.is_over and not report.is_dry_run:
        raise typer.Exit(3)


def _take_back(url: str, to: str | None, as_json: bool) -> None:
    report = run(take_back_jobs(url, to))
    if report.warning is not None:
        typer.echo(f"warning: {report.warning}", err=True)
    if as_json:
        print_json({"is_over": report.is_over, **asdict(report)})
    else:
        print(
            f"{report.taken_back} jobs and {report.groups} groups are live in {report.source} again"
        )
        if report.arrived:
            print(f"{report.arrived} jobs had arrived in {report.target} and stay there")
        if report.reasons:
            print("still on their way:")
            print_table(["id", "why"], list(report.reasons.items()))
    if not report.is_over:
        raise typer.Exit(3)


def _print_copy(report: CopyReport) -> None:
    print(f"from {report.source}\nto   {report.target}")
    verb = "would move" if report.is_dry_run else "moved"
    states = [state for state in JobState if report.moved[state]]
    shown = ", ".join(f"{report.moved[state]} {state}" for state in states)
    print(f"{verb} {report.moved.total()} jobs{': ' if shown else ''}{shown}")
    print(f"{report.groups} groups, {report.schedules} schedules, {report.limits} limits")
    if report.known:
        print(f"{report.known} were there already")
    if report.resumed:
        print(f"{report.resumed} parcels of an earlier copy handed over again")
    if not report.is_dry_run:
        same = "the same" if report.sent == report.received else "DIFFERENT"
        print(f"{report.checked} jobs read back, checksum {report.received or '-'}: {same}")
        _print_counts(report)
    if report.reasons:
        print("left behind:" if not report.is_dry_run else "note:")
        print_table(["id", "why"], list(report.reasons.items()))
    if report.is_dry_run:
        print("nothing was moved: add --yes")


def _print_counts(report: CopyReport) -> None:
    """Jobs of both sides by queue and state, before and after."""
    parts = [each[side] for side in ("source", "target") for each in (report.before, report.after)]
    queues = sorted({name for part in parts for name in part})
    rows = [
        [queue, state, *(part.get(queue, {}).get(state, 0) for part in parts)]
        for queue in queues
        for state in JobState
        if any(state in part.get(queue, {}) for part in parts)
    ]
    if rows:
        print_table(["queue", "state", "here before#", "after#", "there before#", "after#"], rows)


def _print_backup(done: Backup, verb: str, as_json: bool) -> None:
    if as_json:
        print_json(asdict(done))
    else:
        print(f"{verb} {done.path}: {done.bytes:,} bytes, schema version {done.version}")
