"""Commands are run as a person types them: in this process, which saves the start of another, or
in one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.processes import run as run_command
from windrow.cli.main import app

Windrow = Callable[..., subprocess.CompletedProcess[str]]
Read = Callable[..., Any]


@pytest.fixture
def windrow(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Windrow:
    """Run a command on the test's database, in an empty folder, on a narrow terminal. Other options
    are variables of its environment."""
    monkeypatch.chdir(tmp_path)

    def run(
        *words: str, columns: int = 100, input: str | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {"WINDROW_DATABASE_URL": store_url, "COLUMNS": str(columns)} | variables
        result = CliRunner().invoke(app, words, input=input, env=environment)
        stderr = result.stderr
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            stderr += "".join(traceback.format_exception(result.exception))
        return subprocess.CompletedProcess(words, result.exit_code, result.stdout, stderr)

    return run


@pytest.fixture
def read(windrow: Windrow) -> Read:
    """Run a command with --json; what it printed, all of which must be JSON."""

    def run(*words: str, code: int = 0, **options: Any) -> Any:
        printed = windrow(*words, "--json", **options)
        assert printed.returncode == code, printed.stderr
        return json.loads(printed.stdout)

    return run


@pytest.fixture
def process(store_url: str, tmp_path: Path) -> Windrow:
    """Like `windrow`, in a process of its own."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"WINDROW_DATABASE_URL": store_url}
        return run_command(*words, cwd=tmp_path, environment=environment)

    return run
