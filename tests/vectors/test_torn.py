"""Pages cut, doubled and mixed at random are still read: no error, whatever is left of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ingest.convert.pages import read

PAGES = [path.read_bytes() for path in sorted((Path(__file__).parent / "pages").iterdir())]
STRAY = b"<table> <td> </div> <a> <pre> <noscript> <svg> <math> <body> <select> <!-- <caption> \x00"
OPTIONS: list[dict[str, Any]] = [
    {"formats": ["markdown", "html", "links", "images"]},
    {"onlyMainContent": False},
    {"includeTags": ["p", "div", "table"], "excludeTags": ["a"]},
]


@pytest.mark.parametrize("seed", range(8))
def test_a_torn_page_is_still_read(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(12):
        page = bytearray(chance.choice(PAGES))
        for _ in range(chance.randrange(1, 10)):
            _tear(page, chance)
        document = read(bytes(page), chance.choice(OPTIONS))

        assert document.markdown is not None or document.html is not None


def _tear(page: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(page) + 1)
    end = min(len(page), start + chance.randrange(300))
    match chance.randrange(4):
        case 0:
            del page[start:end]
        case 1:
            page[start:start] = chance.choice(STRAY.split())
        case 2:
            page[start:start] = chance.choice(PAGES)[start : start + 500]
        case _:
            page[start:end] = page[start:end] * chance.randrange(1, 4)
