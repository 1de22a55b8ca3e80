"""U9: the id of a project from its remote or its path, credentials left out; the branch."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from windrow.ingest.project import (
    find_repository,
    normalise_remote,
    tenant_of,
    tenant_of_path,
    tenant_of_remote,
    without_credentials,
)

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/Acme/Tool.git",
        "https://github.com/acme/tool/",
        "https://user:secret@github.com/acme/tool.git",
        "https://ghp_token@github.com:443/acme/tool",
        "git@github.com:acme/tool.git",
        "github.com:acme/tool",
        "ssh://git@github.com:22/acme/tool.git/",
        "git://github.com//acme/tool",
        "  https://github.com/acme/tool\n",
    ],
)
def test_u9_spellings_of_one_remote_are_one_tenant(url: str) -> None:
    assert normalise_remote(url) == "github.com/acme/tool"
    expected = hashlib.sha256(b"github.com/acme/tool").hexdigest()[:12]
    assert tenant_of_remote(url) == expected


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("ssh://git@host.example:2222/a/b", "host.example:2222/a/b"),
        ("/srv/git/tool.git", "/srv/git/tool"),
        ("file:///srv/git/tool.git", "/srv/git/tool"),
        ("https://user:p@ss@host.example/a", "host.example/a"),
        ("https://[::1]:8443/a", "::1:8443/a"),
    ],
)
def test_other_remotes_keep_what_tells_them_apart(url: str, normal: str) -> None:
    assert normalise_remote(url) == normal


def test_u9_project_without_remote_is_known_by_its_path(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)

    assert tenant_of(tmp_path, None) == tenant_of_path(f"{tmp_path}/./x/..")
    assert tenant_of_path(tmp_path).startswith("local_")
    assert tenant_of_path(link) != tenant_of_path(tmp_path)
    assert tenant_of_remote("h:a/b", "one") != tenant_of_remote("h:a/b", "two")


def test_u9_credentials_of_a_remote_are_not_kept() -> None:
    assert without_credentials("https://u:s@h.example/a.git") == "https://h.example/a.git"
    assert without_credentials("git@h.example:a.git") == "git@h.example:a.git"


@needs_git
def test_u9_branch_and_remote_are_read_from_files_as_git_says_them(tmp_path: Path) -> None:
    repository = _repository(tmp_path / "r")
    _git(repository, "remote", "add", "upstream", "https://h.example/upstream")
    _git(repository, "remote", "add", "origin", 'https://h.example/a b"c#d')
    _git(repository, "config", "--add", "remote.origin.url", "https://h.example/second")
    (repository / "deep" / "er").mkdir(parents=True)

    found = find_repository(repository / "deep" / "er")

    assert found is not None
    assert found.root == repository
    assert found.branch == "trunk"
    assert found.remote == 'https://h.example/a b"c#d'
    _git(repository, "checkout", "-q", "-b", "feature/ünï")
    assert found.branch == "feature/ünï"
    _git(repository, "remote", "remove", "origin")
    assert found.remote == "https://h.example/upstream"


@needs_git
def test_u9_commit_without_a_branch_is_named_by_its_digits(tmp_path: Path) -> None:
    repository = _repository(tmp_path / "r")
    commit = _git(repository, "rev-parse", "HEAD")
    _git(repository, "checkout", "-q", "--detach")

    found = find_repository(repository)

    assert found is not None
    assert found.branch == commit[:12]
    assert found.remote is None


@needs_git
def test_u9_working_trees_have_a_branch_each_and_one_remote(tmp_path: Path) -> None:
    repository = _repository(tmp_path / "r")
    _git(repository, "remote", "add", "origin", "git@h.example:a")
    _git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "w"))

    found = find_repository(tmp_path / "w")

    assert found is not None
    assert (found.root, found.branch) == (tmp_path / "w", "side")
    assert found.remote == "git@h.example:a"


def test_folder_without_git_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")

    assert find_repository(tmp_path) is None


def _repository(path: Path) -> Path:
    path.mkdir()
    _git(path, "init", "-q", "-b", "trunk")
    _git(path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-mx")
    return path


def _git(path: Path, *arguments: str) -> str:
    answer = subprocess.run(
        ["git", "-C", str(path), *arguments], check=True, capture_output=True, text=True
    )
    return answer.stdout.strip()
