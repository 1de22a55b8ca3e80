"""Real pages and real questions: Debian's documentation of Python and Postgres, and their indexes.

An entry of a book's own index says on which pages its readers look for a term. So each entry is a
question, and the pages it names are the answers. Nothing of it was written for a search engine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from windrow.errors import IngestError
from windrow.ingest.convert import convert
from windrow.ingest.document import Resource

DOCUMENTATION: Final = Path("/usr/share/doc")  # where Debian puts that of packages
INSTALL: Final = "apt-get install python3-doc postgresql-doc-15"
PYTHON: Final = "python3.[0-9]*/html"
POSTGRES: Final = "postgresql-doc-*/html"
# Pages that are indexes themselves, or made by a machine from all others.
NOT_READ: Final = re.compile(
    r"(genindex.*|bookindex|contents|py-modindex|search|download|index|biblio)\.html"
    r"|_static/.*|_images/.*|_downloads/.*|_sources/.*|whatsnew/changelog\.html"
)
_ANOTHER: Final = re.compile(r"\[\d+\]|\[Link\]")


@dataclass(frozen=True, slots=True)
class Page:
    name: str  # python/library/re.html
    title: str
    text: str
    language: str = "markdown"


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    pages: frozenset[str]


def folders() -> dict[str, Path]:
    """Where the books are; empty if they are not installed."""
    found = {
        "python": sorted(DOCUMENTATION.glob(f"{PYTHON}/genindex.html")),
        "postgres": sorted(DOCUMENTATION.glob(f"{POSTGRES}/bookindex.html")),
    }
    return (
        {name: paths[-1].parent.resolve() for name, paths in found.items()}
        if all(found.values())
        else {}
    )


def read_pages(books: dict[str, Path]) -> Iterator[Page]:
    for book, folder in books.items():
        for path in sorted(folder.rglob("*.html")):
            name = path.relative_to(folder).as_posix()
            if NOT_READ.fullmatch(name) or path.is_symlink():
                continue
            try:
                document = convert(
                    Resource(
                        url := f"http://docs/{book}/{name}",
                        url,
                        200,
                        path.read_bytes(),
                        "text/html",
                    )
                )
            except IngestError:
                continue
            if document.markdown:
                yield Page(f"{book}/{name}", document.title or "", document.markdown)


def read_questions(books: dict[str, Path], pages: set[str], of_each: int) -> list[Question]:
    """The same ones in every run: so many entries of each book, spread over all of it."""
    asked: list[Question] = []
    for book, folder in books.items():
        entries: dict[str, set[str]] = {}
        for term, link in _entries(book, folder):
            page = f"{book}/{link.partition('#')[0]}"
            if page in pages and re.search(r"[^\W\d_]{2}", term):
                entries.setdefault(term, set()).add(page)
        chosen = random.Random(book).sample(sorted(entries), min(of_each, len(entries)))
        asked += [Question(term, frozenset(entries[term])) for term in chosen]
    return asked


def _entries(book: str, folder: Path) -> Iterator[tuple[str, str]]:
    """(term, link) of an index; the term of an entry below another has that one's before it."""
    if book == "python":
        for path in sorted(folder.glob("genindex-[A-Z_]*.html")):
            tree = LexborHTMLParser(path.read_text("utf-8"))
            for entry in tree.css("table.indextable > tbody > tr > td > ul > li"):
                yield from _of_sphinx(entry, "")
    else:
        tree = LexborHTMLParser((folder / "bookindex.html").read_text("utf-8"))
        for entries in tree.css("div.indexdiv > dl"):
            yield from _of_docbook(entries, "")


def _of_sphinx(entry: LexborNode, above: str) -> Iterator[tuple[str, str]]:
    links = [child for child in _children(entry) if child.tag == "a"]
    own = links[0].text() if links else entry.text(deep=False)
    term = _joined(above, own)
    for link in links:
        yield term, link.attributes.get("href") or ""
    for below in _children(entry):
        if below.tag == "ul":
            for child in _children(below):
                yield from _of_sphinx(child, term)


def _of_docbook(entries: LexborNode, above: str) -> Iterator[tuple[str, str]]:
    term = above
    for child in _children(entries):
        if child.tag == "dt":
            term = _joined(above, child.text(deep=False).split(",")[0])
            for link in child.css("a.indexterm"):
                yield term, link.attributes.get("href") or ""
        elif child.tag == "dd":
            for below in child.css("dl")[:1]:
                yield from _of_docbook(below, term)


def _children(node: LexborNode) -> Iterator[LexborNode]:
    return iter(node.iter())


def _joined(above: str, own: str) -> str:
    if own.lstrip().startswith("("):  # "abort() (in module os)" also has "(ftplib.FTP method)"
        above = above.partition(" (")[0]
    return " ".join(f"{above} {_ANOTHER.sub('', own)}".split())
