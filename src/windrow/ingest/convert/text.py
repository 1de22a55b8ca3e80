"""Text that is no page is passed on as it is: plain text, markdown, JSON, XML, feeds, CSV."""

from __future__ import annotations

import re
from html import escape, unescape

from windrow.ingest.convert.links import LINK_SCHEMES
from windrow.ingest.document import Document, Resource, new_metadata
from windrow.ingest.options import ScrapeOptions

_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\^{}|]+")
# Of XML: addresses elsewhere in it are names of vocabularies.
_ADDRESS_IN_XML = re.compile(
    r"(?:<(?:link|loc|url)[^>]*>|\b(?:href|url)=[\"'])\s*(https?://[^\s<>\"']+)"
)
_XML_TITLE = re.compile(r"<title[^>]*>(?:\s*<!\[CDATA\[)?([^<\]]{1,300})")
_MARKDOWN_TITLE = re.compile(r"^#\s+(.+?)\s*#*$", re.MULTILINE)
_CLOSING = ".,;:!?"


def convert_text(resource: Resource, options: ScrapeOptions, content_type: str) -> Document:
    """The text, under every name that is asked for."""
    text = resource.text()
    metadata = new_metadata(resource)
    metadata.content_type = content_type
    metadata.title = _title_of(text, content_type)
    document = Document(metadata=metadata, title=metadata.title, url=resource.final_url)
    document.markdown = text if options.wants_markdown else None
    if options.wants("html"):
        document.html = f"<pre>{escape(text, quote=False)}</pre>"
    if options.wants("rawHtml"):
        document.raw_html = text
    if options.wants("links"):
        document.links = find_addresses(text, is_xml=content_type.endswith("xml"))
    if options.wants("images"):
        document.images = []
    return document


def find_addresses(text: str, *, is_xml: bool = False) -> list[str]:
    """The web addresses in a text, once each, in its order."""
    if is_xml:
        found = [unescape(address) for address in _ADDRESS_IN_XML.findall(text)]
    else:
        found = [_without_closing(address) for address in _ADDRESS.findall(text)]
    return [link for link in dict.fromkeys(found) if link.startswith(LINK_SCHEMES)]


def _without_closing(address: str) -> str:
    """The address without the punctuation of the sentence, or of the markdown, around it."""
    address = address.rstrip(_CLOSING)
    while address.endswith((")", "]")) and not _is_balanced(address):
        address = address[:-1].rstrip(_CLOSING)
    return address


def _is_balanced(address: str) -> bool:
    return address.count("(") >= address.count(")") and address.count("[") >= address.count("]")


def _title_of(text: str, content_type: str) -> str | None:
    if content_type.endswith("xml"):
        found = _XML_TITLE.search(text)
    elif content_type in ("text/markdown", "text/x-markdown"):
        found = _MARKDOWN_TITLE.search(text)
    else:
        return None
    return (" ".join(unescape(found[1]).split()) or None) if found else None
