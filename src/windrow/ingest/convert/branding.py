"""What a page says about the brand it belongs to, as `branding` of the document.

Only what it says in so many words: the name, its pictures and the colour for the browser's frame.
Fonts and the colours of the layout are known to browsers alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windrow.ingest.document import Metadata


def find_branding(metadata: Metadata) -> dict[str, Any]:
    """The parts of a brand that the page names; those that it does not are left out."""
    logo = next(_logos(metadata.json_ld), None)
    scheme = metadata.others.get("color-scheme")
    brand = {
        "brandName": metadata.og_site_name or _one(metadata.others.get("application-name")),
        "colorScheme": scheme if scheme in ("light", "dark") else None,
        "logo": logo,
        "colors": _known({"primary": _one(metadata.others.get("theme-color"))}),
        "images": _known({"logo": logo, "favicon": metadata.favicon, "ogImage": metadata.og_image}),
    }
    return _known(brand)


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _one(value: str | list[str] | None) -> str | None:
    return value[0] if isinstance(value, list) else value


def _logos(blocks: Any, depth: int = 0) -> Iterator[str]:
    """The logos of organisations in JSON-LD."""
    if depth > 4:
        return
    if isinstance(blocks, list):
        for block in blocks:
            yield from _logos(block, depth + 1)
    elif isinstance(blocks, dict):
        logo = blocks.get("logo")
        address = logo.get("url") if isinstance(logo, dict) else logo
        if isinstance(address, str):
            yield address
        for key in ("@graph", "publisher"):
            yield from _logos(blocks.get(key), depth + 1)
