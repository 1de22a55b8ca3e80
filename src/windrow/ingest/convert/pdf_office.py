"""PDF and office files, read by kreuzberg: markdown, and page by page where a file has pages.

Extraction cannot be interrupted from Python; the time limit is kreuzberg's own. Office files are
archives, and a small archive can be made to unpack to more than any memory has: how much there is
of one is found out first, a piece at a time.
"""

from __future__ import annotations

import base64
import copy
import io
import re
import zipfile
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from windrow.errors import ConversionError, MissingExtra
from windrow.ingest.convert.text import find_addresses
from windrow.ingest.document import Document, Page, Resource, new_metadata
from windrow.ingest.options import Parser, ScrapeOptions

DEFAULT_SECONDS = 60
PAGE_MARKER = "\n\n---\n\n<!-- page {} -->\n\n"
FIRST_WORDS: Final = 8  # of a page, by which it is found
# By how much of a page the words of the two texts may differ: lines at the head and foot of pages
# may be left out of the markdown.
TOLERANCE: Final = 0.2
LEAST_TOLERANCE: Final = 20
_WORD: Final = re.compile(r"\w+")

MAGIC: Final = b"PK"
MOST_UNPACKED: Final = 100 * 1024 * 1024
MOST_MEMBERS: Final = 10_000
PIECE: Final = 1024 * 1024
TOO_MUCH: Final = f"it is too large: more than {MOST_UNPACKED} bytes unpacked"


try:
    import kreuzberg
except ModuleNotFoundError as error:
    raise MissingExtra("knowledge", "PDF and office files") from error


def convert_pdf(resource: Resource, options: ScrapeOptions) -> Document:
    """A PDF as markdown; without a parser for it, the file itself."""
    parser = options.parser("pdf")
    if parser is None:
        document = _new_document(resource, "application/pdf")
        document.raw_base64 = base64.b64encode(resource.body).decode("ascii")
        return document
    result = _extract(resource.body, "application/pdf", options)
    document = _new_document(resource, "application/pdf")
    _describe(document, result.metadata)
    _write_pages(document, result, parser)
    _finish(document, options)
    if parser.mode == "ocr":
        document.warn("OCR is not available; the text is that of the file.")
    if parser.blocks:
        document.warn("Blocks of a PDF are not available.")
    return document


def convert_office(resource: Resource, options: ScrapeOptions, content_type: str) -> Document:
    """A word processor's, spreadsheet's or presentation's file as markdown."""
    if resource.body.startswith(MAGIC):
        check_archive(resource.body, _name(content_type))
    result = _extract(resource.body, content_type, options)
    document = _new_document(resource, content_type)
    _describe(document, result.metadata)
    document.markdown = result.content.strip("\n")
    _finish(document, options)
    return document


def _new_document(resource: Resource, content_type: str) -> Document:
    metadata = new_metadata(resource)
    metadata.content_type = content_type
    return Document(metadata=metadata, url=resource.final_url)


