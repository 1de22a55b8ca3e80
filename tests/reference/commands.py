"""docs/reference/cli.md: every command, with its arguments and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from tests.reference.markdown import code, needed, page, table
from windrow.cli.lazy import load
from windrow.cli.main import COMMANDS, app

HEAD = """\
`windrow COMMAND --help` says the same. Every command ends with 0 if all is well, with 1 after an
error or when something is wrong, and with 2 if it was not understood; where a code means
something else, its guide says so. After Ctrl-C it is 130, or 0 for what runs until it is stopped.
A command that deletes, or that cancels, retries or moves more than the jobs it was given by id,
only says what it would do until you add `--yes`.
Errors are one sentence on stderr, with a hint; `windrow --debug COMMAND …` shows where they came
from. `windrow --install-completion` teaches your shell the commands and options."""


def render() -> str:
    root = get_command(app)
    own = [one for one in root.params if one.name != "help"]
    parts = [section(" ".join(path), command) for path, command in walk(root, ["windrow"])]
    return page("Commands", HEAD, options("windrow", own), *parts)


def walk(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    """Every command that does something, with the words it is called by."""
    inner = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name in sorted(inner):
        is_lazy = len(path) == 1 and name in COMMANDS
        yield from walk(load(name, COMMANDS[name]) if is_lazy else inner[name], [*path, name])


def section(name: str, command: Any) -> str:
    usage = " ".join(command.collect_usage_pieces(typer.Context(command, info_name=name)))
    parts = [
        f"## {name}",
        needed(command.help, name).replace("\f", ""),
        f"    {name} {usage}",
        options(name, command.params),
    ]
    return "\n\n".join(one for one in parts if one)


def options(name: str, params: list[Any]) -> str:
    rows = [row(name, one) for one in params if not getattr(one, "hidden", False)]
    return table(["argument or option", "default", "what it is"], rows) if rows else ""


def row(command: str, param: Any) -> list[str]:
    says = needed(getattr(param, "help", None), f"{param.name} of {command}")
    return [named(param, command), code(default(param)), says]


def named(param: Any, command: str) -> str:
    context = typer.Context(TyperCommand(None), info_name=command)
    if param.param_type_name == "argument":
        return code(" ".join(param.get_usage_pieces(context)))
    names = ", ".join(code(one) for one in [*param.opts, *param.secondary_opts])
    is_flag = param.is_flag or param.count
    return names if is_flag else f"{names} {code(param.metavar or kind(param))}"


def kind(param: Any) -> str:
    is_number = param.type.name.startswith(("int", "float"))
    many = ", several times" if param.multiple else ""
    return ("NUMBER" if is_number else "TEXT") + many


def default(param: Any) -> str:
    value = param.default
    is_said = value not in (None, False, (), [], "") and not callable(value)
    if not is_said or "Sentinel" in type(value).__name__ or param.required:
        return ""
    return str(getattr(value, "value", value))
