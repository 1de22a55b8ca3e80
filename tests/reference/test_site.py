"""The site is built without a complaint, loads nothing from elsewhere, and its links lead
somewhere."""

from __future__ import annotations

import re
import shutil
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tests.reference.markdown import ROOT
from tests.reference.site import DOCS, build

LOADED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)="?([^" >]+)')
LINKED = re.compile(r'<a\b[^>]*?\bhref="?([^" >]+)')
ANCHOR = re.compile(r'\bid="?([^" >]+)')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, root / "docs")
    shutil.copy(ROOT / "mkdocs.yml", root)
    return build(root)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in site.glob("docs/**/*.html")}


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, str]) -> None:
    loaded = {one for text in pages.values() for one in LOADED.findall(text)}

    assert len(pages) > 50
    assert [one for one in loaded if one.startswith(("http:", "https:", "//"))] == []


def test_links_of_the_site_lead_somewhere(pages: dict[Path, str]) -> None:
    anchors = {path: set(ANCHOR.findall(text)) for path, text in pages.items()}
    dead = [
        f"{path.name}: {link}"
        for path, text in pages.items()
        if path.name != "404.html"  # it is shown anywhere, so its links are absolute
        for link in set(LINKED.findall(text))
        if not _leads_somewhere(path, link, anchors)
    ]

    assert dead == []


def _leads_somewhere(page: Path, link: str, anchors: dict[Path, set[str]]) -> bool:
    if link.startswith(("http:", "https:", "mailto:")):
        return True
    file, anchor = urldefrag(unquote(link))
    target = Path(normpath(page.parent / file)) if file else page
    if target.is_dir():
        target /= "index.html"
    return target.exists() and (not anchor or anchor in anchors.get(target, set()))
