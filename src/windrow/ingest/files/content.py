"""One file: how large it may be, its bytes with their hash, and the document that is made of them.

A file may change while it is read. Size and time are looked at before and after, so the content,
its hash and the time that is remembered with them belong together. Generated data is large and says
little, so each extension has a limit of its own.

An error of the system that is not known to be of the file itself passes: a full table of open files
or a disk that does not answer must not hide a file for good.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from os.path import splitext
from pathlib import Path
from typing import Final

from windrow.errors import (
    ConversionError,
    FileGone,
    FileRefused,
    FileUnavailable,
    IngestError,
    UnsupportedFormat,
)
from windrow.ingest.document import Resource
from windrow.ingest.files.detect import HEAD_BYTES, Described, describe

MIB: Final = 1024 * 1024
DEFAULT: Final = 50 * MIB  # the largest file that is read, unless its extension has a limit
BY_EXTENSION: Final[Mapping[str, int]] = {
    ".csv": 5 * MIB,
    ".tsv": 5 * MIB,
    ".json": 5 * MIB,
    ".jsonl": 5 * MIB,
    ".ndjson": 5 * MIB,
    ".xml": 5 * MIB,
    ".yaml": 5 * MIB,
    ".yml": 5 * MIB,
    ".sql": 5 * MIB,
    ".log": 5 * MIB,
    ".svg": MIB,
    ".lock": MIB,
    ".map": 0,  # of generated code: nothing a person wrote
    ".ipynb": 10 * MIB,
    ".js": 2 * MIB,
    ".css": 2 * MIB,
}

LOOKS: Final = 3  # at a file that is being written
# Two writes within so short a time can leave the same size and time behind, as clocks of file
# systems tick slowly. Time 0 is remembered for such a file: it is read again at the next scan.
SETTLED_NS: Final = 50_000_000

# Errors that say something of the file itself.
OF_THE_FILE: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.ENODEV}
)


@dataclass(frozen=True, slots=True)
class SizeLimits:
    most: int = DEFAULT
    by_extension: Mapping[str, int] | None = None

    @classmethod
    def of(cls, most: int | None, by_extension: Mapping[str, int]) -> SizeLimits:
        """The usual ones but for these. A limit for all files holds for every extension."""
        named = {extension.lower(): size for extension, size in by_extension.items()}
        if most is not None:
            return cls(most, named)
        return cls(DEFAULT, {**BY_EXTENSION, **named})

    def of_name(self, name: str) -> int:
        by_extension = BY_EXTENSION if self.by_extension is None else self.by_extension
        return by_extension.get(splitext(name)[1].lower(), self.most)


def reason_too_large(size: int, most: int) -> str:
    return f"too large: {size} bytes, at most {most}"


class FileTooLarge(ConversionError):
    """There is more of it than is read."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__("file", reason_too_large(size, most), code="FILE_TOO_LARGE")


@dataclass(frozen=True, slots=True)
class FileContent:
    body: bytes
    mtime_ns: int  # 0: not to be relied on
    sha256: str
    modified_ns: int = 0  # when it says it was changed; 0: it does not


@dataclass(frozen=True, slots=True)
class FileText:
    text: str
    title: str | None
    described: Described


def read_file(path: Path, most: int) -> FileContent:
    """The whole file. Raises FileGone, FileRefused, FileUnavailable, FileTooLarge,
    UnsupportedFormat for what is no file."""
    for _ in range(LOOKS):
        content = _read(path, most)
        if content is not None:
            return content
    raise FileRefused(os.fspath(path), "it changes all the time")


def to_text(name: str, content: FileContent) -> FileText:
    """The text of a file: as it is, or converted. Takes CPU time.

    Raises UnsupportedFormat for what has no text, ConversionError for what cannot be read.
    """
    described = describe(name, content.body[:HEAD_BYTES])
    if described.type == "binary":
        raise UnsupportedFormat("binary file", "it has no text")
    if described.language == "notebook":
        return _notebook(content.body, described)
    if described.language in ("html", "pdf", "office", "markdown"):
        return _converted(name, content.body, described)
    return FileText(_decoded(content.body), None, described)


def _read(path: Path, most: int) -> FileContent | None:
    """The file, or None if it changed meanwhile."""
    try:
        # Not blocking: whoever put a named pipe in the file's place would have us wait for ever.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise UnsupportedFormat("special file", "it is no regular file")
            if before.st_size > most:
                raise FileTooLarge(before.st_size, most)
            body = file.read(before.st_size + 1)
            after = os.fstat(file.fileno())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileGone(os.fspath(path)) from error
    except IsADirectoryError as error:
        raise UnsupportedFormat("folder", "it is no regular file") from error
    except OSError as error:
        raise cannot_read(path, error) from error
    if len(body) != before.st_size or before.st_mtime_ns != after.st_mtime_ns:
        return None
    is_settled = time.time_ns() - after.st_mtime_ns > SETTLED_NS
    digest = hashlib.sha256(body).hexdigest()
    modified = after.st_mtime_ns
    return FileContent(body, modified if is_settled else 0, digest, modified)


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        from windrow.ingest.fetch.charset import detect_charset

        return body.decode(detect_charset(body, ""), "replace").removeprefix("\ufeff")


def _converted(name: str, body: bytes, described: Described) -> FileText:
    from windrow.ingest.convert import convert

    url = f"file:///{name}"
    content_type = "" if described.language == "office" else described.content_type
    document = convert(Resource(url, url, 200, body, content_type=content_type))
    text = document.markdown or ""
    if len(text) > DEFAULT:  # as much as is read of a plain text, whatever it was packed into
        raise FileTooLarge(len(text), DEFAULT)
    return FileText(text, document.title, described)


def _notebook(body: bytes, described: Described) -> FileText:
    """The cells of a notebook, without what they put out."""
    import msgspec

    try:
        cells = msgspec.json.decode(body)["cells"]
        parts = [_cell(cell) for cell in cells]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ConversionError(described.content_type, str(error)) from error
    return FileText("\n\n".join(part for part in parts if part.strip()), None, described)


def _cell(cell: dict[str, str | list[str]]) -> str:
    source = cell["source"]
    text = source if isinstance(source, str) else "".join(source)
    return text if cell["cell_type"] != "code" else f"```python\n{text}\n```"


def cannot_read(path: str | Path, error: OSError) -> IngestError:
    why = error.strerror or str(error)
    if error.errno in OF_THE_FILE:
        return FileRefused(os.fspath(path), why)
    return FileUnavailable(os.fspath(path), why)
