"""Resources become documents: `convert(resource, options)`.

Each format has a module of its own, imported when the first of its kind comes.
"""

from __future__ import annotations

from windrow.ingest.document import Document, Resource
from windrow.ingest.options import ScrapeOptions


def convert(resource: Resource, options: ScrapeOptions | None = None) -> Document:
    """The document that is made of this. Takes CPU time: call it in a thread.

    Raises `UnsupportedFormat` for what has no text, `ConversionError` for what cannot be read.
    """
    from windrow.ingest.convert.html import convert_html

    return convert_html(resource, options or ScrapeOptions())
