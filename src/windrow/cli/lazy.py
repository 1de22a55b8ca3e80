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
        return group
    alone = typer.Typer(add_completion=False)
    alone.command(name, context_settings=getattr(module, "CONTEXT", None))(found)
    return get_command(alone)


def commands(known: dict[str, Command]) -> type[TyperGroup]:
    """A group of these; beside them it may have others, which are loaded already."""

    class Commands(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            for name, command in known.items():
                self.commands[name] = TyperCommand(name, help=command.help)

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
            name, command, rest = super().resolve_command(ctx, args)
            if name in known:
                command = load(name, known[name])
            return name, command, rest

    return Commands
