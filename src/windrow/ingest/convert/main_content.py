"""Which part of a page is what people came for.

First whatever frames pages everywhere goes: navigation, banners, footers, share buttons. Then, if
the page names its main part and nearly everything is in it, that part alone is taken. A page that
has only links is an index, and its links are its content: the framing is not removed when little
or nothing would be left.
"""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

from windrow.ingest.convert.cleaning import remove
from windrow.ingest.convert.framing import (
    CALLOUT_NAMES,
    FRAME_NAMES,
    FRAME_ROLES,
    FRAMES,
    MAIN_PARTS,
    TRIMMINGS,
)

MIN_SHARE = 0.4  # of the text of the cleaned page that is in the main part, if it is that
MAX_BESIDE = 0.2  # as much text as this in others of its name, and it is only one of several
MAX_FRAME_SHARE = 0.6  # of the text: a frame with more in it is the page, badly named

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt")
# Only these are looked at for their names: text is full of small elements with classes.
_NAMED_ELEMENTS = (
    ", ".join(
        f"{tag}[class], {tag}[id]"
        for tag in (
            "div",
            "section",
            "aside",
            "header",
            "footer",
            "ul",
            "ol",
            "p",
            "table",
            "td",
            "form",
        )
    )
    + ", a[class]"
)


def keep_main_content(page: LexborHTMLParser, title: str) -> LexborNode | None:
    """Takes the framing out of the page and says which part is left to be read."""
    body = page.body
    if body is None:
        return None
    headings = page.css("h1")
    _remove_frames(page, body)
    part = _find_main_part(body)
    remove(_trimmings(part))
    if len(headings) == 1 and part.css_first("h1") is None:
        _give_heading(part, headings[0], title)
    return part


def _give_heading(part: LexborNode, heading: LexborNode, title: str) -> None:
    """Puts the heading of the page, if this is it, before the part that it was outside of."""
    # The name of the site is a heading too, on every page: then a lesser one is that of the page.
    if _is_in(heading, title) and not any(_is_in(other, title) for other in part.css("h2")):
        first = part.child
        if first is None:
            part.insert_child(heading)
        else:
            first.insert_before(heading)


def _is_in(heading: LexborNode, title: str) -> bool:
    text = " ".join(heading.text().split()).lower()
    return bool(text) and text in title.lower()


def _remove_frames(page: LexborHTMLParser, body: LexborNode) -> None:
    most = len(body.text()) * MAX_FRAME_SHARE
    for node in [*page.css(FRAMES), *_frames_by_role(page), *_named_frames(page)]:
        if _frames(node) and len(node.text()) <= most:
            remove([node])


def _frames_by_role(page: LexborHTMLParser) -> list[LexborNode]:
    return [node for node in page.css("[role]") if node.attributes["role"] in FRAME_ROLES]


def _named_frames(page: LexborHTMLParser) -> list[LexborNode]:
    found = []
    for node in page.css(_NAMED_ELEMENTS):
        attributes = node.attributes
        names = (attributes.get("class") or "").lower().split()
        name = attributes.get("id")
        if not FRAME_NAMES.isdisjoint(names) or (
            # Sections of documents are called what their headings say: "Cookies", "Search".
            name
            and name.lower() in FRAME_NAMES
            and node.tag != "section"
            and "section" not in names
        ):
            found.append(node)
    return found


def _frames(node: LexborNode) -> bool:
    """Whether this really frames the page, and is no part of the text."""
    if node.css_first("main, [role='main']") is not None:
        return False
    if node.css_first("h1") is not None and _is_inside(node, ("article", "main")):
        return False
    match node.tag:
        case "header":  # of an article: its heading and who wrote it when
            return not _is_inside(node, ("article", "main"))
        case "footer":  # of a quotation: whose it is
            return not _is_inside(node, ("blockquote",))
        case "aside":
            return CALLOUT_NAMES.isdisjoint((node.attributes.get("class") or "").lower().split())
    return True


def _is_inside(node: LexborNode, tags: tuple[str, ...]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.tag in tags:
            return True
        parent = parent.parent
    return False


def _find_main_part(body: LexborNode) -> LexborNode:
    """The part that the page names, if it holds enough of the text; otherwise all of it."""
    total = len(body.text())
    for selector in MAIN_PARTS:
        parts = [(len(part.text()), part) for part in body.css(selector)]
        length, largest = max(parts, key=lambda found: found[0], default=(0, body))
        if parts and length >= total * MIN_SHARE and _beside(largest, parts) <= length * MAX_BESIDE:
            return largest
    return body


def _beside(largest: LexborNode, parts: list[tuple[int, LexborNode]]) -> int:
    """How much text is in other parts of that name: the answers to the longest post of a thread."""
    if len(parts) == 1:
        return 0
    inside = {part.mem_id for part in largest.css("*")}
    return sum(length for length, part in parts if part.mem_id not in inside)


def _trimmings(part: LexborNode) -> list[LexborNode]:
    return [
        node
        for node in part.css(TRIMMINGS)
        # A heading that opens what is under it is still a heading.
        if not (node.tag == "button" and _is_inside(node, HEADINGS))
    ]
