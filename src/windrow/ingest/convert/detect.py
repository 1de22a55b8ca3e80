"""What a body is: by what the server says, unless it says nothing or the first bytes say better."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from windrow.ingest.document import Resource

SNIFFED_BYTES = 1_024

OFFICE_BY_EXTENSION = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".doc": "application/msword",
    ".xls": "application/vnd.ms-excel",
    ".ppt": "application/vnd.ms-powerpoint",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".epub": "application/epub+zip",
    ".rtf": "application/rtf",
    ".eml": "message/rfc822",
}
# Servers say these of other files too: of what a spreadsheet exported, say.
OLD_OFFICE_TYPES = frozenset(OFFICE_BY_EXTENSION[name] for name in (".doc", ".xls", ".ppt"))
OLD_OFFICE_START = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
OFFICE_TYPES = frozenset(OFFICE_BY_EXTENSION.values()) | {"text/rtf"}
# A file in the archive -> what the archive is.
OFFICE_BY_MEMBER = {
    "word/document.xml": OFFICE_BY_EXTENSION[".docx"],
    "xl/workbook.xml": OFFICE_BY_EXTENSION[".xlsx"],
    "ppt/presentation.xml": OFFICE_BY_EXTENSION[".pptx"],
}
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
# What servers say when they do not know.
VAGUE_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/zip"})
_TEXT_TYPES = re.compile(
    r"text/|application/(?:.*\+)?(?:json|xml|yaml|toml)$"
    r"|application/(?:json5|ld\+json|x-ndjson|jsonlines|x-yaml|javascript|x-javascript|ecmascript"
    r"|sql|graphql|x-sh|x-tex|x-latex|x-httpd-php)$"
)
_HTML_START = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body)\b", re.I | re.S)
_XHTML_START = re.compile(rb"\s*<\?xml[^>]*>\s*(?:<!DOCTYPE html[^>]*>\s*)?<html\b", re.I)


class Kind(StrEnum):
    HTML = "html"
    PDF = "pdf"
    OFFICE = "office"
    TEXT = "text"  # also JSON, XML, CSV and the like
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Detected:
    kind: Kind
    content_type: str


def detect(resource: Resource) -> Detected:
    """The kind of a resource, and its media type as far as one can tell."""
    said = resource.content_type
    head = resource.body[:SNIFFED_BYTES]
    if head.lstrip()[:5] == b"%PDF-" or said == "application/pdf":
        return Detected(Kind.PDF, "application/pdf")
    if said in HTML_TYPES:
        return Detected(Kind.HTML, said)
    if said in VAGUE_TYPES or (said in OLD_OFFICE_TYPES and not head.startswith(OLD_OFFICE_START)):
        return _sniff(resource, head)
    if said in OFFICE_TYPES:
        return Detected(Kind.OFFICE, said)
    if _TEXT_TYPES.match(said):
        # A page under the name of its syntax.
        kind = Kind.HTML if said.endswith("/xml") and _XHTML_START.match(head) else Kind.TEXT
        return Detected(kind, said)
    return Detected(Kind.BINARY, said)


def _sniff(resource: Resource, head: bytes) -> Detected:
    if head[:4] == b"PK\x03\x04":
        office = _office_in_archive(resource.body)
        return Detected(Kind.OFFICE, office) if office else Detected(Kind.BINARY, "application/zip")
    extension = PurePosixPath(urlsplit(resource.final_url).path).suffix.lower()
    by_name = OFFICE_BY_EXTENSION.get(extension)
    if by_name and (by_name not in OLD_OFFICE_TYPES or head.startswith(OLD_OFFICE_START)):
        return Detected(Kind.OFFICE, by_name)
    if _HTML_START.match(head) or _XHTML_START.match(head) or not head:
        return Detected(Kind.HTML, "text/html")
    if b"\x00" in head and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return Detected(Kind.BINARY, resource.content_type or "application/octet-stream")
    return Detected(Kind.TEXT, "text/plain")


def _office_in_archive(body: bytes) -> str | None:
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            names = set(archive.namelist())
            for member, content_type in OFFICE_BY_MEMBER.items():
                if member in names:
                    return content_type
            if "mimetype" in names and archive.getinfo("mimetype").file_size < SNIFFED_BYTES:
                said = archive.read("mimetype").decode("ascii", "replace").strip()
                return said if said in OFFICE_TYPES else None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError):
        return None  # broken, or locked: an archive of which nothing is known
    return None
