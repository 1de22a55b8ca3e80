"""How `windrow` starts: with no more than what it was asked for, counted in modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from windrow.cli import main
from windrow.cli.lazy import load
from windrow.cli.main import COMMANDS

MOST_MODULES = 400  # for the help; it was 733 with all commands loaded
HEAVY = [
    *("html_to_markdown", "kreuzberg", "mcp", "mcp_types", "playwright", "protego", "selectolax"),
    *("semantic_text_splitter", "tokenizers", "tree_sitter", "wordllama"),
    *("aiohttp", "asyncio", "asyncpg", "fastapi", "msgspec", "numpy", "prometheus_client"),
    *("sqlite3", "starlette", "uvicorn", "windrow.queue", "windrow.services"),
]


def loaded_by(*words: str) -> list[str]:
    """The modules a command has loaded when it ends."""
    code = (
        "import sys\nfrom windrow.cli.main import app\n"
        "try:\n    app(sys.argv[1:])\n"
        "finally:\n    print('\\n'.join(sys.modules))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    return printed.stdout.splitlines()


@pytest.mark.parametrize("words", ["--help", "--version"])
def test_help_and_version_load_nothing_that_works(words: str) -> None:
    loaded = loaded_by(words)

    assert [one for one in HEAVY if one in loaded] == []
    if words == "--help":  # Typer reads what is given with pydantic, if that is there
        assert "pydantic" not in loaded
        assert len(loaded) <= MOST_MODULES


def test_a_command_loads_its_own_module_and_no_others() -> None:
    loaded = {one for one in loaded_by("queues", "--help") if one.startswith("windrow.cli.")}

    assert "windrow.cli.queues" in loaded
    assert loaded.isdisjoint({"windrow.cli.jobs", "windrow.cli.serve", "windrow.cli.web"})


def test_the_help_says_of_each_command_what_it_says_itself() -> None:
    for name, command in COMMANDS.items():
        said = (load(name, command).help or "").split("\n\n")[0].replace("\n", " ")
        assert command.help == said, name


def test_every_noun_can_be_called() -> None:
    named = {command.module for command in COMMANDS.values()}
    inner = {"windrow.cli.cron", "windrow.cli.dialect", "windrow.cli.rls"}  # of `windrow db`
    nouns = {
        f"windrow.cli.{file.stem}"
        for file in Path(main.__file__).parent.glob("*.py")
        if "\napp = typer.Typer(" in file.read_text("utf-8")
    }

    assert nouns - inner - {main.__name__} <= named
