"""`windrow init` and `--debug`."""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import fields
from pathlib import Path

from tests.cli.conftest import Windrow
from tests.processes import run as run_command
from windrow.settings import Settings, load_settings


def test_init_writes_every_setting_with_its_meaning_and_changes_none(
    windrow: Windrow, tmp_path: Path
) -> None:
    assert windrow("init").returncode == 0
    text = (tmp_path / "windrow.toml").read_text()
    assert tomllib.loads(text) == {}
    assert load_settings(environment={"HOME": "/"}, folder=tmp_path) == Settings()
    # Without the marks it is the same again: each line is one that can be used.
    told = "\n".join(line[1:] for line in text.splitlines() if line[:1] == "#" and line[1:2] != " ")
    assert tomllib.loads(told) == {item.name: item.default for item in fields(Settings)}


def test_init_leaves_a_file_that_is_there_unless_it_is_told(
    windrow: Windrow, tmp_path: Path
) -> None:
    (tmp_path / "windrow.toml").write_text('data_dir = "mine"')
    refused = windrow("init")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert "mine" in (tmp_path / "windrow.toml").read_text()
    assert windrow("init", "--force").returncode == 0
    assert windrow("init", "nowhere").returncode == 2


def test_debug_shows_where_an_error_came_from(tmp_path: Path) -> None:
    environment = os.environ | {"WINDROW_DATABASE_URL": f"sqlite:///{tmp_path}/no/where.db"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return run_command(*words, cwd=tmp_path, environment=environment)

    plain = run("jobs", "list")
    assert plain.returncode == 2
    assert plain.stderr.count("\n") == 1
    assert "Traceback" in run("--debug", "jobs", "list").stderr
