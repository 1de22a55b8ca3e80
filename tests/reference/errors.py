"""docs/reference/errors.md: every error, and every code of an answer."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

import windrow
from tests.reference.markdown import code, needed, page, table
from windrow import errors
from windrow.api.errors import SCRAPE_STATUSES, STATUSES
from windrow.api.words import CODES as MEANINGS
from windrow.cli.output import FAILED, MISUSED, MISUSES
from windrow.errors import FetchError, IngestError, InvalidOptions, ScrapeFailed, WindrowError

HEAD = """\
All of them are in `windrow.errors`, below `WindrowError`; `except QueueError` catches what is
indented under it. *Transient* ones may succeed later, unchanged: a worker tries them again by
itself. Where nothing is said to do, the message says it.

A command prints the message, a hint, and ends with the exit code; `windrow --debug` shows where an
error came from. The HTTP API answers with the status and
`{"success": false, "code": "…", "error": "…"}`."""
CODE = re.compile(r"[A-Z]{3,}(_[A-Z]+)*")
QUOTED = re.compile(f'"{CODE.pattern}"')  # others need not be parsed, which takes its time
CODES = """\
## Codes

What the HTTP API has in `code`, and documents of crawls in `errors`. The `SCRAPE_…` are of pages: a
crawl goes on without them, `POST /v2/scrape` answers with the status."""
EXITS = """\
## Exit codes

| code | meaning |
| --- | --- |
| 0 | all is well |
| 1 | an error, or something is wrong (`windrow doctor`), or not all of it is there |
| 2 | it was not understood: an unknown option, a setting or a request that is not valid |
| 3 | `windrow db copy`: something was left behind, and is named |
| 130 | interrupted with Ctrl-C; what runs until it is stopped ends with 0 then |"""


def render() -> str:
    rows = [row(error, depth) for error, depth in walk(WindrowError, 0)]
    columns = ["error", "what happened", "transient", "status, code", "exit", "what to do"]
    meant = [[code(one), str(status), needed(words, one)] for one, status, words in codes()]
    listed = table(["code", "status", "what happened"], meant)
    met = f"Handlers and callers of the queue meet these: {', '.join(map(code, errors.__all__))}."
    return page("Errors", HEAD, met, table(columns, rows), CODES, listed, EXITS)


def walk(error: type[WindrowError], depth: int) -> Iterator[tuple[type[WindrowError], int]]:
    yield error, depth
    for child in sorted(error.__subclasses__(), key=lambda one: one.__name__):
        if child.__module__ == errors.__name__:
            yield from walk(child, depth + 1)


def row(error: type[WindrowError], depth: int) -> list[str]:
    own = error.__dict__.get("__doc__")
    says = needed(own and inspect.cleandoc(own).splitlines()[0], error.__name__)
    return [
        "&emsp;" * depth + code(error.__name__),
        says,
        transience(error),
        answered(error),
        str(MISUSED if issubclass(error, MISUSES) else FAILED),
        error.hint,
    ]


def transience(error: type[WindrowError]) -> str:
    is_said_by_each = "transient" in inspect.signature(error.__init__).parameters
    return "yes" if error.transient else "it depends" if is_said_by_each else ""


def answered(error: type[WindrowError]) -> str:
    if issubclass(error, FetchError | ScrapeFailed):
        return "by its code"
    if issubclass(error, IngestError) and not issubclass(error, InvalidOptions):
        return f"{SCRAPE_STATUSES.get(error.code, 500)} {code(error.code)}"
    fitting = (
        f"{status} {code(name)}" for kind, status, name in STATUSES if issubclass(error, kind)
    )
    return next(fitting, "500 `UNKNOWN_ERROR`")


def codes() -> list[tuple[str, int, str]]:
    """Every code that stands anywhere in the source, with its status."""
    statuses = {name: status for _, status, name in STATUSES} | SCRAPE_STATUSES
    found = written_codes() | set(statuses)
    gone = sorted(set(MEANINGS) - found)
    assert not gone, f"windrow.api.words has codes that are nowhere else: {gone}"
    meant = [(name, *MEANINGS.get(name, (0, ""))) for name in sorted(found)]
    return [(name, status or statuses.get(name, 500), words) for name, status, words in meant]


def written_codes() -> set[str]:
    """The codes in the source: those of pages, and what is given to answers or to errors as one."""
    found: set[str] = set()
    for path in Path(windrow.__file__).parent.glob("**/*.py"):
        source = path.read_text("utf-8")
        if path.name != "words.py" and QUOTED.search(source):
            for node in ast.walk(ast.parse(source)):
                found |= {text for text in texts_in(node) if CODE.fullmatch(text)}
    return found


def texts_in(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)) if text.startswith("SCRAPE_"):
            yield text
        case ast.Call(func=ast.Name(id="ApiError"), args=[_, ast.Constant(value=str(text)), *_]):
            yield text
        case ast.keyword(arg="code", value=ast.Constant(value=str(text))):
            yield text
        case ast.Assign(targets=[ast.Name(id="code")], value=value):
            yield from (one.value for one in ast.walk(value) if is_text(one))
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "code":
                    yield from (one.value for one in ast.walk(value) if is_text(one))


def is_text(node: ast.AST) -> TypeGuard[Any]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
