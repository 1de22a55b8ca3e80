"""HTML that was cleaned already becomes markdown."""

from __future__ import annotations

import re

from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

from windrow.ingest.convert.taming import flatten

# The library leaves out what is deeper than 1,024; a level of a table is four elements.
MOST_NESTED = 200

_INLINE_IMAGE = re.compile(r"!\[([^\]]*)\]\(<?data:[^)>]*>?(?:\s+\"[^\"]*\")?\)")
_AS_IT_IS = PreprocessingOptions(enabled=False)


def to_markdown(html: str, base_url: str, *, remove_inline_images: bool) -> str:
    """The HTML as markdown, with absolute links."""
    options = ConversionOptions(
        base_url=base_url,
        preprocessing=_AS_IT_IS,
        extract_metadata=False,
        compact_tables=True,  # no spaces to make columns even: a wide table is mostly these
        highlight_style="none",
        hidden_content="all",  # what is hidden was removed before, where it should be
    )
    result = convert(html, options)
    if any("depth limit" in warning.message for warning in result.warnings):
        result = convert(flatten(html, MOST_NESTED), options)
    markdown = result.content or ""
    if (remove_inline_images and "](data:" in markdown) or "](<data:" in markdown:
        markdown = _INLINE_IMAGE.sub(_without_data, markdown)
    return markdown.strip("\n")


def _without_data(match: re.Match[str]) -> str:
    return f"![{match[1]}](<Base64-Image-Removed>)" if match[1].strip() else ""
