"""`Commands`: a group of commands whose modules are loaded when they are called.

So `windrow --help` needs none of them, and a command only its own: most of the time that a start
takes is imports. Help is plain text for the same reason: Typer's panels load 110 modules of rich,
in 0.09 s.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from copy import copy
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_command_name, get_group
from typer.models import CommandInfo

F = TypeVar("F", bound=Callable[..., Any])


class Command(NamedTuple):
    """What is shown of a command, and where it is: a function, or the `app` of a noun."""

    module: str
    name: str
    help: str
    extra: str = ""  # without which it cannot run


class PlainCommand(TyperCommand):
    """A command whose usage line names its arguments without braces."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [_clear_piece(one) for one in super().collect_usage_pieces(ctx)]


class PlainGroup(TyperGroup):
    """A group whose help says of each command all of its first paragraph."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, summary(one)) for name, one in self.commands.items() if not one.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Noun(typer.Typer):
    """The commands of one noun."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=PlainGroup, rich_markup_mode=None, **options)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **options: Any
    ) -> Callable[[F], F]:
        return super().command(name, cls=cls or PlainCommand, **options)


def summary(command: Any) -> str:
    """The first paragraph of a command's help, in one line."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def load(name: str, command: Command, word: str | None = None) -> Any:
    """The command itself. Of a noun with `word` after it only the verb that this names, if it names
    one: Typer takes a millisecond to read the options of each."""
    module = import_module(command.module)
    found = getattr(module, command.name)
    if isinstance(found, typer.Typer):
        group = get_group(_only(word, found))
        group.name = name
        return group
    alone = Noun(add_completion=False)
    alone.command(name, context_settings=getattr(module, "CONTEXT", None))(found)
    return get_command(alone)


def _only(word: str | None, noun: typer.Typer) -> typer.Typer:
    verbs = [one for one in noun.registered_commands if word is not None and _name(one) == word]
    if not verbs:
        return noun
    narrowed = copy(noun)
    narrowed.registered_commands, narrowed.registered_groups = verbs, []
    return narrowed


def _name(verb: CommandInfo) -> str:
    return verb.name or get_command_name(getattr(verb.callback, "__name__", ""))


def _clear_piece(piece: str) -> str:
    """`{key}` is KEY, `[job_ids]...` is [JOB_IDS…], `{QUERY…}...` is QUERY…"""
    if piece.startswith("[OPTIONS]") or " " in piece:
        return piece
    name = piece.removesuffix("...")
    more = "…" if name != piece and "…" not in name else ""
    if name.startswith("{"):
        return f"{name[1:-1].upper()}{more}"
    return f"{name[:-1].upper()}{more}]" if name.startswith("[") else piece


def commands(known: dict[str, Command]) -> type[PlainGroup]:
    """A group of these; beside them it may have others, which are loaded already."""

    class Commands(PlainGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            for name, command in known.items():
                self.commands[name] = TyperCommand(name, help=command.help)

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
            name, command, rest = super().resolve_command(ctx, args)
            if name in known:
                command = load(name, known[name], rest[0] if rest else None)
            if not gc.isenabled():  # `windrow.__main__` has disabled it
                gc.freeze()  # what was loaded stays
                gc.enable()
            return name, command, rest

    return Commands
