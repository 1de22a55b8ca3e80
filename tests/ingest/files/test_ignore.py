"""Rules of `.gitignore` mean what they mean to git, which is asked about every case."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from windrow.ingest.files.ignore import FILES, Judge
from windrow.ingest.files.walk import walk

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

CASES = [
    "*.log",
    "/top.txt",
    "sub/deep",
    "sub/",
    "deep/",
    "*.txt\n!keep.txt",
    "sub/*\n!sub/keep.txt",
    "**/deep/*.txt",
    "sub/**/keep.txt",
    "sub/**",
    "**",
    "*\n!*/\n!*.py",
    "a**b.txt",
    "[a-c]*.txt",
    "[!a-c]*.txt",
    "[[:digit:]]*",
    "[^[:alpha:]]*",
    "[]-]x",
    "[\\]]x",
    "broken[",
    "trailing\\",
    "\\#hash",
    "\\!bang",
    "# comment",
    "space\\ ",
    "space ",
    "top.txt  ",
    "top.txt\r",
    "\ufefftop.txt",
    "?op.txt",
    "sub?deep",
    "/",
    "!",
    "!top.txt\ntop.txt",
    "/*/keep.txt",
    "sub/deep/",
    "/sub/deep/*.txt\n!/sub/deep/keep.txt",
    "ümlaut.txt",
    "***",
    "sub/***/keep.txt",
    "**/",
    "[z-a]x\n*.py",
]
NAMES = [
    *("top.txt", "keep.txt", "a.log", "axxb.txt", "b.py", "1x", "]x", "-x", "#hash", "!bang"),
    *("space ", "space", "ümlaut.txt", "sub/keep.txt", "sub/c.txt", "sub/top.txt", "sub/a.log"),
    *("sub/deep/keep.txt", "sub/deep/d.txt", "sub/deep/er/keep.txt", "deep/x.py", "other/sub/q"),
    *("other/deep/keep.txt", "trailing", "broken["),
]


@needs_git
@pytest.mark.parametrize("rules", CASES)
def test_rules_leave_out_what_git_leaves_out(tmp_path: Path, rules: str) -> None:
    _tree(tmp_path, {".gitignore": rules}, NAMES)

    assert _without_rules(_walked(tmp_path)) == _by_git(tmp_path)


@needs_git
def test_nested_rules_with_negation_leave_out_what_git_leaves_out(tmp_path: Path) -> None:
    chance = random.Random(20261116)
    patterns = [line for case in CASES for line in case.split("\n")]
    for number in range(40):
        tree = tmp_path / str(number)
        folders = ["", "sub/", "sub/deep/", "other/", "other/sub/"]
        rules = {
            f"{folder}.gitignore": "\n".join(_some_rules(chance, patterns))
            for folder in chance.sample(folders, 3)
        }
        _tree(tree, rules, NAMES)

        assert _without_rules(_walked(tree)) == _by_git(tree), rules


@needs_git
def test_rules_above_the_top_of_a_walk_hold_in_it(tmp_path: Path) -> None:
    _tree(tmp_path, {".gitignore": "/sub/c.txt\n*.log", "sub/.gitignore": "deep/*\n!er/"}, NAMES)
    all_of_it = {name for name in _by_git(tmp_path) if name.startswith("sub/")}

    walked = {f"sub/{name}" for name in _walked(tmp_path / "sub")}
    assert _without_rules(walked) == all_of_it


@needs_git
def test_exclude_file_of_the_repository_holds(tmp_path: Path) -> None:
    _tree(tmp_path, {}, NAMES)
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("sub/\n")

    assert _without_rules(_walked(tmp_path)) == _by_git(tmp_path)
    assert not any(name.startswith("sub/") for name in _walked(tmp_path))


def test_windrowignore_overrules_gitignore_of_the_same_folder(tmp_path: Path) -> None:
    _write(tmp_path, ".gitignore", "generated/\n")
    _write(tmp_path, ".windrowignore", "!generated/\nprivate/\n")
    _write(tmp_path, "generated/api.md", "x")
    _write(tmp_path, "private/diary.md", "x")

    assert _walked(tmp_path) == {"generated/api.md"}


def test_rules_for_everywhere_are_weaker_than_those_of_a_folder(tmp_path: Path) -> None:
    everywhere = tmp_path / "everywhere"
    everywhere.write_text("*.md\n")
    _write(tmp_path, "docs/.windrowignore", "!kept.md\n")
    _write(tmp_path, "docs/kept.md", "x")
    _write(tmp_path, "docs/other.md", "x")

    found = {file.path for file in walk(tmp_path / "docs", ignore_files=[everywhere]).files}

    assert found == {"kept.md"}


def test_names_that_are_always_skipped_can_be_taken_back_but_for_git_itself(tmp_path: Path) -> None:
    for name in ("vendor/a.go", "node_modules/b.js", ".github/ci.yml", ".idea/x.xml"):
        _write(tmp_path, name, "x")
    _write(tmp_path, ".git/HEAD", "ref: refs/heads/main")
    assert _walked(tmp_path) == {".github/ci.yml"}

    _write(tmp_path, ".windrowignore", "!vendor/\n!.git/\n!.gitignore\n")
    _write(tmp_path, ".gitignore", "out/\n")

    assert _walked(tmp_path) == {".github/ci.yml", ".gitignore", "vendor/a.go"}


@needs_git
def test_one_file_is_judged_as_a_walk_would_judge_it(tmp_path: Path) -> None:
    rules = {".gitignore": "deep/\n*.log\n!sub/a.log", "sub/.gitignore": "c.*"}
    _tree(tmp_path, rules, NAMES)

    judge = Judge(tmp_path)
    judged = {name for name in NAMES if not judge.leaves_out(name)}

    assert judged == _walked(tmp_path) - set(rules)


def _some_rules(chance: random.Random, patterns: list[str]) -> list[str]:
    lines = chance.sample(patterns, chance.randint(1, 5))
    return [("!" if chance.random() < 0.3 else "") + line for line in lines]


def _tree(top: Path, rules: Mapping[str, str], names: list[str]) -> None:
    for name in names:
        _write(top, name, "x")
    for name, text in rules.items():
        _write(top, name, text)
    subprocess.run(["git", "init", "-q", str(top)], check=True)


def _write(top: Path, name: str, text: str) -> None:
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def _walked(top: Path) -> set[str]:
    return {file.path for file in walk(top).files}


def _without_rules(names: set[str]) -> set[str]:
    """Files of rules are not left out by git, but here, unless a rule takes them back."""
    return {name for name in names if name.rpartition("/")[2] not in FILES}


def _by_git(top: Path) -> set[str]:
    environment = {**os.environ, "HOME": str(top), "XDG_CONFIG_HOME": str(top)}
    listed = subprocess.run(
        ["git", "-C", str(top), "ls-files", "-z", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        env=environment,
    )
    return _without_rules({os.fsdecode(name) for name in listed.stdout.split(b"\0") if name})
