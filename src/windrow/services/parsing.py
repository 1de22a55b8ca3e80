"""A file that somebody has, as a document: converted where it was handed in, and not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from windrow.errors import InvalidOptions
from windrow.ingest.convert import convert
from windrow.ingest.document import Document, Resource
from windrow.ingest.enrich.llm import Model
from windrow.ingest.enrich.model_formats import enrich
from windrow.ingest.options import FormatName, ScrapeOptions
from windrow.settings import Settings

# What only a page of the web has, or only a browser can do.
NOT_OF_FILES: Final = ("actions", "waitFor", "location", "mobile")
NOT_FORMATS: Final[tuple[FormatName, ...]] = (
    "changeTracking",
    "screenshot",
    "branding",
    "audio",
    "video",
)
OK: Final = 200
# Each conversion may take a core.
_threads: Final = ThreadPoolExecutor(2, thread_name_prefix="windrow-parsing")


async def parse_file(
    settings: Settings,
    name: str,
    body: bytes,
    content_type: str = "",
    options: Mapping[str, Any] | None = None,
) -> Document:
    """The document that is made of a file. Raises InvalidOptions, UnsupportedFormat and
    ConversionError."""
    wanted = check_options(options or {})
    resource = Resource(
        url=name,
        final_url=name,
        status=OK,
        body=body,
        content_type=content_type.partition(";")[0].strip().lower(),
    )
    loop = asyncio.get_running_loop()
    document = await loop.run_in_executor(_threads, convert, resource, wanted)
    model = Model.from_settings(settings)
    try:
        await enrich(document, wanted, model)
    finally:
        if model is not None:
            await model.close()
    return document


def check_options(options: Mapping[str, Any]) -> ScrapeOptions:
    """Options of a scrape, but those that files have no use for."""
    for name in NOT_OF_FILES:
        if options.get(name):
            raise InvalidOptions(f"{name}: files that are parsed do not support it")
    wanted = ScrapeOptions.parse(options)
    if wanted.proxy not in (None, "auto", "basic"):
        raise InvalidOptions("proxy: files that are parsed support auto and basic only")
    for name in NOT_FORMATS:
        if wanted.wants(name):
            raise InvalidOptions(f"formats: files that are parsed do not support {name!r}")
    return wanted
