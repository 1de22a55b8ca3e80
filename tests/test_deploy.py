"""The files for deployment, as far as they can be looked at without a cluster: each command and
option that they name is there, and so is each setting."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from windrow.cli.lazy import load
from windrow.cli.main import COMMANDS
from windrow.settings import Settings

ROOT = Path(__file__).parent.parent
UNITS = sorted((ROOT / "deploy").glob("*.service"))
FILES = [ROOT / "Dockerfile", ROOT / "compose.yaml", ROOT / "deploy/kubernetes.yaml", *UNITS]


def commands_of(path: Path) -> Iterator[list[str]]:
    """What is run, word by word, without the program."""
    if path.suffix == ".service":
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read(path)
        yield shlex.split(parser["Service"]["ExecStart"])[1:]
    elif path.suffix == ".yaml":
        for document in yaml.safe_load_all(path.read_text()):
            yield from _in_yaml(document)
    else:
        for words in re.findall(r"^CMD (\[.*\])$", path.read_text(), re.MULTILINE):
            yield yaml.safe_load(words)[1:]


def _in_yaml(node: Any) -> Iterator[list[str]]:
    if isinstance(node, dict):
        command = node.get("command")
        if isinstance(command, list) and command[0] == "windrow":
            yield command[1:]
        for value in node.values():
            yield from _in_yaml(value)
    elif isinstance(node, list):
        for value in node:
            yield from _in_yaml(value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_commands_are_windrows_own_with_options_that_there_are(path: Path) -> None:
    found = list(commands_of(path))
    assert found
    for words in found:
        command: Any = load(words[0], COMMANDS[words[0]])
        words = words[1:]
        while words and words[0] in getattr(command, "commands", {}):
            command, words = command.commands[words[0]], words[1:]
        assert not hasattr(command, "commands"), f"{words} is no command"
        context = command.make_context("windrow", [re.sub(r"%\w", "x", word) for word in words])
        assert context.args == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_has_nothing_to_say_against_a_unit(path: Path, tmp_path: Path) -> None:
    """But for the program, which is installed where the unit runs."""
    unit = tmp_path / path.name
    unit.write_text(path.read_text().replace("/opt/windrow/bin/windrow", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_settings_are_windrows_own(path: Path) -> None:
    known = {f"WINDROW_{item.name.upper()}" for item in fields(Settings)}
    assert set(re.findall(r"\bWINDROW_[A-Z_]+\b", path.read_text())) <= known


def test_parts_of_the_composition_name_each_other() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert {"api", "worker", "postgres", "qdrant"} <= services.keys()
    for service in services.values():
        assert set(service.get("depends_on", {})) <= services.keys()


def test_selectors_of_the_cluster_find_their_pods() -> None:
    documents = list(yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text()))
    pods = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in documents
        if one["kind"] == "Deployment"
    ]
    for one in documents:
        selector = one["spec"]["selector"]
        wanted = selector.get("matchLabels", selector)
        assert any(wanted.items() <= labels.items() for labels in pods)
