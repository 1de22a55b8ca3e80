"""`windrow search`: what was ingested, by meaning and by words.

It works while `windrow serve` or a worker runs, whose index it asks then, and without any.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from windrow.cli.output import (
    MISUSED,
    DatabaseOption,
    JsonOption,
    give_up,
    load,
    make_console,
    print_json,
    run,
)

if TYPE_CHECKING:
    from windrow.search.request import Found

SNIPPET_LINES = 4
MODES = ("hybrid", "semantic", "keyword", "exact")


def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY…", help="What is looked for.")],
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            "-m",
            help="hybrid; semantic: by meaning; keyword: by words; exact: as it is written.",
        ),
    ] = "hybrid",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="How many.")] = 10,
    collection: Annotated[
        list[str] | None, typer.Option("--collection", "-c", help="Only these.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", help="Only these, by id, address, path or title."),
    ] = None,
    path: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Like src/**/*.py, or https://host/docs/**.")
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option("--language", "-l", help="Only code or text in it.")
    ] = None,
    branch: Annotated[str | None, typer.Option(help="Only of this branch.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", help="All of these.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Default: those of all.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Documents from then on, like 2026-01-31.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help="Documents up to then.")] = None,
    per_document: Annotated[
        int, typer.Option(min=1, help="Places of one document that are shown.")
    ] = 1,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Put what was found in order by WINDROW_RERANK_URL.")
    ] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search what was ingested."""
    if mode not in MODES:
        raise give_up(f"--mode must be one of {', '.join(MODES)}, not {mode!r}", MISUSED)
    settings = load(database)
    # For one question the threads of BLAS only spin: 0.1 s of CPU. It reads this when numpy loads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Not at the top: other commands start without them.
    from windrow.search.request import SearchRequest
    from windrow.services.searching import find_source_ids
    from windrow.services.searching import search as search_for

    request = SearchRequest(
        query=" ".join(query),
        mode=mode,  # type: ignore[arg-type]
        limit=limit,
        tenant=tenant,
        collections=tuple(collection or ()),
        sources=tuple(run(find_source_ids(settings, source, tenant))) if source else (),
        path=path,
        languages=tuple(language or ()),
        branch=branch,
        tags=tuple(tag or ()),
        since=_moment(since, "--since"),
        until=_moment(until, "--until"),
        per_document=per_document,
        rerank=rerank,
    )
    answer = run(search_for(settings, request))
    if as_json:
        print_json(answer)
        return
    console = make_console()
    if answer.warning:
        console.print(Text(answer.warning, "yellow"))
    if not answer.results:
        console.print("Nothing was found.")
    for number, found in enumerate(answer.results, 1):
        for line in _lines(number, found):
            console.print(line, soft_wrap=True)
        console.print(Padding(_shown(found, console), (0, 0, 0, 3)))
        console.print()


def _lines(number: int, found: Found) -> list[Text]:
    """Of a result: what it is, where, and the way there through its headings."""
    title = Text.assemble((f"{number}. ", "dim"), (found.title or found.uri, "bold"))
    title.append(f"  {found.score:.4g}", "green")
    why = ", ".join(f"{name} #{rank}" for name, rank in found.why.items())
    title.append(f"  ({why})", "dim")
    place = Text("   ").append(found.uri, "cyan")
    if found.branch:
        place.append(f" @{found.branch}", "cyan")
    place.append(f"  {found.collection}/{found.source}", "dim")
    lines = [title, place]
    if way := [heading for heading in found.headings if heading != found.title]:
        lines.append(Text("   " + " > ".join(way), "italic"))
    return lines


def _shown(found: Found, console: Console) -> Text:
    """A few lines of what it says as one reads it, with the words that were looked for."""
    from windrow.search.snippets import in_one_line

    text, last = Text(), 0
    for start, end in (*found.highlights, (len(found.snippet), len(found.snippet))):
        text.append(in_one_line(found.snippet[last:start]))
        text.append(in_one_line(found.snippet[start:end]), "bold yellow")
        last = end
    lines = text.wrap(console, max(console.width - 5, 20))
    shown = Text("\n").join(lines[:SNIPPET_LINES])
    return shown.append(" …") if len(lines) > SNIPPET_LINES else shown


def _moment(text: str | None, option: str) -> float | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise give_up(f"{option} takes a date like 2026-01-31, not {text!r}", MISUSED) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
