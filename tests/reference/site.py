"""`make docs`: the documentation as a site. Beside its pages lie the files outside docs/ that they
link to, under the same paths, so that every link leads somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.reference.markdown import ROOT

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)#: ]+)(?:#([^)]*))?\)|\]\(#([^)]+)\)")


def build(root: Path = ROOT) -> Path:
    """Build the site of the pages below this folder; where it is."""
    site = root / "build" / "site"
    shutil.rmtree(site, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    subprocess.run(command, cwd=root, check=True)
    for path in sorted(set(linked_outside())):
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, target)
    return site


def linked_outside() -> Iterator[Path]:
    """The files of the repository that pages link to and that are no pages."""
    for page in DOCS.glob("**/*.md"):
        for target, _, _ in LINK.findall(page.read_text("utf-8")):
            path = (page.parent / target).resolve()
            if target and not path.is_relative_to(DOCS) and path.is_file():
                yield path.relative_to(ROOT)


if __name__ == "__main__":
    print(f"built {build() / 'docs' / 'index.html'}")
