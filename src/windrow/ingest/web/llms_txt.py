"""llms.txt: a list of a site's pages in Markdown, written for machines that read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from windrow.ingest.web.urls import normalise, origin_of, place_of

NAMES: Final = ("llms.txt", "llms-full.txt")
MAX_LINKS: Final = 10_000

_LINK: Final = re.compile(
    r"\]\(\s*<?([^\s<>()]{1,2048}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,2048})?)>?"
    r"|(?<![(\w])(https?://[^\s<>()\[\]\"'`]{1,2048})"
)
_FENCE: Final = re.compile(r"^\s*(```|~~~)")


def llms_txt_urls(start: str) -> list[str]:
    """Where the files may be for a crawl that begins at `start`: beside it, and at the root."""
    origin, path = origin_of(start), place_of(start).path
    folders = dict.fromkeys((f"{origin}{path.rpartition('/')[0]}/", f"{origin}/"))
    return [f"{folder}{name}" for folder in folders for name in NAMES]


def read_llms_txt(text: str, url: str) -> list[str]:
    """The pages that the file at `url` names, each once, in its order; not those in its code."""
    found: dict[str, None] = {}
    for line in _prose(text):
        for link in _LINK.finditer(line):
            target = normalise((link[1] or link[2]).rstrip(".,;:!?*"), url)
            if target is not None:
                found[target] = None
        if len(found) >= MAX_LINKS:
            break
    return list(found)[:MAX_LINKS]


def is_llms_txt(content_type: str, text: str) -> bool:
    """Whether an answer is such a file, and not the page a site shows for whatever is asked."""
    if "html" in content_type:
        return False
    return bool(text.strip()) and not text.lstrip()[:200].lower().startswith(("<!doctype", "<html"))


def _prose(text: str) -> Iterator[str]:
    is_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield line
