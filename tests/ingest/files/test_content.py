"""What a file is, and the text of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from windrow.errors import ConversionError, FileGone, FileRefused, UnsupportedFormat
from windrow.ingest.files.content import FileContent, FileTooLarge, read_file, to_text
from windrow.ingest.files.detect import describe

OLD_NS = 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    ("name", "head", "type_", "language"),
    [
        ("a.py", b"import os\n", "code", "python"),
        ("run", b"#!/usr/bin/env -S python3.12 -u\n", "code", "python"),
        ("run", b"#! /bin/sh\n", "code", "bash"),
        ("Makefile", b"all:\n\ttrue\n", "code", "make"),
        ("a/Dockerfile", b"FROM x\n", "code", "dockerfile"),
        ("pyproject.toml", b"[project]\n", "config", "toml"),
        ("README.MD", b"# Title\n", "document", "markdown"),
        ("page.html", b"<p>x", "document", "html"),
        ("LICENSE", b"Apache License\n", "text", None),
        ("empty", b"", "text", None),
        ("paper", b"%PDF-1.7\n\x00\x01", "document", "pdf"),
        ("fake.pdf", b"just text\n", "text", None),
        ("report.docx", b"PK\x03\x04\x14\x00\x00", "document", "office"),
        ("data.py", b"\x7fELF\x02\x01\x01\x00", "binary", None),
        ("blob", b"\x00\x01\x02\x03" * 10, "binary", None),
        ("controls", b"\x01\x02abc\x03", "binary", None),
        ("windows.txt", "Größe\n".encode("utf-16"), "text", None),
        ("windows.txt", "plain text\n".encode("utf-16-le"), "text", None),
        ("latin.txt", "Größe\n".encode("latin-1"), "text", None),
        ("colour.log", b"\x1b[31mred\x1b[0m\n", "text", None),
    ],
)
def test_file_is_known_by_name_and_first_bytes(
    name: str, head: bytes, type_: str, language: str | None
) -> None:
    described = describe(name, head)

    assert (described.type, described.language) == (type_, language)


def test_content_is_read_with_its_hash_and_time(tmp_path: Path) -> None:
    path = _old_file(tmp_path, b"hello")

    content = read_file(path, 100)

    assert content == FileContent(b"hello", OLD_NS, hashlib.sha256(b"hello").hexdigest(), OLD_NS)


def test_time_of_a_file_that_was_written_just_now_is_not_relied_on(tmp_path: Path) -> None:
    path = tmp_path / "new.md"
    path.write_bytes(b"x")

    assert read_file(path, 100).mtime_ns == 0


def test_file_that_is_written_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _old_file(tmp_path, b"before")
    real, looks = os.fstat, 0

    def fstat(number: int) -> os.stat_result:
        nonlocal looks
        looks += 1
        if looks == 2:
            path.write_bytes(b"after!")
            os.utime(path, ns=(OLD_NS + 1, OLD_NS + 1))
        return real(number)

    monkeypatch.setattr(os, "fstat", fstat)

    assert read_file(path, 100).body == b"after!"
    assert looks == 4


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileGone):
        read_file(tmp_path / "nowhere", 100)
    with pytest.raises(UnsupportedFormat):
        read_file(tmp_path / "pipe", 100)
    with pytest.raises(UnsupportedFormat):
        read_file(tmp_path, 100)
    with pytest.raises(FileTooLarge, match="too large: 5 bytes, at most 4"):
        read_file(_old_file(tmp_path, b"hello"), 4)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(FileRefused):
        read_file(tmp_path / "loop", 100)


def test_text_is_decoded_whatever_it_is_encoded_in() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        body = "Die Größe des Straßennetzes überrascht.\n".encode(encoding)

        assert to_text("a.txt", _content(body)).text == "Die Größe des Straßennetzes überrascht.\n"


def test_pages_and_notebooks_become_markdown() -> None:
    page = to_text("a.html", _content(b"<html><title>T</title><main><h1>H</h1><p>Words.</p>"))
    assert page.title == "T"
    assert "# H" in page.text
    assert to_text("a.md", _content(b"# Name\n\ntext")).title == "Name"

    cells = (
        b'{"cells": [{"cell_type": "markdown", "source": ["# A\\n", "b"]},'
        b' {"cell_type": "code", "source": "x = 1", "outputs": ["long"]}]}'
    )
    assert to_text("a.ipynb", _content(cells)).text == "# A\nb\n\n```python\nx = 1\n```"


def test_what_has_no_text_is_refused() -> None:
    with pytest.raises(UnsupportedFormat):
        to_text("a.txt", _content(b"\x00\x01\x02" * 100))
    with pytest.raises(ConversionError):
        to_text("a.ipynb", _content(b'{"cells": 3}'))
    with pytest.raises(ConversionError):
        to_text("a.pdf", _content(b"%PDF-1.7\nbroken"))


def _content(body: bytes) -> FileContent:
    return FileContent(body, 1, hashlib.sha256(body).hexdigest())


def _old_file(folder: Path, body: bytes) -> Path:
    path = folder / "old.md"
    path.write_bytes(body)
    os.utime(path, ns=(OLD_NS, OLD_NS))
    return path
