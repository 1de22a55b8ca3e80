"""What conversion keeps of whole pages and what it leaves out: the table is pages.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ingest.convert.pages import read
from windrow.ingest.document import Document

HERE = Path(__file__).parent
DOCUMENTATION = Path("/usr/share/doc")  # where Debian puts that of packages
VECTORS: list[dict[str, Any]] = tomllib.loads((HERE / "pages.toml").read_text("utf-8"))["vector"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda row: row.get("page") or row["debian"])
def test_a_page_keeps_its_content_and_loses_its_framing(vector: dict[str, Any]) -> None:
    document = _document(vector)
    text, flat = document.markdown or "", _flat(document.markdown or "")

    assert [piece for piece in vector["include"] if not _has(piece, text, flat)] == []
    assert [piece for piece in vector["exclude"] if _has(piece, text, flat)] == []
    if "title" in vector:
        assert document.title == vector["title"]


def test_every_page_is_in_the_table_once() -> None:
    listed = [vector["page"] for vector in VECTORS if "page" in vector]

    assert sorted(listed) == sorted(path.name for path in (HERE / "pages").iterdir())
    assert len(VECTORS) >= 40


def _document(vector: dict[str, Any]) -> Document:
    return read(_file(vector).read_bytes(), {"formats": ["markdown"]})


def _file(vector: dict[str, Any]) -> Path:
    if "page" in vector:
        return HERE / "pages" / vector["page"]
    found = sorted(DOCUMENTATION.glob(vector["debian"]))
    if not found:
        pytest.skip(f"no {vector['debian']}: apt-get install python3-doc postgresql-doc-15")
    return found[-1]


def _has(piece: str, text: str, flat: str) -> bool:
    """Pieces of several lines are compared as they are, others without the width of spaces."""
    return piece in text + "\n" if "\n" in piece else _flat(piece) in flat


def _flat(text: str) -> str:
    return " ".join(text.split())
