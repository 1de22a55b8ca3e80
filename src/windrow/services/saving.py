"""Documents as files in a folder: one for each page, named by its address.

A name is made of the address alone, of letters that every file system takes, and never leads out of
the folder. `pages.jsonl` there says which page is in which file. A page that is written again goes
to the file it had; two pages never share one.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from windrow.errors import ConfigError
from windrow.ingest.document import Document

INDEX: Final = "pages.jsonl"
_BESIDE_MARKDOWN: Final = {"markdown", "metadata", "title", "description", "url", "warning"}
MAX_PART: Final = 120  # bytes of a name; file systems take 255
MAX_PARTS: Final = 12
_UNSAFE: Final = re.compile(r"[^\w.~-]+")
# Names that Windows keeps for itself, with whatever extension.
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


class SavedPage(msgspec.Struct, frozen=True):
    """A line of the index."""

    url: str
    file: str
    status: int
    title: str | None = None


class Folder:
    """A folder that documents are written to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pages: dict[str, SavedPage] = {}
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._root = path.resolve(strict=True)
            self._pages = {page.url: page for page in _read_index(path / INDEX)}
        except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
            raise ConfigError(f"cannot write pages to {path}: {error}") from error
        self._owners = {page.file.casefold(): page.url for page in self._pages.values()}

    def save(self, url: str, document: Document) -> Path:
        """Write a document: its markdown, and all of it as JSON if there is more than that."""
        name = self._name(url)
        if document.markdown is not None:
            self._write(name, document.markdown.rstrip("\n") + "\n")
        wire = document.to_wire()
        if document.markdown is None or wire.keys() - _BESIDE_MARKDOWN:
            other = str(PurePosixPath(name).with_suffix(".json"))
            self._write(other, _pretty(wire))
            name = name if document.markdown is not None else other
        metadata = document.metadata
        self._pages[url] = SavedPage(url, name, metadata.status_code, metadata.title)
        return self.path / name

    def close(self) -> None:
        """Write the index: until then the files are there, and nothing says which is which."""
        lines = [msgspec.json.encode(page) for _, page in sorted(self._pages.items())]
        self._write(INDEX, b"\n".join([*lines, b""]).decode())

    def _name(self, url: str) -> str:
        if url in self._pages:
            return str(PurePosixPath(self._pages[url].file).with_suffix(".md"))
        name = file_name(url)
        if self._owners.get(name.casefold(), url) != url:
            name = file_name(url, is_marked=True)
        self._owners[name.casefold()] = url
        return name

    def _write(self, name: str, text: str) -> None:
        """Whole or not at all; what is there under that name, be it a link, is replaced."""
        path = self._root.joinpath(*PurePosixPath(name).parts)
        draft = path.with_name(f".{path.name}.draft")
        try:
            if not path.parent.resolve().is_relative_to(self._root):
                raise ConfigError(f"{path.parent} leads out of {self._root}")
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            with draft.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
            os.replace(draft, path)
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error}") from error


def file_name(url: str, *, is_marked: bool = False) -> str:
    """Where the page of a URL goes, with `/` between folders. A mark, made of the whole URL, is
    added when the name does not tell all of it, or when asked for."""
    parts = urlsplit(url)
    place = unquote(parts.path)
    folders = [part for part in place.split("/") if part]
    page = "index" if not folders or place.endswith("/") else folders.pop()
    page = page.removesuffix(".md")
    host = (parts.hostname or "") + (f"-{parts.port}" if parts.port else "")  # and no password
    named = [_safe(part) for part in (host, *folders[: MAX_PARTS - 2])]
    is_cut = len(folders) > MAX_PARTS - 2 or named[1:] != folders or _safe(page) != page
    last = _safe(page)
    if is_marked or is_cut or parts.query:
        mark = hashlib.blake2b(url.encode(), digest_size=5).hexdigest()
        last = f"{_cut(last, MAX_PART - len(mark) - 1)}-{mark}"
    return "/".join([*named, f"{last}.md"])


def _safe(part: str) -> str:
    """A part of an address as the name of a file or folder; the same if it may be one."""
    name = _cut(_UNSAFE.sub("-", unicodedata.normalize("NFC", part)), MAX_PART).strip(".")
    # A folder that looks like a page's file would be in the way of that.
    if name.endswith((".md", ".json", ".jsonl")):
        name = name.replace(".md", "-md").replace(".json", "-json")
    if not name or _DEVICES.fullmatch(name):
        name = f"_{name}"
    return name


def _cut(text: str, most_bytes: int) -> str:
    return text.encode()[:most_bytes].decode(errors="ignore")


def _read_index(path: Path) -> Iterator[SavedPage]:
    if path.exists():
        for line in path.read_text("utf-8").splitlines():
            page = msgspec.json.decode(line, type=SavedPage)
            name = page.file.removesuffix(".json").removesuffix(".md") + ".md"
            # A name that we would not give is not ours to write to.
            if name in (file_name(page.url), file_name(page.url, is_marked=True)):
                yield page


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
