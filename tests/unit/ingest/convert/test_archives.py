"""Archives that unpack to far more than they are."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from windrow.errors import ConversionError
from windrow.ingest.convert import pdf_office
from windrow.ingest.convert.pdf_office import check_archive
from windrow.ingest.files.content import FileContent, FileTooLarge, to_text


def epub(size: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("a.xhtml", b"a" * size)
    return made.getvalue()


def lying(body: bytes) -> bytes:
    """The same, but its directory says that the last file in it has one byte."""
    made = bytearray(body)
    at = made.rfind(b"PK\x01\x02")
    made[at + 24 : at + 28] = struct.pack("<I", 1)
    return bytes(made)


@pytest.mark.parametrize("make", [epub, lambda size: lying(epub(size))], ids=["plain", "lying"])
def test_archive_that_is_too_much_is_refused_before_it_is_unpacked(
    make: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = make(3_000_000)  # type: ignore[operator]
    assert len(body) < 10_000
    check_archive(epub(3_000_000), "epub")
    monkeypatch.setattr(pdf_office, "MOST_UNPACKED", 2_000_000)

    with pytest.raises(ConversionError, match="too large"):
        check_archive(body, "epub")
    with pytest.raises(ConversionError, match="too large"):
        to_text("book.epub", FileContent(body, 1, "0"))


def test_archive_of_very_many_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_office, "MOST_MEMBERS", 1)
    with pytest.raises(ConversionError, match="2 files in it"):
        check_archive(epub(10), "epub")


@pytest.mark.parametrize("length", [4, 40, -30])
def test_archive_that_cannot_be_looked_into_is_broken(length: int) -> None:
    body = epub(1000)[:length]
    with pytest.raises(ConversionError, match="broken"):
        check_archive(body, "epub")


def test_text_is_bounded_whatever_it_was_packed_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windrow.ingest.files.content.DEFAULT", 1000)
    page = b"<html><body><p>" + b"word " * 1000 + b"</p></body></html>"
    with pytest.raises(FileTooLarge):
        to_text("page.html", FileContent(page, 1, "0"))
