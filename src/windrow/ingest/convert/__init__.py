"""Resources become documents: `convert(resource, options)`.

Each kind of file has a module of its own, imported when the first of its kind comes.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import assert_never

from windrow.errors import UnsupportedFormat
from windrow.ingest.convert.detect import Detected, Kind, detect
from windrow.ingest.document import Document, Resource, new_metadata
from windrow.ingest.options import FormatName, ScrapeOptions

# What nothing here or above makes of a page: said, never silently left out.
NOT_TO_BE_HAD: tuple[FormatName, ...] = ("menu", "audio", "video")


def convert(resource: Resource, options: ScrapeOptions | None = None) -> Document:
    """The document that is made of this. Takes CPU time: call it in a thread.

    Raises `UnsupportedFormat` for what has no text, `ConversionError` for what cannot be read.
    """
    options = options or ScrapeOptions()
    if options.wants("rawBase64"):
        return _as_it_is(resource)
    found = detect(resource)
    if found.kind in (Kind.HTML, Kind.TEXT):
        resource = _with_charset(resource)
    document = _convert(resource, options, found)
    for name in NOT_TO_BE_HAD:
        if options.wants(name):
            document.warn(f"The format {name!r} is not available.")
    return document


def _convert(resource: Resource, options: ScrapeOptions, found: Detected) -> Document:
    match found.kind:
        case Kind.HTML:
            from windrow.ingest.convert.html import convert_html

            return convert_html(resource, options)
        case Kind.PDF:
            from windrow.ingest.convert.pdf_office import convert_pdf

            return convert_pdf(resource, options)
        case Kind.OFFICE:
            from windrow.ingest.convert.pdf_office import convert_office

            return convert_office(resource, options, found.content_type)
        case Kind.TEXT:
            from windrow.ingest.convert.text import convert_text

            return convert_text(resource, options, found.content_type)
        case Kind.BINARY:
            raise UnsupportedFormat(found.content_type)
    assert_never(found.kind)


def _as_it_is(resource: Resource) -> Document:
    return Document(
        metadata=new_metadata(resource),
        url=resource.final_url,
        raw_base64=base64.b64encode(resource.body).decode("ascii"),
    )


def _with_charset(resource: Resource) -> Resource:
    """Text whose charset nobody has looked for, such as that of a file."""
    if resource.charset is not None:
        return resource
    from windrow.ingest.fetch.charset import detect_charset

    said = resource.headers.get("content-type", "")
    return replace(resource, charset=detect_charset(resource.body, said))
