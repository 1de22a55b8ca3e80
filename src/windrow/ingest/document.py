"""`Resource`, what was fetched, and `Document`, what it was turned into.

On the wire a document has the camelCase names of the Firecrawl API, and what is absent is left
out; only `metadata.statusCode` and `metadata.proxyUsed` are always there. `to_wire` and `from_wire`
are the way in and out: they put a page's other `<meta>` names beside the known ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal

import msgspec


@dataclass(frozen=True, slots=True)
class Resource:
    """The answer of a server, whole: after redirects and decompression."""

    url: str  # as asked for
    final_url: str
    status: int
    body: bytes
    content_type: str = ""  # the media type alone: lower case, without parameters
    charset: str | None = None  # of text: what the server, the text itself or a look at it says
    headers: Mapping[str, str] = field(default_factory=dict)  # looked up in any case
    redirects: tuple[str, ...] = ()  # the addresses that were left behind, in order
    fetched_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    etag: str | None = None
    last_modified: str | None = None
    is_unchanged: bool = False  # a conditional request was answered with 304; no body

    def text(self) -> str:
        """The body as text, with U+FFFD for what is broken in it."""
        # A byte order mark is no part of the text; only codecs of Unicode leave one here.
        return self.body.decode(self.charset or "utf-8", "replace").removeprefix("\ufeff")


class _Wire(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """A part of a document."""


class AttributeValues(_Wire):
    selector: str
    attribute: str
    values: list[str]


class ScrapedFrame(_Wire):
    url: str
    html: str


class JavascriptReturn(_Wire):
    type: str
    value: Any


class ActionResults(_Wire):
    screenshots: list[str] | None = None
    scrapes: list[ScrapedFrame] | None = None
    javascript_returns: list[JavascriptReturn] | None = None
    pdfs: list[str] | None = None


class LineChange(_Wire):
    """One line of a diff: `ln` of a removed or added one, `ln1` and `ln2` of one that stayed."""

    type: str
    content: str
    normal: bool | None = None
    ln: int | None = None
    ln1: int | None = None
    ln2: int | None = None


class DiffChunk(_Wire):
    content: str
    changes: list[LineChange]


class DiffFile(msgspec.Struct, rename={"from_": "from"}):
    from_: str | None
    to: str | None
    chunks: list[DiffChunk]


class DiffFiles(_Wire):
    files: list[DiffFile]


class Diff(_Wire):
    text: str
    json: DiffFiles


class ChangeTracking(_Wire):
    previous_scrape_at: str | None  # null is an answer: there was none
    change_status: Literal["new", "same", "changed", "removed"]
    visibility: Literal["visible", "hidden"]
    diff: Diff | None = None
    json: Any = None


class Page(_Wire):
    """One page of a paged format, such as PDF."""

    page_number: int
    markdown: str


class Metadata(_Wire):
    status_code: int
    proxy_used: Literal["basic", "stealth"] = msgspec.field(default_factory=lambda: "basic")

    title: str | None = None
    description: str | None = None
    language: str | None = None
    keywords: str | None = None
    robots: str | None = None
    favicon: str | None = None

    og_title: str | None = None
    og_description: str | None = None
    og_url: str | None = None
    og_image: str | None = None
    og_audio: str | None = None
    og_determiner: str | None = None
    og_locale: str | None = None
    og_locale_alternate: list[str] | None = None
    og_site_name: str | None = None
    og_video: str | None = None

    dc_terms_created: str | None = None
    dc_date_created: str | None = None
    dc_date: str | None = None
    dc_terms_type: str | None = None
    dc_type: str | None = None
    dc_terms_audience: str | None = None
    dc_terms_subject: str | None = None
    dc_subject: str | None = None
    dc_description: str | None = None
    dc_terms_keywords: str | None = None

    modified_time: str | None = None
    published_time: str | None = None
    article_tag: str | None = None
    article_section: str | None = None

    url: str | None = None  # the one that answered, after redirects
    source_url: str | None = msgspec.field(default=None, name="sourceURL")  # the one asked for
    scrape_id: str | None = None
    error: str | None = None
    num_pages: int | None = None
    total_pages: int | None = None
    content_type: str | None = None
    timezone: str | None = None
    cache_state: Literal["hit", "miss"] | None = None
    cached_at: str | None = None
    credits_used: int | None = None
    postprocessors_used: list[str] | None = None
    concurrency_limited: bool | None = None
    concurrency_queue_duration_ms: int | None = None

    # JSON-LD blocks, as they are, and every other <meta> under its own name.
    json_ld: list[Any] | None = None
    others: dict[str, str | list[str]] = msgspec.field(default_factory=dict)


class Document(_Wire):
    metadata: Metadata
    title: str | None = None
    description: str | None = None
    url: str | None = None
    markdown: str | None = None
    html: str | None = None
    raw_html: str | None = None
    raw_base64: str | None = None
    links: list[str] | None = None
    images: list[str] | None = None
    screenshot: str | None = None
    extract: Any = None
    json: Any = None
    summary: str | None = None
    answer: str | None = None
    highlights: str | None = None
    attributes: list[AttributeValues] | None = None
    actions: ActionResults | None = None
    change_tracking: ChangeTracking | None = None
    branding: dict[str, Any] | None = None
    product: dict[str, Any] | None = None
    menu: dict[str, Any] | None = None
    audio: str | None = None
    video: str | None = None
    pages: list[Page] | None = None
    blocks: list[dict[str, Any]] | None = None
    warning: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """The document as JSON values, under the names of the API."""
        wire: dict[str, Any] = msgspec.to_builtins(self)
        metadata = wire["metadata"]
        # A page cannot overrule what is known about it.
        wire["metadata"] = metadata.pop("others", {}) | metadata
        return wire

    @staticmethod
    def from_wire(wire: Mapping[str, Any]) -> Document:
        """The document that `to_wire` wrote."""
        metadata = wire["metadata"]
        others = {name: value for name, value in metadata.items() if name not in _KNOWN}
        known = {name: value for name, value in metadata.items() if name in _KNOWN}
        return msgspec.convert({**wire, "metadata": {**known, "others": others}}, Document)

    def warn(self, text: str) -> None:
        """Adds a warning to those there are."""
        self.warning = f"{self.warning} {text}" if self.warning else text


_KNOWN = frozenset(Metadata.__struct_encode_fields__) - {"others"}


def new_metadata(resource: Resource) -> Metadata:
    """What is known before anybody looks into the body."""
    return Metadata(
        status_code=resource.status,
        url=resource.final_url,
        source_url=resource.url,
        content_type=resource.content_type or None,
        language=resource.headers.get("content-language") or None,
        error=answer_error(resource.status),
    )


def answer_error(status: int) -> str | None:
    """The name of the error that a server answered with; None if it is no error."""
    if status < HTTPStatus.BAD_REQUEST:
        return None
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"HTTP {status}"
