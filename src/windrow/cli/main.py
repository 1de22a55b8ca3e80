"""`windrow`: the command itself. Its commands are in modules by noun, loaded when they are called;
here stands what `--help` says of them."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Annotated, Final

import typer

from windrow import __version__
from windrow.cli.lazy import Command, commands

_NOUNS: Final = {
    "calls": "Add, list and show recordings of calls.",
    "credentials": "Add, list and remove credentials of sites.",
    "db": "Make, upgrade and look at the database.",
    "groups": "List, show, pause, resume and cancel groups.",
    "jobs": "Add, list, show, retry, edit, cancel and clean up jobs.",
    "keys": "Make, list and revoke keys of the HTTP API.",
    "limits": "List, set and remove limits; park a key.",
    "migrate": "Bring in work that other queues hold.",
    "queues": "List, look at, pause, resume and bound queues.",
    "schedules": "Add, list, show, pause, resume and remove schedules.",
    "video": "Add videos and look at what is said in them.",
}
_VERBS: Final = {
    "bench": (
        "Measure how many jobs a second this database does, with jobs that do nothing. They have a "
        "queue of their own and are deleted at the end."
    ),
    "demo": (
        "Crawl, read, search, and kill a worker, on this machine only and in a temporary folder."
    ),
    "doctor": (
        "Look for what keeps jobs from running, and say what helps. Exit code 1 if anything does."
    ),
    "events": (
        "Tell what happened to jobs and groups, oldest first. With --json, a line of JSON for each."
    ),
    "init": "Write a windrow.toml in which every setting is explained, and commented out.",
    "mcp": "Serve search, sources and the queue to a model, over stdin and stdout or over HTTP.",
    "search": "Search what was ingested.",
    "serve": "Serve dashboard and HTTP API until stopped: the first signal lets requests end.",
    "top": "Watch queues, throughput, workers and limits. --json prints it once.",
    "worker": (
        "Run jobs until stopped: the first signal lets running handlers end, the second does not."
    ),
}
# Of those that need one. What a command lacks besides is named when it is met.
_EXTRAS: Final = {
    "calls": "knowledge",
    "credentials": "server",
    "demo": "all",
    "keys": "server",
    "mcp": "knowledge",
    "migrate": "web",
    "search": "knowledge",
    "serve": "server",
    "video": "knowledge",
}
# They say it in their log.
_LOGGING: Final = ("mcp", "serve", "worker")
_KNOWLEDGE: Final = "windrow.cli.knowledge"
_WEB: Final = "windrow.cli.web"
COMMANDS: Final = {
    "add": Command(
        _KNOWLEDGE,
        "add",
        "Add a file, a folder, a project, a site, a page, a library or a note, "
        "so that it is found.",
        "knowledge",
    ),
    "watch": Command(
        _KNOWLEDGE,
        "watch",
        "Add folders and keep what is known of them as they are, until Ctrl-C.",
        "knowledge",
    ),
    "scrape": Command(
        _WEB, "scrape", "Scrape pages: print them as markdown, or write them to a folder.", "web"
    ),
    "crawl": Command(
        _WEB, "crawl", "Crawl a site. Ctrl-C leaves it as it is; `--resume ID` goes on.", "web"
    ),
    "map": Command(_WEB, "map_", "List the addresses of a site, one a line.", "web"),
    "batch": Command(
        _WEB,
        "batch",
        "Scrape many pages as one: counted, left and gone on with like a crawl.",
        "web",
    ),
    **{
        name: Command(f"windrow.cli.{name}", name, help, _EXTRAS.get(name, ""))
        for name, help in _VERBS.items()
    },
    **{
        name: Command(f"windrow.cli.{name}", "app", help, _EXTRAS.get(name, ""))
        for name, help in _NOUNS.items()
    },
    "sources": Command(
        _KNOWLEDGE, "app", "List, show, refresh, export, import and remove sources.", "knowledge"
    ),
}

app = typer.Typer(
    name="windrow",
    cls=commands(COMMANDS),
    help="Durable ingestion: jobs in a database, nothing silently lost.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print where an error came from, not only what it is.")
    ] = False,
) -> None:
    if version:
        print(f"windrow {__version__}")
        raise typer.Exit
    from windrow.cli import output  # not at the top: `--help` and `--version` start without it

    output.show_traces(debug)
    if context.invoked_subcommand not in _LOGGING:
        output.warn_of_misspelled_settings()


def arranged(words: Sequence[str]) -> list[str]:
    """What was typed, with `--debug` where the command looks for it: it counts wherever it is, but
    behind a `--`."""
    before = list(takewhile(lambda word: word != "--", words))
    rest = [word for word in before if word != "--debug"]
    debug = ["--debug"] if len(rest) < len(before) else []
    return [*debug, *rest, *words[len(before) :]]


def names_a_shell(words: Sequence[str]) -> bool:
    """Whether completion is wanted for a shell that is named, not for the one that runs."""
    return any(
        option in ("--show-completion", "--install-completion") and not shell.startswith("-")
        for option, shell in pairwise(words)
    )


def main() -> None:
    """What nobody foresaw is one line too, and says how to see more."""
    words = arranged(sys.argv[1:])
    if names_a_shell(words):
        # Typer's options take a shell only where it does not look which one runs.
        os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    try:
        app(words, prog_name="windrow")
    except Exception as error:
        sys.exit(_explain(error, words))


def _explain(error: Exception, words: Sequence[str]) -> str | int:
    """What to print on stderr, or the exit code of an error that is printed already."""
    from windrow.cli import output

    if isinstance(error, ModuleNotFoundError):
        from windrow.extras import explain_import

        command = next((word for word in words if word in COMMANDS), "")
        extra = COMMANDS[command].extra if command else ""
        if (missing := explain_import(error, extra, f"windrow {command}")) is not None:
            return output.give_up(str(missing), output.MISUSED).exit_code
    if output.shows_traces():
        from windrow.redaction import redact_text

        return redact_text("".join(traceback.format_exception(error)).rstrip())
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    hint = "the same with --debug shows where it came from"
    return output.give_up(what, hint=hint).exit_code
