"""HTML that was cleaned already becomes markdown."""

from __future__ import annotations

import re

from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

_INLINE_IMAGE = re.compile(r"!\[([^\]]*)\]\(<?data:[^)>]*>?(?:\s+\"[^\"]*\")?\)")
_AS_IT_IS = PreprocessingOptions(enabled=False)


def to_markdown(html: str, base_url: str, *, remove_inline_images: bool) -> str:
    """The HTML as markdown, with absolute links."""
    options = ConversionOptions(
        base_url=base_url,
        preprocessing=_AS_IT_IS,
        extract_metadata=False,
        highlight_style="none",
        hidden_content="all",  # what is hidden was removed before, where it should be
    )
    markdown = convert(html, options).content or ""
    if (remove_inline_images and "](data:" in markdown) or "](<data:" in markdown:
        markdown = _INLINE_IMAGE.sub(_without_data, markdown)
    return markdown.strip("\n")


def _without_data(match: re.Match[str]) -> str:
    return f"![{match[1]}](<Base64-Image-Removed>)" if match[1].strip() else ""
