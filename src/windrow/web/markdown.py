"""Markdown that others wrote, as HTML that does nothing: no markup of theirs, no scripts, no images
from elsewhere."""

from __future__ import annotations

from typing import Any, Final

from markdown_it import MarkdownIt
from markupsafe import Markup

LONGEST: Final = 100_000


def render_markdown(text: str) -> Markup:
    """Raw HTML is shown as text; links that are no web addresses are not made links."""
    shown = text if len(text) <= LONGEST else text[:LONGEST] + "\n\n…"
    # The parser escapes all that it does not write itself.
    return Markup(_PARSER.render(shown))  # noqa: S704


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.validateLink = _is_harmless  # type: ignore[method-assign]
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", _heading)
    return parser


def _is_harmless(url: str) -> bool:
    return url.lower().lstrip().startswith(("http://", "https://", "mailto:", "#", "/"))


def _image(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    """Its description: the page loads nothing from elsewhere."""
    return str(Markup("<em>[{}]</em>").format(tokens[index].content or "image"))


def _link(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    return str(self.renderToken(tokens, index, options, env))


def _heading(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    """Below those of the page."""
    token = tokens[index]
    token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
    return str(self.renderToken(tokens, index, options, env))


_PARSER: Final = _make_parser()
