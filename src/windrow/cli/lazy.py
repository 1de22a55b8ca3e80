"""`Commands`: a group of commands whose modules are loaded when they are called.

So `windrow --help` needs none of them, and a command only its own: most of the time that a start
takes is imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group


class Command(NamedTuple):
    """What is shown of a command, and where it is: a function, or the `app` of a noun."""

    module: str
    name: str
    help: str


def load(name: str, command: Command) -> Any:
    """The command itself."""
    module = import_module(command.module)
    found = getattr(module, command.name)
    if isinstance(found, typer.Typer):
        group = get_group(found)
        group.name = name
        return _clear(group)
    alone = typer.Typer(add_completion=False)
    alone.command(name, context_settings=getattr(module, "CONTEXT", None))(found)
    return _clear(get_command(alone))


def _clear(command: Any) -> Any:
    """The same command, and those below it, with a help in our words. Typer makes the commands of a
    noun itself, so they are changed where all of them are there."""
    get_params, get_pieces = command.get_params, command.collect_usage_pieces
    command.get_params = lambda ctx: _clear_params(get_params(ctx))
    command.collect_usage_pieces = lambda ctx: [_clear_piece(one) for one in get_pieces(ctx)]
    for below in getattr(command, "commands", {}).values():
        _clear(below)
    return command


def _clear_params(params: list[Any]) -> list[Any]:
    """A flag takes no value, so it has no type to be told."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def _clear_piece(piece: str) -> str:
    """`{key}` is KEY, `[job_ids]...` is [JOB_IDS…], `{QUERY…}...` is QUERY…"""
    if piece.startswith("[OPTIONS]") or " " in piece:
        return piece
    name = piece.removesuffix("...")
    more = "…" if name != piece and "…" not in name else ""
    if name.startswith("{"):
        return f"{name[1:-1].upper()}{more}"
    return f"{name[:-1].upper()}{more}]" if name.startswith("[") else piece


def commands(known: dict[str, Command]) -> type[TyperGroup]:
    """A group of these; beside them it may have others, which are loaded already."""

    class Commands(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            for name, command in known.items():
                self.commands[name] = TyperCommand(name, help=command.help)

        def get_params(self, ctx: Any) -> list[Any]:
            return _clear_params(super().get_params(ctx))

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
            name, command, rest = super().resolve_command(ctx, args)
            if name in known:
                command = load(name, known[name])
            return name, command, rest

    return Commands
