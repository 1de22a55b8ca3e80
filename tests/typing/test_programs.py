"""Type checkers find the typos of programs that use the public classes, and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
EXPECTED = re.compile(r"# E: (.+)$")
MYPY = re.compile(r"^(\S+?):(\d+): error: (.+?)(?:  \[[\w-]+\])?$", re.MULTILINE)

# The messages about each line of each program.
Found = dict[tuple[str, int], list[str]]


@pytest.fixture(scope="module")
def by_mypy() -> Found:
    """One run for all programs."""
    command = ["mypy", "--strict", "--no-error-summary", "--no-pretty", "--config-file="]
    command += ["--cache-dir", ".mypy_cache/programs", *map(str, PROGRAMS)]
    found: Found = {}
    for name, line, text in MYPY.findall(run(command)):
        found.setdefault((Path(name).name, int(line)), []).append(text)
    return found


@pytest.fixture(scope="module")
def by_pyright() -> Found:
    """Pyright's engine, as basedpyright ships it with its own Node.js."""
    command = ["basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(HERE)]
    answer: dict[str, Any] = json.loads(run(command))
    found: Found = {}
    for one in answer["generalDiagnostics"]:
        if one["severity"] == "error":
            place = (Path(one["file"]).name, one["range"]["start"]["line"] + 1)
            found.setdefault(place, []).append(one["message"])
    return found


def run(command: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def expected_in(program: Path) -> dict[int, str]:
    return {
        number: match[1]
        for number, line in enumerate(program.read_text().splitlines(), 1)
        if (match := EXPECTED.search(line))
    }


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_mypy_finds_every_typo_and_nothing_else(program: Path, by_mypy: Found) -> None:
    expected = expected_in(program)
    here = {line: texts for (name, line), texts in by_mypy.items() if name == program.name}

    assert expected
    assert here.keys() == expected.keys()
    for line, text in expected.items():
        assert any(text in message for message in here[line]), here[line]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_pyright_finds_every_typo_and_nothing_else(program: Path, by_pyright: Found) -> None:
    here = {line: texts for (name, line), texts in by_pyright.items() if name == program.name}

    assert here.keys() == expected_in(program).keys()
