"""Sitemaps: the pages and further sitemaps that a site says it has.

The reader knows the few elements it wants and nothing of DTDs, so there are no entities to expand
and none to load. It takes broken XML as far as it can be read, gzip, plain lists of URLs, and stops
at its caps: what it holds at a time is one chunk.
"""

from __future__ import annotations

import codecs
import html
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from windrow.ingest.web.urls import normalise

# The protocol's own bounds for one file.
MAX_BYTES: Final = 50 * 1024 * 1024
MAX_ENTRIES: Final = 50_000

_CHUNK: Final = 64 * 1024
_GZIP: Final = b"\x1f\x8b"
_MAX_TOKEN: Final = 16 * 1024  # longer "tags" and texts are not those of a sitemap
_ENCODING: Final = re.compile(rb"""^<\?xml[^>]*encoding=["']([A-Za-z0-9._-]+)""")
_TAG: Final = re.compile(r"<(/?)(?:([\w.-]+):)?([\w.-]+)")
_ENTITY: Final = re.compile(r"&(?:amp|lt|gt|quot|apos|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
# Of pictures, films and translations of a page, which have addresses too.
_OTHERS: Final = frozenset({"image", "video", "news", "xhtml", "mobile", "geo", "xsi"})


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    url: str
    last_modified: str | None = None
    is_sitemap: bool = False  # an index leads to further sitemaps


def read_sitemap(
    body: bytes | Iterable[bytes],
    url: str,
    *,
    max_bytes: int = MAX_BYTES,
    max_entries: int = MAX_ENTRIES,
) -> Iterator[SitemapEntry]:
    """The entries of the sitemap at `url`, each as soon as it is read."""
    chunks = _sliced(body) if isinstance(body, bytes) else body
    reader = _Reader(url)
    count = 0
    for text in _decoded(_bounded(_unzipped(chunks), max_bytes)):
        for entry in reader.feed(text):
            yield entry
            count += 1
            if count >= max_entries:
                return
    yield from reader.close()


class _Reader:
    """Text in, entries out. Holds what is not complete yet, and that is never much."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._rest = ""
        self._is_xml: bool | None = None
        self._ending = ""  # of the comment or literal that the text is in just now
        self._is_sitemap = False
        self._field: str | None = None
        self._values: dict[str, str] = {}

    def feed(self, text: str) -> Iterator[SitemapEntry]:
        text, self._rest = self._rest + text, ""
        if self._is_xml is None and (begin := text.lstrip("\ufeff \t\r\n")):
            self._is_xml = begin.startswith("<")
        if self._is_xml:
            yield from self._read_xml(text)
        else:
            whole, _, self._rest = text.rpartition("\n")
            self._rest = self._rest[-_MAX_TOKEN:]
            yield from _read_lines(whole)

    def close(self) -> Iterator[SitemapEntry]:
        if not self._is_xml:
            yield from _read_lines(self._rest)
        elif (entry := self._finished()) is not None:
            yield entry

    def _read_xml(self, text: str) -> Iterator[SitemapEntry]:
        at = 0
        while at < len(text):
            if self._ending:
                at = self._pass_to_ending(text, at)
                continue
            opened = text.find("<", at)
            if opened < 0:
                self._keep_text(text[at:])
                return
            self._add_text(_unescaped(text[at:opened]))
            if (at := self._enter(text, opened)) >= 0:
                continue
            closed = text.find(">", opened)
            if closed < 0:
                # A tag that goes on for ever is none: all that is left of it is dropped.
                self._rest = text[opened:] if len(text) - opened < _MAX_TOKEN else ""
                return
            at = closed + 1
            tag = _TAG.match(text, text.rfind("<", opened, closed), closed)
            if tag is not None and (entry := self._take(tag)) is not None:
                yield entry

    def _enter(self, text: str, at: int) -> int:
        """Where the inside of a comment or a literal begins, or -1 if there is none here."""
        for opening, ending in (("<!--", "-->"), ("<![CDATA[", "]]>")):
            if text.startswith(opening, at):
                self._ending = ending
                return at + len(opening)
        return -1

    def _pass_to_ending(self, text: str, at: int) -> int:
        found = text.find(self._ending, at)
        if found < 0:
            # The last two characters may be the beginning of it.
            stop = max(at, len(text) - 2)
        else:
            stop = found
        if self._ending == "]]>":
            self._add_text(text[at:stop])
        if found < 0:
            self._rest = text[stop:]
            return len(text)
        self._ending = ""
        return found + 3

    def _keep_text(self, text: str) -> None:
        """Of the last text: an entity at its end may be cut."""
        amp = text.rfind("&", -12)
        self._rest = text[amp:] if amp >= 0 and ";" not in text[amp:] else ""
        self._add_text(_unescaped(text[: len(text) - len(self._rest)]))

    def _take(self, tag: re.Match[str]) -> SitemapEntry | None:
        end, prefix, name = tag.groups()
        if prefix in _OTHERS:
            return None
        return self._end(name.lower()) if end else self._begin(name.lower())

    def _begin(self, name: str) -> SitemapEntry | None:
        if name in ("url", "sitemap"):
            # One that was never closed still counts.
            entry = self._finished()
            self._is_sitemap = name == "sitemap"
            return entry
        self._field = name if name in ("loc", "lastmod") else None
        return None

    def _end(self, name: str) -> SitemapEntry | None:
        self._field = None
        return self._finished() if name in ("url", "sitemap", "urlset", "sitemapindex") else None

    def _add_text(self, text: str) -> None:
        if self._field is not None and len(self._values.get(self._field, "")) < _MAX_TOKEN:
            self._values[self._field] = self._values.get(self._field, "") + text

    def _finished(self) -> SitemapEntry | None:
        values, self._values, self._field = self._values, {}, None
        location = values.get("loc", "").strip()
        url = normalise(location, self._base) if location else None
        if url is None:
            return None
        return SitemapEntry(url, values.get("lastmod", "").strip() or None, self._is_sitemap)


def _read_lines(text: str) -> Iterator[SitemapEntry]:
    for line in text.splitlines():
        if (url := normalise(line)) is not None:
            yield SitemapEntry(url)


def _unescaped(text: str) -> str:
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def _sliced(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _CHUNK):
        yield body[start : start + _CHUNK]


def _unzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks, unpacked if they are gzip, never more than a chunk at a time."""
    unpacker = None
    is_first = True
    for chunk in chunks:
        if is_first and chunk.startswith(_GZIP):
            unpacker = zlib.decompressobj(wbits=31)
        is_first = is_first and not chunk
        if unpacker is None:
            yield chunk
            continue
        while chunk:
            try:
                yield unpacker.decompress(chunk, _CHUNK)
            except zlib.error:
                return  # what came before it is whole
            chunk = unpacker.unconsumed_tail
            if unpacker.eof:
                # Some tools write a file as several parts.
                chunk = unpacker.unused_data
                unpacker = zlib.decompressobj(wbits=31)


def _bounded(chunks: Iterable[bytes], most: int) -> Iterator[bytes]:
    left = most
    for chunk in chunks:
        yield chunk[:left]
        left -= len(chunk)
        if left <= 0:
            return


def _decoded(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder = None
    for chunk in chunks:
        if decoder is None:
            decoder = codecs.getincrementaldecoder(_encoding_of(chunk))("replace")
        yield decoder.decode(chunk)


def _encoding_of(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    declared = _ENCODING.search(head[:200])
    try:
        return codecs.lookup(declared[1].decode()).name if declared else "utf-8-sig"
    except LookupError:
        return "utf-8-sig"
