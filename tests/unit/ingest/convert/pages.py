"""Short ways to say what a page is and what comes of it."""

from __future__ import annotations

from typing import Any

from windrow.ingest.convert import convert
from windrow.ingest.document import Document, Resource
from windrow.ingest.options import ScrapeOptions

URL = "https://example.org/docs/page.html"


def resource(
    body: str | bytes,
    *,
    content_type: str = "text/html",
    url: str = URL,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Resource:
    data = body.encode() if isinstance(body, str) else body
    return Resource(url, url, status, data, content_type=content_type, headers=headers or {})


def read(body: str | bytes, options: dict[str, Any] | None = None, **about: Any) -> Document:
    """The document made of this page."""
    return convert(resource(body, **about), ScrapeOptions.parse(options))


def markdown(body: str, **options: Any) -> str:
    return read(body, options).markdown or ""
