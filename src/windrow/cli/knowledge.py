"""`windrow add`, `windrow watch`, `windrow sources`: what is known, and how it comes in."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from windrow.cli.lazy import Noun
from windrow.cli.output import (
    INTERRUPTED,
    DatabaseOption,
    JsonOption,
    StatusLine,
    YesOption,
    age,
    ask,
    give_up,
    given_options,
    hint_at,
    load,
    parse_duration,
    plain,
    print_fields,
    print_json,
    print_table,
    run,
)
from windrow.settings import Settings

if TYPE_CHECKING:
    from windrow.catalog.sources import Source
    from windrow.queue.queue import Queue
    from windrow.services.knowledge import SourceInfo, SourceNotes
    from windrow.services.knowledge_runs import AddRun, Lost
    from windrow.services.watching import Seen

T = TypeVar("T")

TenantOption = Annotated[str | None, typer.Option(help="Whose it is.")]
ConcurrencyOption = Annotated[
    int, typer.Option(help="Jobs at once, if no other worker takes them.")
]

IncludeSecretsOption = Annotated[
    bool, typer.Option("--include-secrets", help="Index files that hold secrets, as they are.")
]

app = Noun(help="List, show, refresh, export, import and remove sources.", no_args_is_help=True)


def add(
    what: Annotated[
        str, typer.Argument(metavar="PATH|URL|-", help="Or library:NAME; `-`: a note from stdin.")
    ],
    collection: Annotated[str, typer.Option(help="Where it is searched.")] = "default",
    tenant: TenantOption = None,
    title: Annotated[str | None, typer.Option(help="What it is called.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Give it a tag.")] = None,
    every: Annotated[
        str | None, typer.Option(help="Look at it again each time, like 1h or 7d.")
    ] = None,
    patterns: Annotated[
        list[str] | None, typer.Option("--pattern", help="Of a folder: only files like *.md.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", help="Of a folder: leave out, like drafts/.")
    ] = None,
    depth: Annotated[int | None, typer.Option(help="Of a folder or site: how deep.")] = None,
    follow_symlinks: Annotated[
        bool, typer.Option("--follow-symlinks", help="Of a folder: go where links lead.")
    ] = False,
    include_secrets: IncludeSecretsOption = False,
    limit: Annotated[int | None, typer.Option(help="Of a site: the most pages.")] = None,
    page: Annotated[bool, typer.Option("--page", help="Of a URL: that page alone.")] = False,
    url: Annotated[
        str | None, typer.Option(help="Of a library: its documentation, a URL or a folder.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Until it can be found?")] = True,
    concurrency: ConcurrencyOption = 10,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a file, a folder, a project, a site, a page, a library or a note, so that it is found."""
    settings = load(database)
    from windrow.services.knowledge import AddOptions
    from windrow.services.knowledge_runs import run_add

    options = AddOptions(
        collection=collection,
        tenant=tenant,
        title=title,
        tags=tags or (),
        refresh_seconds=None if every is None else round(parse_duration(every)),
        walk=given_options(
            patterns=patterns,
            ignore_patterns=ignore,
            max_depth=depth,
            follow_symlinks=follow_symlinks or None,
            include_secrets=include_secrets or None,
        ),
        crawl=given_options(limit=limit, maxDiscoveryDepth=depth),
        is_page=page,
        url=url,
    )
    text = sys.stdin.read() if what == "-" else None
    with StatusLine(is_shown=not quiet and sys.stderr.isatty()) as line:
        done = run(
            run_add(
                settings,
                what,
                options,
                lambda info: line.show(_summary(info)),
                text=text,
                waits=wait,
                concurrency=concurrency,
            )
        )
    _tell(done, as_json)


