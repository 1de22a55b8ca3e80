"""`make docs` begins with this: write the pages of the reference."""

from __future__ import annotations

from tests.reference.markdown import FOLDER
from tests.reference.pages import PAGES

if __name__ == "__main__":
    for name, render in PAGES.items():
        text = render()
        (FOLDER / name).write_text(text, "utf-8")
        print(f"wrote {name}: {len(text.splitlines())} lines")
