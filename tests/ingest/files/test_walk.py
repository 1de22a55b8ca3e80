"""What a walk finds in trees as they are: links, pipes, odd names, closed folders."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from windrow.errors import FileGone, FileRefused
from windrow.ingest.files.ignore import Judge
from windrow.ingest.files.names import to_path, to_text
from windrow.ingest.files.walk import SECRET_NAME, Walk, WalkOptions, walk

REPOSITORY = Path(__file__).parents[3]
is_root = os.geteuid() == 0


def test_patterns_choose_and_ignore_patterns_leave_out(tmp_path: Path) -> None:
    _write(tmp_path, "a.py", "b.rs", "c.md", "pkg/d.py", "pkg/skip/e.py", "tests/f.py")
    options = WalkOptions(patterns=("*.py", "*.rs"), ignore_patterns=("skip/", "tests/*"))

    assert _names(walk(tmp_path, options)) == ["a.py", "b.rs", "pkg/d.py"]


def test_depth_and_recursion_are_bounded(tmp_path: Path) -> None:
    _write(tmp_path, "0.md", "a/1.md", "a/b/2.md", "a/b/c/3.md")

    assert _names(walk(tmp_path, WalkOptions(recursive=False))) == ["0.md"]
    deep = walk(tmp_path, WalkOptions(max_depth=2))
    assert _names(deep) == ["0.md", "a/1.md", "a/b/2.md"]
    assert [(one.path, one.reason) for one in deep.skipped] == [
        ("a/b/c", "folder too deep: at most 2 below the top")
    ]


def test_a_tree_is_walked_to_its_bottom(tmp_path: Path) -> None:
    """Sources of Java are deeper than ten folders; nothing here may recurse."""
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("Main.java", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)

    found = walk(tmp_path)

    assert _names(found) == ["d/" * 1_200 + "Main.java"]
    assert not Judge(tmp_path).leaves_out(found.files[0].path)
    for _ in range(1_199):  # what removes temporary folders recurses
        (tmp_path / "d" / "d").rename(tmp_path / "below")
        (tmp_path / "d").rmdir()
        (tmp_path / "below").rename(tmp_path / "d")


def test_secrets_are_skipped_by_name_unless_they_are_asked_for(tmp_path: Path) -> None:
    _write(tmp_path, "prod.env", ".npmrc", "a.md", ".env.example", "secrets.py", "id_rsa.pub")

    found = walk(tmp_path)

    assert _names(found) == [".env.example", "a.md", "id_rsa.pub", "secrets.py"]
    assert {one.path: one.reason for one in found.skipped} == {
        "prod.env": SECRET_NAME,
        ".npmrc": SECRET_NAME,
    }
    assert len(_names(walk(tmp_path, WalkOptions(include_secrets=True)))) == 6


def test_links_that_go_round_end(tmp_path: Path) -> None:
    _write(tmp_path, "a/x.md")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "y.md").symlink_to(tmp_path / "a" / "x.md")
    (tmp_path / "lost.md").symlink_to(tmp_path / "nowhere")
    (tmp_path / "itself").symlink_to("itself")

    assert _names(walk(tmp_path)) == ["a/x.md"]
    followed = walk(tmp_path, WalkOptions(follow_symlinks=True))
    assert _names(followed) == ["a/x.md", "y.md"]
    assert followed.left_out["symlink loop"] == 1


def test_binaries_are_listed_and_sockets_and_pipes_are_counted(tmp_path: Path) -> None:
    _write(tmp_path, "a.md", "logo.PNG", "lib.so")
    os.mkfifo(tmp_path / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "s.md"))

        found = walk(tmp_path)

    assert _names(found) == ["a.md"]
    assert found.left_out["no regular file"] == 2
    assert {one.path for one in found.skipped} == {"logo.PNG", "lib.so"}


def test_files_that_are_too_large_are_reported_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x" * 101)
    (tmp_path / "b.md").write_bytes(b"x" * 101)

    found = walk(tmp_path, WalkOptions(max_bytes_by_extension={".CSV": 100}))

    assert _names(found) == ["b.md"]
    [skipped] = found.skipped
    assert (skipped.path, skipped.size) == ("a.csv", 101)
    assert skipped.reason == "too large: 101 bytes, at most 100"


def test_names_that_are_no_text_are_found_and_can_be_stored(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    for name in (b"caf\xe9.md", b"line\nbreak.md", b"file:x.md"):
        with open(top + b"/" + name, "wb") as file:
            file.write(b"x")

    found = _names(walk(tmp_path))

    texts = [to_text(name) for name in found]
    assert sorted(texts) == ["file:caf%E9.md", "file:file%3Ax.md", "line\nbreak.md"]
    assert [str(to_path(text)) for text in texts] == found
    assert all((tmp_path / to_path(text)).exists() for text in texts)
    assert all(text.encode() for text in texts)


@pytest.mark.skipif(is_root, reason="root may read everything")
def test_closed_folder_is_named_and_the_rest_is_found(tmp_path: Path) -> None:
    _write(tmp_path, "a.md", "closed/b.md")
    (tmp_path / "closed").chmod(0)
    try:
        found = walk(tmp_path)
        with pytest.raises(FileRefused):
            walk(tmp_path / "closed")
    finally:
        (tmp_path / "closed").chmod(0o700)

    assert _names(found) == ["a.md"]
    assert found.unread == ["closed/"]


def test_folder_that_fails_to_list_is_named_and_the_rest_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path, "a.md", "closed/b.md", "vanished/c.md")
    real = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        if path.endswith("vanished"):
            raise FileNotFoundError(2, "No such file or directory")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = walk(tmp_path)

    assert _names(found) == ["a.md"]
    assert found.unread == ["closed/"]


def test_top_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileGone, match="nowhere is not there"):
        walk(tmp_path / "nowhere")


def test_this_repository_is_walked_without_what_is_built() -> None:
    found = set(_names(walk(REPOSITORY)))

    assert {"README.md", "src/windrow/errors.py", "tests/ingest/files/test_walk.py"} <= found
    assert not any(name.startswith((".venv/", ".git/")) or ".pyc" in name for name in found)


@pytest.mark.parametrize(
    ("folders", "each"), [(20, 100), pytest.param(200, 100, marks=pytest.mark.chaos)]
)
def test_large_tree_is_walked_in_little_time(tmp_path: Path, folders: int, each: int) -> None:
    for number in range(folders):
        folder = tmp_path / f"d{number % 10}" / f"e{number}"
        folder.mkdir(parents=True)
        for index in range(each):
            (folder / f"f{index}.md").touch()
        (folder / ".gitignore").write_text("*.log\nout/\n!keep.log\n")
    began = time.process_time()

    found = walk(tmp_path)

    seconds = time.process_time() - began
    assert len(found.files) == folders * each
    assert seconds < 100e-6 * len(found.files)  # about 15 µs each where nothing else runs


def _names(found: Walk) -> list[str]:
    return [file.path for file in found.files]


def _write(top: Path, *names: str) -> None:
    for name in names:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