def watch(
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Folders.")],
    collection: Annotated[str, typer.Option(help="Where they are searched.")] = "default",
    tenant: TenantOption = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Give them a tag.")] = None,
    include_secrets: IncludeSecretsOption = False,
    debounce: Annotated[str, typer.Option(help="How long changes are collected.")] = "1s",
    concurrency: ConcurrencyOption = 10,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add folders and keep what is known of them as they are, until Ctrl-C."""
    settings = load(database)
    from windrow.services.knowledge import AddOptions
    from windrow.services.watching import run_watch

    def tell(seen: Seen) -> None:
        if as_json:
            print_json(_seen_fields(seen))
        elif not quiet:
            print(_seen_line(seen), flush=True)

    options = AddOptions(
        collection=collection,
        tenant=tenant,
        tags=tags or (),
        walk=given_options(include_secrets=include_secrets or None),
    )
    run(
        run_watch(
            settings,
            paths,
            options,
            tell,
            debounce=parse_duration(debounce),
            concurrency=concurrency,
        )
    )


def _seen_fields(seen: Seen) -> dict[str, Any]:
    changes = seen.changes
    return {
        "source": seen.source.id,
        "uri": seen.source.uri,
        "health": seen.health.state,
        "error": seen.health.last_error,
        "events": changes.events if changes else 0,
        "is_scan": bool(changes and changes.is_scan),
        "files": list(changes.files) if changes else [],
        "jobs": seen.jobs,
    }


def _seen_line(seen: Seen) -> str:
    name = plain(seen.source.title)
    if seen.changes is None:
        return f"{name}: {seen.health.state}: {plain(seen.health.last_error or '')}"
    if seen.changes.is_scan:
        return f"{name}: looked at ({seen.changes.why})"
    return f"{name}: {', '.join(plain(file) for file in seen.changes.files)}"


@app.command("list")
def list_(
    collection: Annotated[str | None, typer.Option(help="Of this collection only.")] = None,
    tenant: TenantOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List sources: what they are, how much there is of each, when they were looked at."""
    from windrow.services.knowledge import list_sources

    found = _ask(lambda queue: list_sources(queue, tenant=tenant, collection=collection), database)
    if as_json:
        print_json([source_fields(info) for info in found])
        return
    print_table(
        ["id", "kind", "collection", "title", "docs#", "pending#", "refreshed#", "error"],
        [
            (
                info.source.id,
                info.source.kind,
                info.source.collection,
                info.source.title,
                info.documents,
                info.pending,
                age(info.source.refreshed_at),
                info.source.error,
            )
            for info in found
        ],
    )


@app.command("show")
def show(
    source: Annotated[str, typer.Argument(help="Its id, address, path or title.")],
    limit: Annotated[int, typer.Option(min=0, help="Most skipped files to list.")] = 100,
    after: Annotated[
        str | None, typer.Option(metavar="FILE", help="List skipped files after this one.")
    ] = None,
    tenant: TenantOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a source: options, counts, and files skipped or redacted, with the reason."""
    from windrow.services.knowledge import find_source, list_notes, reason_of

    async def look(queue: Queue) -> tuple[SourceInfo, SourceNotes]:
        info = await find_source(queue, source, tenant=tenant)
        return info, await list_notes(queue, info.source, after=after, limit=limit)

    info, notes = _ask(look, database)
    fields = source_fields(info) | {"skipped_by_reason": dict(notes.by_reason)}
    files = [(document.uri, document.branch, reason_of(document)) for document in notes.page]
    if as_json:
        listed = [{"uri": uri, "branch": branch, "reason": why} for uri, branch, why in files]
        print_json(fields | {"skipped_files": listed, "has_more_skipped": notes.has_more})
        return
    print_fields(fields)
    if files:
        print()
        print_table(["file", "branch", "reason"], files)
    if notes.has_more:
        following = plain(files[-1][0]) if files else ""
        print(f"There are more: add --after {shlex.quote(following)}", file=sys.stderr)


@app.command("refresh")
def refresh(
    source: Annotated[str, typer.Argument(help="Its id, address, path or title.")],
    tenant: TenantOption = None,
    concurrency: ConcurrencyOption = 10,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at a source again, with the options it was added with."""
    settings = load(database)
    from windrow.services.knowledge_runs import run_refresh

    with StatusLine(is_shown=not quiet and sys.stderr.isatty()) as line:
        done = run(
            run_refresh(
                settings,
                source,
                lambda info: line.show(_summary(info)),
                tenant=tenant,
                concurrency=concurrency,
            )
        )
    _tell(done, as_json)


@app.command("remove")
def remove(
    source: Annotated[str, typer.Argument(help="Its id, address, path or title.")],
    document: Annotated[
        str | None, typer.Option(help="Of it this document only, by its id or address.")
    ] = None,
    yes: YesOption = False,
    tenant: TenantOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a source with its documents, or one of these. Says only what would go, until you add
    --yes."""
    from windrow.services.knowledge import find_source, remove_source

    info = _ask(lambda queue: find_source(queue, source, tenant=tenant), database)
    if document is not None:
        _remove_document(info.source, document, database, yes=yes, as_json=as_json)
        return
    if yes:
        _ask(lambda queue: remove_source(queue, info.source), database)
    if as_json:
        print_json({"id": info.source.id, "documents": info.documents, "is_removed": yes})
    elif yes:
        print(f"removed {info.source.id}: {info.documents} documents")
    else:
        print(f"would remove {info.source.id}: {info.documents} documents; add --yes to do it")


def _remove_document(
    source: Source, named: str, database: str | None, *, yes: bool, as_json: bool
) -> None:
    from windrow.services.knowledge import remove_document
    from windrow.services.reading import find_document

    found = _ask(
        lambda queue: find_document(queue, named, tenant=source.tenant, source=source.id), database
    )
    if yes:
        _ask(lambda queue: remove_document(queue, found), database)
    if as_json:
        print_json({"id": found.id, "source": source.id, "uri": found.uri, "is_removed": yes})
        return
    name = plain(found.title or found.uri)
    print(f"removed {name}" if yes else f"would remove {name}; add --yes to do it")


@app.command("export")
def export(
    source: Annotated[str, typer.Argument(help="Its id, address, path or title.")],
    out: Annotated[
        Path | None, typer.Option(help="A folder, for Markdown files; else JSON lines to stdout.")
    ] = None,
    tenant: TenantOption = None,
    database: DatabaseOption = None,
) -> None:
    """Write a source and its documents as JSON lines, or as Markdown files."""
    import msgspec

    from windrow.services.exporting import export_folder, export_lines
    from windrow.services.knowledge import find_source

    async def write(queue: Queue) -> int | None:
        found = (await find_source(queue, source, tenant=tenant)).source
        if out is not None:
            return await export_folder(queue, found, out)
        async for line in export_lines(queue, found):
            print(msgspec.json.encode(line).decode())
        return None

    count = _ask(write, database)
    if count is not None:
        print(f"{count} written to {out}")


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(help="JSON lines as exported; `-`: from stdin.")],
    tenant: TenantOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in sources and documents that were exported; a worker makes them searchable."""
    from windrow.services.exporting import import_lines

    try:
        lines = sys.stdin.buffer if file == "-" else Path(file).open("rb")  # noqa: SIM115
    except OSError as error:
        raise give_up(str(error)) from None
    with lines:
        sources, documents = _ask(lambda queue: import_lines(queue, lines, tenant=tenant), database)
    if as_json:
        print_json({"sources": sources, "documents": documents})
    else:
        print(f"{sources} sources, {documents} documents")
        if documents:
            print("A worker (`windrow worker` or `windrow serve`) makes them searchable.")


def source_fields(info: SourceInfo) -> dict[str, Any]:
    source, counts = info.source, info.counts
    return {
        "id": source.id,
        "kind": source.kind,
        "uri": source.uri,
        "title": source.title,
        "collection": source.collection,
        "tenant": source.tenant,
        "tags": list(source.tags),
        "options": dict(source.options),
        "refresh_seconds": source.refresh_seconds,
        "documents": info.documents,
        "searchable": counts.searchable if counts else 0,
        "pending": info.pending,
        "skipped": counts.skipped if counts else 0,
        "chunks": counts.chunks if counts else 0,
        "jobs": info.jobs,
        "created_at": source.created_at,
        "refreshed_at": source.refreshed_at,
        "error": source.error,
    }


def _ask(work: Callable[[Queue], Coroutine[Any, Any, T]], database: str | None) -> T:
    """What a service says that takes a queue."""
    from windrow.services.jobs import open_queue

    async def answer(settings: Settings) -> T:
        async with open_queue(settings, migrate=None) as queue:
            return await work(queue)

    return ask(answer, database)


def _tell(done: AddRun, as_json: bool) -> None:
    from windrow.services.knowledge_runs import why_failed

    info, why = done.info, why_failed(done)
    if as_json:
        print_json(
            source_fields(info)
            | {"job": done.job.id, "result": done.job.result, "is_interrupted": done.is_interrupted}
            | {"not_indexed": done.lost.count if done.lost else 0}
        )
    else:
        print(f"{info.source.id}  {plain(info.source.title)}  {_summary(info)}")
    if done.lost is not None:
        print(_lost_line(done.lost, info.source.id), file=sys.stderr)
    if done.is_interrupted:
        print("Left as it is; a worker goes on with it.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    if why is not None:
        raise give_up(plain(why), hint=hint_at(why))


def _lost_line(lost: Lost, source: str) -> str:
    """How much could not be indexed, why, and what helps."""
    named = "1 document" if lost.count == 1 else f"{lost.count} documents"
    said = f"{named} could not be indexed: {plain(lost.why or 'no reason is known')}"
    helps = f"`windrow sources refresh {source}` tries it again"
    if lost.refused:
        helps = "change what is not taken, or the model, then " + helps.replace(" again", "")
    return f"{said}\nhint: {helps}"


def _summary(info: SourceInfo) -> str:
    parts = [f"{info.documents} documents"]
    if info.pending:
        parts.append(f"{info.pending} waiting for the index")
    if info.counts and info.counts.skipped:
        parts.append(f"{info.counts.skipped} skipped")
    if info.jobs:
        parts.append(f"{info.jobs} jobs to do")
    return ", ".join(parts)
