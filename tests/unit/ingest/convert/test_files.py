"""PDF, office files, text, and what is none of them."""

from __future__ import annotations

import pytest

from tests.unit.ingest.convert import files
from tests.unit.ingest.convert.pages import read
from windrow.errors import ConversionError, UnsupportedFormat


def test_a_pdf_becomes_markdown_with_its_title_and_pages_counted() -> None:
    data = files.pdf(["First page\nand more", "Second page"], title="A report")
    document = read(data, {"formats": ["markdown", "html"]}, content_type="application/pdf")

    assert document.markdown == "First page and more\n\nSecond page"
    assert document.title == document.metadata.title == "A report"
    assert (document.metadata.num_pages, document.metadata.total_pages) == (2, 2)
    assert document.warning == "Such a file has no HTML."


def test_a_pdf_is_read_up_to_its_page_cap() -> None:
    data = files.pdf(["One", "Two", "Three"])
    parser = {"type": "pdf", "maxPages": 2, "pages": True, "pageMarkers": True}
    document = read(data, {"parsers": [parser]}, content_type="application/pdf")

    assert document.markdown == "One\n\n---\n\n<!-- page 2 -->\n\nTwo"
    assert [page.markdown for page in document.pages or []] == ["One", "Two"]
    assert (document.metadata.num_pages, document.metadata.total_pages) == (2, 3)
    assert document.warning == "Only the first 2 of 3 pages were read."


def test_page_cap_of_a_pdf_keeps_tables_and_headings() -> None:
    table = "\n".join(f"Line number {n} of the text that goes on for a while." for n in range(9))
    data = files.pdf([f"# Part {page}\n{table}" for page in range(3)])
    whole = read(data, content_type="application/pdf").markdown or ""
    assert "| --- |" in whole, "what a page alone does not have"

    parser = {"type": "pdf", "maxPages": 2}
    document = read(data, {"parsers": [parser]}, content_type="application/pdf")
    assert document.markdown is not None
    assert whole.startswith(document.markdown[:200])
    assert document.markdown.count("| --- |") == 2 * whole.count("| --- |") // 3
    assert "2 |" not in document.markdown.partition("Part")[0]
    assert (document.metadata.num_pages, document.metadata.total_pages) == (2, 3)


def test_without_a_parser_a_pdf_is_handed_over_as_it_is() -> None:
    document = read(files.pdf(["One"]), {"parsers": []}, content_type="application/pdf")

    assert document.markdown is None
    assert (document.raw_base64 or "").startswith("JVBERi0x")


@pytest.mark.parametrize(
    ("data", "code", "why"),
    [
        (files.pdf(["One"], encrypt=True), "SCRAPE_ENCRYPTED_FILE_ERROR", "locked by a password"),
        (b"%PDF-1.4\nand then nothing", "SCRAPE_CONVERSION_ERROR", "broken"),
    ],
)
def test_a_pdf_that_cannot_be_read_says_why(data: bytes, code: str, why: str) -> None:
    with pytest.raises(ConversionError, match=why) as refused:
        read(data, content_type="application/pdf")

    assert refused.value.code == code
    assert refused.value.content_type == "pdf"


def test_a_pdf_without_text_comes_with_a_warning() -> None:
    document = read(files.pdf([""]), content_type="application/pdf")

    assert document.markdown == ""
    assert "may be made of images" in (document.warning or "")


@pytest.mark.parametrize(
    ("data", "content_type", "expected"),
    [
        (files.docx("Plan", "We begin."), files.DOCX, "## Plan\n\nWe begin."),
        (files.xlsx([["Item", "Price"], ["Tea", "3"]]), files.XLSX, "| Tea | 3 |"),
        (files.pptx("Our goals"), files.PPTX, "## Our goals"),
        (files.odt("An open text"), files.ODT, "An open text"),
        (files.epub("A book", "Once."), files.EPUB, "# A book\n\nOnce."),
        (rb"{\rtf1 Some \b bold\b0  text}", "application/rtf", "Some **bold** text"),
    ],
)
@pytest.mark.parametrize("is_said", [True, False])
def test_office_files_become_markdown_whether_the_server_knows_them_or_not(
    data: bytes, content_type: str, expected: str, is_said: bool
) -> None:
    url = "https://example.org/file.rtf" if b"rtf1" in data else "https://example.org/file"
    said = content_type if is_said else "application/octet-stream"
    document = read(data, content_type=said, url=url)

    assert expected in (document.markdown or "")
    assert document.metadata.content_type == content_type


