"""docs/reference/ says what the code says. What has no words of its own fails to be rendered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.reference.markdown import FOLDER, Undocumented, needed
from tests.reference.pages import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    render: Callable[[], str] = PAGES[name]

    written = (FOLDER / name).read_text("utf-8")

    assert written == render(), f"docs/reference/{name} is out of date: make docs"


def test_every_page_of_the_folder_is_made() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)


def test_what_has_no_words_is_refused() -> None:
    with pytest.raises(Undocumented, match="frobnicate says nowhere what it is"):
        needed("  ", "frobnicate")
