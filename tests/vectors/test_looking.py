"""How well soft 404s and near duplicates are told from other pages.

The figures of docs/decisions/0014-conversion.md come from here: `pytest -s` prints them.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ingest.convert.pages import read
from windrow.ingest.convert.similarity import bands, is_near_duplicate, resemblance, sketch
from windrow.ingest.convert.soft404 import is_soft_404
from windrow.ingest.document import Document, Metadata

HERE = Path(__file__).parent
CASES: dict[str, list[dict[str, Any]]] = tomllib.loads((HERE / "not_found.toml").read_text("utf-8"))
COPIES = 8  # variations of each page


@pytest.fixture(scope="module")
def documents() -> dict[str, Document]:
    return {path.name: read(path.read_bytes()) for path in sorted((HERE / "pages").iterdir())}


def test_soft_404s_are_found_and_no_other_page_is_taken_for_one(
    documents: dict[str, Document],
) -> None:
    missing = {row["title"]: is_soft_404(_document(row)) for row in CASES["found_not"]}
    others = {row["title"]: is_soft_404(_document(row)) for row in CASES["found"]}
    pages = {name: is_soft_404(document) for name, document in documents.items()}
    is_missing = pages.pop("soft-404.html")
    found = sum(missing.values()) + is_missing
    print(
        f"\nsoft 404: {found} of {len(missing) + 1} found, of {len(others) + len(pages)} others",
        end=" ",
    )
    print(sum(others.values()) + sum(pages.values()), "taken for one")

    assert [title for title, is_found in missing.items() if not is_found] == []
    assert [name for name, is_found in {**others, **pages}.items() if is_found] == []
    assert is_missing


def test_a_page_with_the_status_of_an_error_is_no_soft_404() -> None:
    row = CASES["found_not"][0]

    assert not is_soft_404(Document(metadata=Metadata(status_code=404), **_content(row)))


def _renumbered(text: str, chance: random.Random) -> str:
    return re.sub(r"\d+", lambda found: str(chance.randrange(10 ** len(found[0]))), text)


def _plain(text: str, chance: random.Random) -> str:
    return re.sub(r"[*#`>|]", " ", text).upper()


def _framed(text: str, chance: random.Random) -> str:
    return f"Home Products About us Log in\n\n{text}\n\nTerms Privacy Imprint"


def _longer(text: str, chance: random.Random) -> str:
    parts = text.split("\n\n")
    parts.insert(chance.randrange(len(parts) + 1), "Readers may copy this page if they say so.")
    return "\n\n".join(parts)


def _reworded(text: str, chance: random.Random) -> str:
    """Three words of a hundred are others."""
    words = text.split(" ")
    for _ in range(max(1, len(words) * 3 // 100)):
        words[chance.randrange(len(words))] = "".join(chance.choices("aeiourstln", k=6))
    return " ".join(words)


@pytest.mark.parametrize("vary", [_renumbered, _plain, _framed, _longer, _reworded])
def test_copies_with_small_changes_are_near_duplicates(
    documents: dict[str, Document], vary: Callable[[str, random.Random], str]
) -> None:
    chance = random.Random(14)
    found = looked_up = copies = 0
    for document in documents.values():
        text = document.markdown or ""
        if len(text) < 500 or (original := sketch(text)) is None:
            continue
        for _ in range(COPIES):
            copy = sketch(vary(text, chance))
            copies += 1
            found += is_near_duplicate(original, copy)
            looked_up += copy is not None and not set(bands(original)).isdisjoint(bands(copy))
    print(f"\n{vary.__name__}: {found} of {copies} near duplicates, {looked_up} share a band")

    assert found >= 0.85 * copies
    assert looked_up >= 0.98 * copies


def test_different_pages_are_never_near_duplicates(documents: dict[str, Document]) -> None:
    sketches = [made for one in documents.values() if (made := sketch(one.markdown or ""))]
    most = max(resemblance(one, other) for one, other in combinations(sketches, 2))
    print(f"\n{len(sketches)} pages: the two that are most alike agree in {most:.0%}")

    assert most < 0.3


def test_pages_of_one_template_with_different_content_are_no_duplicates() -> None:
    """A third of the words alike, as on pages of one shop."""
    chance = random.Random(4)
    shared = " ".join("".join(chance.choices("abcdefgh", k=5)) for _ in range(60))
    pages = [
        shared + " " + " ".join("".join(chance.choices("stuvwxyz", k=5)) for _ in range(120))
        for _ in range(30)
    ]
    sketches = [made for page in pages if (made := sketch(page))]

    assert not any(is_near_duplicate(one, other) for one, other in combinations(sketches, 2))


def test_what_says_too_little_is_like_nothing() -> None:
    assert sketch("Sign in to see this page.") is None
    assert not is_near_duplicate(None, None)


def test_a_sketch_is_the_same_everywhere() -> None:
    """It is kept in databases: another value would make every page a new one."""
    text = "the quick brown fox jumps over the lazy dog while 12 hens watch from the fence " * 2

    made = sketch(text)
    assert made is not None
    assert len(made) == 256
    assert made.hex()[:24] == "63ebde56891e694220fd8dd7"
    assert sketch(text.upper().replace("12", "99")) == made


def _content(row: dict[str, Any]) -> dict[str, Any]:
    return {"title": row["title"], "markdown": row["text"]}


def _document(row: dict[str, Any]) -> Document:
    return Document(metadata=Metadata(status_code=200), **_content(row))
