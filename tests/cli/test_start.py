"""How `windrow` starts: with no more than what it was asked for, counted in modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from windrow.cli import main
from windrow.cli.lazy import load
from windrow.cli.main import COMMANDS

MOST_MODULES = 210  # for the help; 733 with all commands loaded, 307 with rich
MOST_FOR_A_LISTING = 350
HEAVY = [
    *("html_to_markdown", "kreuzberg", "mcp", "mcp_types", "playwright", "protego", "selectolax"),
    *("semantic_text_splitter", "tokenizers", "tree_sitter", "wordllama"),
    *("aiohttp", "asyncio", "asyncpg", "fastapi", "msgspec", "numpy", "prometheus_client"),
    *("pydantic", "rich", "sqlite3", "starlette", "typer.rich_utils", "uvicorn"),
    *("windrow.cli.output", "windrow.queue", "windrow.services"),
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
    assert len(loaded) <= MOST_MODULES


def test_a_command_loads_its_own_module_and_no_others() -> None:
    loaded = {one for one in loaded_by("queues", "--help") if one.startswith("windrow.cli.")}

    assert "windrow.cli.queues" in loaded
    assert loaded.isdisjoint({"windrow.cli.jobs", "windrow.cli.serve", "windrow.cli.web"})


def test_a_listing_loads_nothing_that_only_others_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WINDROW_DATABASE_URL", "sqlite:///jobs.db")
    loaded_by("db", "migrate")

    loaded = loaded_by("jobs", "list")

    others = (
        *("cronsim", "ctypes", "importlib.resources", "numpy", "rich", "tomllib", "zipfile"),
        *("windrow.pipelines", "windrow.services.failing", "windrow.services.knowledge"),
    )
    assert [one for one in others if one in loaded] == []
    assert "windrow.queue.sqlite.store" in loaded
    assert len(loaded) <= MOST_FOR_A_LISTING


def test_a_verb_is_called_without_a_look_at_the_others_of_its_noun() -> None:
    everything, named = (load("jobs", COMMANDS["jobs"], word) for word in ("nothing", "list"))

    assert set(named.commands) == {"list"}
    assert {"add", "list", "show"} < set(everything.commands)


def test_expressions_of_secrets_wait_until_they_are_used() -> None:
    code = (
        "import re, windrow.redaction\n"
        "print(max(len(one.pattern) for one in vars(windrow.redaction).values()"
        " if isinstance(one, re.Pattern)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert int(printed.stdout) < 200  # 10 ms of CPU are in the longer ones


def test_the_help_says_of_each_command_what_it_says_itself() -> None:
    for name, command in COMMANDS.items():
        said = (load(name, command).help or "").split("\n\n")[0].replace("\n", " ")
        assert command.help == said, name


def test_the_help_shows_all_of_what_is_said_of_each_command() -> None:
    shown = " ".join(CliRunner().invoke(main.app, ["--help"]).stdout.split())

    for name, command in COMMANDS.items():
        assert f" {name} {command.help}" in shown


def test_every_noun_can_be_called() -> None:
    named = {command.module for command in COMMANDS.values()}
    inner = {"windrow.cli.cron", "windrow.cli.dialect", "windrow.cli.rls"}  # of `windrow db`
    nouns = {
        f"windrow.cli.{file.stem}"
        for file in Path(main.__file__).parent.glob("*.py")
        if "\napp = Noun(" in file.read_text("utf-8")
    }

    assert "windrow.cli.jobs" in nouns
    assert nouns - inner <= named
