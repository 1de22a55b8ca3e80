"""Texts become chunks: `chunk(text, language="python")`.

What holds for every text, whatever is in it: `text[chunk.start:chunk.end]` is the chunk, chunks
come in order and never overlap, only white space lies between them, and none is larger than its
limits. Markdown is cut at its headings and blocks, code at its definitions, the rest at its lines.
"""

from __future__ import annotations

import re
from typing import Final

from windrow.index.chunk.pieces import DEFAULT_LIMITS, Chunk, Limits, Piece, pack

__all__ = ["DEFAULT_LIMITS", "Chunk", "Limits", "chunk"]

MARKDOWN: Final = frozenset({"markdown", "md", "mdx", "html", "rst", "text", "plaintext", "txt"})
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
BYTE_ORDER_MARK: Final = "\ufeff"


def chunk(text: str, *, language: str = "markdown", limits: Limits = DEFAULT_LIMITS) -> list[Chunk]:
    """The chunks of a text. Takes CPU time: call it in a thread.

    `language` is that of a file (`python`, `tsx`, `c++`); prose of all kinds is taken as markdown,
    and what there is no grammar for is cut at its lines.
    """
    text = without_lone_surrogates(text)
    start = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    return pack(text, _pieces(text, start, language.lower(), limits), limits)


def without_lone_surrogates(text: str) -> str:
    """The text as it can be encoded, at its old length: what was never decoded is U+FFFD."""
    if text.isascii() or not _LONE_SURROGATE.search(text):
        return text
    return _LONE_SURROGATE.sub("\ufffd", text)


def _pieces(text: str, start: int, language: str, limits: Limits) -> list[Piece]:
    if language in MARKDOWN:
        from windrow.index.chunk.markdown import markdown_pieces

        return markdown_pieces(text, start, limits)
    from windrow.index.chunk.code import code_pieces
    from windrow.index.chunk.pieces import line_pieces

    pieces = code_pieces(text, start, language, limits)
    return line_pieces(text, start, len(text), limits) if pieces is None else pieces