def _extract(body: bytes, content_type: str, options: ScrapeOptions) -> kreuzberg.ExtractionResult:
    seconds = DEFAULT_SECONDS if options.timeout is None else max(1, options.timeout // 1000)
    config = kreuzberg.ExtractionConfig(
        output_format="markdown",
        use_cache=False,
        enable_quality_processing=False,
        pages=kreuzberg.PageConfig(extract_pages=True),
        extraction_timeout_secs=seconds,
    )
    try:
        return kreuzberg.extract_bytes_sync(body, content_type, config)
    except kreuzberg.KreuzbergError as error:
        raise _explain(content_type, str(error)) from error
    except OSError as error:
        # So it tells of some files that are broken inside; of the system's own errors by number.
        if error.errno is not None:
            raise
        raise _explain(content_type, str(error)) from error


def _explain(content_type: str, message: str) -> ConversionError:
    lower = message.lower()
    name = _name(content_type)
    if "password" in lower or "encrypted" in lower:
        return ConversionError(
            name, "it is locked by a password", code="SCRAPE_ENCRYPTED_FILE_ERROR"
        )
    if "timed out" in lower:
        return ConversionError(name, "it took too long", code="SCRAPE_TIMEOUT")
    if "limit" in lower:
        return ConversionError(name, f"it is too large: {message}")
    return ConversionError(name, f"it is broken: {message}")


def _name(content_type: str) -> str:
    return content_type.rpartition("/")[2].rpartition(".")[2]


def _describe(document: Document, about: Any) -> None:
    """What the file says about itself."""
    core = about.get("core_properties") or {}
    document.metadata.title = document.title = about.get("title") or core.get("title") or None
    document.metadata.description = document.description = (
        about.get("subject") or core.get("description") or core.get("subject") or None
    )
    keywords = about.get("keywords") or core.get("keywords")
    if keywords:
        document.metadata.keywords = keywords if isinstance(keywords, str) else ", ".join(keywords)
    language = about.get("language") or core.get("language")
    document.metadata.language = language or document.metadata.language
    authors = about.get("authors") or core.get("creator")
    if authors:
        document.metadata.others["author"] = authors


def _write_pages(document: Document, result: kreuzberg.ExtractionResult, parser: Parser) -> None:
    pages = [
        Page(page_number=page["page_number"], markdown=_tidy(page["content"]))
        for page in result.pages or []
    ]
    total = len(pages) or result.get_page_count()
    document.metadata.total_pages = document.metadata.num_pages = total
    document.markdown = result.content.strip("\n")
    is_capped = parser.max_pages is not None and parser.max_pages < total
    if is_capped or parser.pages or parser.page_markers:
        pages = _split_pages(document.markdown, pages)
    if is_capped:
        pages = pages[: parser.max_pages]
        document.metadata.num_pages = len(pages)
        document.warn(f"Only the first {len(pages)} of {total} pages were read.")
    if parser.page_markers or document.metadata.num_pages < total:
        document.markdown = _join(pages, is_marked=parser.page_markers)
    if parser.pages:
        document.pages = pages


def _join(pages: list[Page], *, is_marked: bool) -> str:
    if not is_marked:
        return "\n\n".join(page.markdown for page in pages if page.markdown)
    first, *rest = pages or [Page(page_number=1, markdown="")]
    return first.markdown + "".join(
        PAGE_MARKER.format(page.page_number) + page.markdown for page in rest
    )


def _tidy(text: str) -> str:
    return text.replace("\r\n", "\n").strip("\n")


def _finish(document: Document, options: ScrapeOptions) -> None:
    """Leaves what was asked for, and says what could not be had."""
    markdown = document.markdown or ""
    if not markdown.strip():
        document.warn("The file has no text; it may be made of images.")
    if options.wants("links"):
        document.links = find_addresses(markdown)
    if options.wants("images"):
        document.images = []
    if options.wants("html", "rawHtml"):
        document.warn("Such a file has no HTML.")
    if not options.wants_markdown:
        document.markdown = None


def _split_pages(markdown: str, pages: Sequence[Page]) -> list[Page]:
    """The pages, cut from the markdown of the whole file, which has headings and tables but does
    not say where a page begins; their bare texts, as they are, if one is not found in it."""
    lines = markdown.strip("\n").split("\n")
    words = [_WORD.findall(line) for line in lines]
    starts = [0]
    for before, page in pairwise(pages):
        passed = len(_WORD.findall(before.markdown))
        first = _WORD.findall(page.markdown)[:FIRST_WORDS]
        start = _find_start(words, first, starts[-1], passed)
        if start is None:
            return list(pages)
        starts.append(start)
    ends = [*starts[1:], len(lines)]
    return [
        Page(page_number=page.page_number, markdown="\n".join(lines[start:end]).strip("\n"))
        for page, start, end in zip(pages, starts, ends, strict=False)
    ]


def _find_start(
    words: Sequence[list[str]], wanted: Sequence[str], begin: int, passed: int
) -> int | None:
    """The line that begins with these words, with so many words since `begin`, or about so many."""
    tolerance = max(LEAST_TOLERANCE, passed * TOLERANCE)
    found: tuple[float, int] | None = None
    seen = 0
    for number in range(begin, len(words)):
        line = words[number]
        distance = abs(seen - passed)
        size = min(len(line), len(wanted))
        if size and distance <= tolerance and line[:size] == list(wanted[:size]):
            found = min(found or (distance, number), (distance, number))
        seen += len(line)
        if seen > passed + tolerance:
            break
    return None if found is None else found[1]


def check_archive(body: bytes, name: str) -> None:
    """Raises ConversionError for an archive that is too much, or that cannot be looked into. One
    with a password is for the reader to refuse, who says so."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            _check_members(archive, name)
    except (zipfile.BadZipFile, NotImplementedError, zlib.error, EOFError, ValueError) as error:
        raise ConversionError(name, f"it is broken: {error}") from error
    except RuntimeError:
        return


def _check_members(archive: zipfile.ZipFile, name: str) -> None:
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise ConversionError(name, f"it is too large: {len(members)} files in it")
    left = MOST_UNPACKED
    for member in members:
        # What the archive says of sizes and sums may be a lie: read on until there is no more.
        unbounded = copy.copy(member)
        unbounded.file_size = left + 1
        del unbounded.CRC
        with archive.open(unbounded) as unpacked:
            while piece := unpacked.read(PIECE):
                left -= len(piece)
                if left < 0:
                    raise ConversionError(name, TOO_MUCH)
