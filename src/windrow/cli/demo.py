"""`windrow demo`: all of it at work, in less than a minute."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from windrow.cli.output import (
    FAILED,
    INTERRUPTED,
    DatabaseOption,
    JsonOption,
    StatusLine,
    make_console,
    plain,
    print_json,
    run,
)

if TYPE_CHECKING:
    from windrow.search.request import Found
    from windrow.services.demo.tour import Killed, Seen
    from windrow.services.knowledge_runs import AddRun

SNIPPET = 150


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave it running, with its dashboard, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of the dashboard; 0: a free one.")
    ] = 0,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Crawl, read, search, and kill a worker, on this machine only and in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="windrow-demo-") as folder:
        run(_show(Path(folder), database, port, keep, as_json))


async def _show(folder: Path, database: str | None, port: int, keep: bool, as_json: bool) -> None:
    # Not at the top: other commands start without them.
    from windrow.services.attending import Interrupted
    from windrow.services.demo.tour import tour

    with StatusLine(is_shown=not as_json and sys.stderr.isatty()) as line:
        audience = Spectator(line, is_silent=as_json)
        try:
            async with tour(folder, database, port, audience) as seen:
                line.show("")
                if as_json:
                    print_json(_fields(seen))
                else:
                    _tell_the_end(seen, keep)
                if keep:
                    await _until_interrupted(line)
        except Interrupted:
            raise typer.Exit(INTERRUPTED) from None
    if seen.killed is not None and seen.killed.lost:
        raise typer.Exit(FAILED)


class Spectator:
    """Prints what is shown, a step after the other; how far one is, in a line that goes again."""

    def __init__(self, line: StatusLine, *, is_silent: bool) -> None:
        self._line = line
        self._console = make_console()
        self._is_silent = is_silent
        self._steps = 0

    def begin(self, step: str) -> None:
        self._steps += 1
        self._line.show(step)
        self._print(Text.assemble((f"\n{self._steps}. ", "dim"), (step, "bold")))

    def began(self, address: str) -> None:
        self._print(f"   dashboard and HTTP API at {address}/")

    def progress(self, words: str) -> None:
        self._line.show(words)

    def added(self, done: AddRun) -> None:
        counts, result = done.info.counts, done.job.result
        left_out = result.get("left_out", {}) if isinstance(result, dict) else {}
        told = [counted(done.info.documents, "document")]
        told += [counted(counts.chunks, "chunk")] if counts else []
        told += [f"{count} left out: {why}" for why, count in left_out.items()]
        self._print("   " + ", ".join(told))

    def found(self, query: str, results: Sequence[Found]) -> None:
        for one in results:
            place = " > ".join([one.title or one.uri, *one.headings[1:]])
            why = ", ".join(f"{name} #{rank}" for name, rank in one.why.items())
            self._print(Text.assemble("   ", (place, "cyan"), (f"  {why}", "dim")))
        if results:
            words = " ".join(plain(results[0].snippet).split())
            self._print(f"   “{words[:SNIPPET]}{'…' if len(words) > SNIPPET else ''}”")

    def killed(self, killed: Killed) -> None:
        from windrow.services.demo.tour import describe

        self._print(f"   process {killed.pid} was killed: {describe(killed.before)}")
        self._print(
            f"   at the end: {describe(killed.after)}; {killed.crashes} of them ran again, "
            f"{killed.lost or 'none'} lost"
        )

    def _print(self, what: Text | str) -> None:
        if not self._is_silent:
            self._console.print(what, soft_wrap=True)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _tell_the_end(seen: Seen, keep: bool) -> None:
    print()
    if keep:
        print(f"The dashboard is at {seen.address}/ until you press Ctrl-C.")
    else:
        print(f"The dashboard was at {seen.address}/; `windrow demo --keep` leaves it running.")
    print(
        "Go on with your own:\n"
        "  windrow add ./docs                    # or a URL, or - for a note\n"
        '  windrow search "what you look for"\n'
        "  windrow serve                         # dashboard and HTTP API"
    )


async def _until_interrupted(line: StatusLine) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    line.show("running; Ctrl-C ends it")
    sys.stdout.flush()
    await told.wait()


def _fields(seen: Seen) -> dict[str, Any]:
    killed = seen.killed
    return {
        "dashboard": f"{seen.address}/",
        "sources": [
            {"title": info.source.title, "kind": info.source.kind, "documents": info.documents}
            for info in seen.sources
        ],
        "searches": {
            query: [{"title": one.title, "uri": one.uri, "score": one.score} for one in results]
            for query, results in seen.searches.items()
        },
        "killed": killed
        and {"before": killed.before, "after": killed.after, "crashes": killed.crashes},
    }