def test_a_broken_office_file_says_so() -> None:
    with pytest.raises(ConversionError, match="document cannot be read: it is broken"):
        read(b"PK\x03\x04 and so on", content_type=files.DOCX)


def test_an_office_file_whose_checksum_is_wrong_says_so() -> None:
    """Its reader tells of that by an error of the system's, not by one of its own."""
    slides = files.pptx("A slide of ours").replace(b"A slide of ours", b"A slide of hers")

    with pytest.raises(ConversionError, match="presentation cannot be read: it is broken"):
        read(slides, content_type=files.PPTX)


def test_a_table_that_is_called_a_spreadsheet_is_still_text() -> None:
    document = read("a,b\n1,2\n", content_type="application/vnd.ms-excel")

    assert document.markdown == "a,b\n1,2\n"
    assert document.metadata.content_type == "text/plain"


def test_a_new_spreadsheet_under_the_name_of_an_old_one_is_read() -> None:
    data = files.xlsx([["Item"], ["Tea"]])

    assert "| Tea |" in (read(data, content_type="application/vnd.ms-excel").markdown or "")


def test_an_old_office_file_that_is_broken_says_so() -> None:
    with pytest.raises(ConversionError, match="broken"):
        read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), content_type="application/msword")


@pytest.mark.parametrize(
    ("text", "content_type"),
    [
        ("Plain <b>text</b>\n", "text/plain"),
        ("# Title\n\n- a\n- b", "text/markdown"),
        ('{"a": [1, 2]}', "application/json"),
        ('{"@context": "x"}', "application/ld+json"),
        ("a,b\n1,2\n", "text/csv"),
        ("<?xml version='1.0'?><a>b</a>", "application/xml"),
        ("key: value", "application/yaml"),
    ],
)
def test_text_is_passed_on_as_it_is(text: str, content_type: str) -> None:
    document = read(text, content_type=content_type)

    assert document.markdown == text
    assert document.metadata.content_type == content_type


def test_a_feed_has_its_title_and_the_links_of_its_entries() -> None:
    feed = """<?xml version="1.0"?><rss xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>
    <title>News &amp; more</title><link>https://example.org/?a=1&amp;b=2</link>
    <item><title>One</title><link>https://example.org/1</link></item></channel></rss>"""
    document = read(feed, {"formats": ["links"]}, content_type="application/rss+xml")

    assert document.title == "News & more"
    assert document.links == ["https://example.org/?a=1&b=2", "https://example.org/1"]


def test_addresses_in_text_end_where_the_sentence_goes_on() -> None:
    text = "See [this](https://a.example/x_(y)), https://b.example/. And (https://c.example/?q=1)!"
    document = read(text, {"formats": ["links"]}, content_type="text/markdown")

    assert document.links == [
        "https://a.example/x_(y)",
        "https://b.example/",
        "https://c.example/?q=1",
    ]


@pytest.mark.parametrize(
    ("body", "content_type", "named"),
    [
        (b"\x89PNG\r\n\x1a\n\x00", "image/png", "image/png"),
        (b"\x00\x01\x02", "", "application/octet-stream"),
        (b"PK\x03\x04", "application/octet-stream", "application/zip"),
        (b"ID3", "audio/mpeg", "audio/mpeg"),
    ],
)
def test_what_has_no_text_is_refused_by_its_type(
    body: bytes, content_type: str, named: str
) -> None:
    with pytest.raises(UnsupportedFormat, match=named) as refused:
        read(body, content_type=content_type)

    assert refused.value.code == "SCRAPE_UNSUPPORTED_FILE_ERROR"


def test_raw_base64_is_to_be_had_of_anything() -> None:
    document = read(b"\x89PNG", {"formats": ["rawBase64"]}, content_type="image/png")

    assert document.raw_base64 == "iVBORw=="


@pytest.mark.parametrize("content_type", ["", "application/octet-stream", "application/xml"])
def test_a_page_is_known_by_its_first_bytes(content_type: str) -> None:
    page = '<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><h1>Hi</h1></html>'

    assert read(page, content_type=content_type).markdown == "# Hi"


def test_the_charset_of_a_page_is_looked_for_when_nobody_said_it() -> None:
    page = '<meta charset="windows-1251"><p>Привет, мир</p>'.encode("cp1251")

    assert read(page).markdown == "Привет, мир"
