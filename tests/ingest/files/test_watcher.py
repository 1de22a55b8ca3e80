"""Events of the system become change sets."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from windrow.errors import FileGone
from windrow.ingest.files.watcher import (
    ANOTHER_BRANCH,
    MOST_FILES,
    ChangeSet,
    Health,
    Planner,
    WatchHealth,
    watch_folder,
)

DEBOUNCE = 0.1
PATIENCE = 30.0
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


def test_few_files_are_named_and_what_is_left_out_is_not(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    for name in ("a.md", "b.log", "c.png", "sub/d.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    paths = ["a.md", "b.log", "c.png", "sub/d.md", ".git/objects/x", "a.md"]

    plan = Planner(tmp_path).plan([(False, str(tmp_path / name)) for name in paths])

    assert plan == ChangeSet(("a.md", "sub/d.md"), events=6)


@pytest.mark.parametrize(
    ("name", "is_gone", "why"),
    [
        (".git/HEAD", False, "branch"),
        (".gitignore", False, "rules"),
        ("sub/.windrowignore", True, "rules"),
        ("gone.md", True, "gone"),
        ("folder", False, "gone or moved"),
    ],
)
def test_whatever_else_changes_is_a_look_at_the_whole(
    tmp_path: Path, name: str, is_gone: bool, why: str
) -> None:
    (tmp_path / "folder").mkdir()

    plan = Planner(tmp_path).plan([(is_gone, str(tmp_path / name))])

    assert plan.is_scan
    assert why in plan.why


def test_burst_of_fifty_thousand_events_is_one_look(tmp_path: Path) -> None:
    events = [(False, f"{tmp_path}/d{number % 100}/f{number}.md") for number in range(50_000)]

    plan = Planner(tmp_path).plan(events)

    assert (plan.is_scan, plan.events, plan.files) == (True, 50_000, ())


def test_watch_that_fails_backs_off_and_is_given_up() -> None:
    health = WatchHealth()
    states, waits = [health.state], []
    for _ in range(6):
        waits.append(health.failed("no"))
        states.append(health.state)

    assert states == [Health.HEALTHY] + [Health.DEGRADED] * 2 + [Health.BACKOFF] * 3 + [
        Health.DISABLED
    ]
    assert [round(wait) for wait in waits[:3]] == [1, 2, 4]
    health.succeeded()
    assert health.state is Health.HEALTHY


async def test_written_files_and_bursts_come_as_sets(tmp_path: Path) -> None:
    async with _watching(tmp_path) as sets:
        assert (await _next(sets)).why == "to see what is there"
        (tmp_path / "a.md").write_text("x")
        assert (await _next(sets)).files == ("a.md",)

        for number in range(3 * MOST_FILES):
            (tmp_path / f"f{number}.md").write_text("x")
        burst = await _next(sets)
        assert burst.is_scan

        # Then once more, as events may have been lost.
        while (again := await _next(sets)).why != "to see what is there":
            assert again.is_scan or again.files


@needs_git
async def test_checkout_is_one_set(tmp_path: Path) -> None:
    _repository(tmp_path)
    _git(tmp_path, "checkout", "-q", "-b", "side")
    (tmp_path / "docs" / "a.md").write_text("side")
    _git(tmp_path, "commit", "-q", "-amy")

    async with _watching(tmp_path) as sets:
        await _next(sets)
        await asyncio.to_thread(_git, tmp_path, "checkout", "-q", "main")
        assert (await _next(sets)).is_scan


@needs_git
async def test_another_branch_is_seen_from_below_the_top_of_a_repository(tmp_path: Path) -> None:
    _repository(tmp_path)

    async with _watching(tmp_path / "docs") as sets:
        await _next(sets)
        await asyncio.to_thread(_git, tmp_path, "checkout", "-q", "-b", "side")
        assert (await _next(sets)).why == ANOTHER_BRANCH
        (tmp_path / "docs" / "a.md").write_text("side")
        assert (await _next(sets)).files == ("a.md",)


@needs_git
async def test_another_branch_is_seen_in_a_working_tree_of_its_own(tmp_path: Path) -> None:
    _repository(tmp_path / "main")
    _git(tmp_path / "main", "worktree", "add", "-q", "-b", "side", "../tree")

    async with _watching(tmp_path / "tree") as sets:
        await _next(sets)
        await asyncio.to_thread(_git, tmp_path / "tree", "checkout", "-q", "-b", "other")
        assert (await _next(sets)).why == ANOTHER_BRANCH


async def test_folder_that_goes_away_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with pytest.raises(FileGone):
        async with _watching(folder) as sets:
            await _next(sets)
    folder.mkdir()
    async with _watching(folder) as sets:
        await _next(sets)
        folder.rmdir()
        with pytest.raises(FileGone):
            await _next(sets)


def _repository(folder: Path) -> None:
    """A repository with a commit."""
    (folder / "docs").mkdir(parents=True)
    _git(folder, "init", "-q", "-b", "main")
    (folder / "docs" / "a.md").write_text("main")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-mx")


def _git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def _watching(folder: Path) -> Any:
    stop = asyncio.Event()
    return aclosing(watch_folder(folder, stop=stop, debounce=DEBOUNCE))


async def _next(sets: AsyncIterator[ChangeSet]) -> ChangeSet:
    async with asyncio.timeout(PATIENCE):
        return await anext(sets)
