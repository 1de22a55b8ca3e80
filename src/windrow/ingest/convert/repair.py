"""What the parser cannot do with a page by itself: `tame` before it, `fill_slots` after it.

A tree builder takes time that grows with the square of the nesting, with the square of the
attributes of one tag, and with the product of the different formatting tags left open and the
paragraphs after them: 33 kB of `<font a=1><font a=2>…` and `<p>` became 1.6 GB of tree. Browsers
stop nesting at 512. Such markup is cut back; ordinary pages pass a few counts and are not touched.

A streamed page has its content beside the places where a script puts it. React sends a placeholder
first (`<template id="B:0">`, often with a fallback such as "Loading"), then the content in a hidden
container (`<div hidden id="S:0">`), then a call that moves it: `$RC("B:0","S:0")`. Whole containers
are moved here, so each call costs the same.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_DEPTH = 512  # as in browsers
FEW_TAGS = 1_000  # half of them open, the others each opening all of those again: 100 MB
MANY_TAGS = 20_000  # half of them nested are parsed in 0.2 s, ten times as many in 75 s
MAX_REBUILT = 500_000  # elements that open formatting may add to the tree, of 400 bytes each
MAX_ALIKE = 3  # open tags that are alike and opened again all the same
MAX_TAG_CHARACTERS = 16_384  # of one tag, beyond which its attributes are looked at
MAX_BARE_CHARACTERS = 4_096  # of these, without their values

_FORMATTING = "b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"
# Looking at the first letter first makes this three times as fast.
_WITH_ATTRIBUTES = re.compile(rf"<(?=[bcefinstu])({_FORMATTING})([\s/][^>]*)>", re.IGNORECASE)
_FORMATTING_TAG = re.compile(rf"<(/?)({_FORMATTING})(?:\s[^>]*)?>", re.IGNORECASE)
_SCOPE = re.compile(r"<(?:object|applet|marquee)\b", re.IGNORECASE)
_LONG_TAG = re.compile(rf"<([a-zA-Z][^\s>]*)[^>]{{{MAX_TAG_CHARACTERS},}}>")
_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'")
# Elements that nest. Those that end by themselves (p, li, td) cannot do so without one of these.
_NESTING_TAG = re.compile(
    rf"<(/?)(div|span|section|article|table|ul|ol|dl|blockquote|a|center|details|fieldset|main"
    rf"|header|footer|nav|aside|figure|form|ins|del|label|sub|sup|object|svg|g|{_FORMATTING}"
    r"|[a-z]+-[a-z-]+)(?=[\s>/])[^>]*>",
    re.IGNORECASE,
)

MAX_CALLS = 1_000  # each may nest one container in another; the rest is shown where it is
# $RC and $RR complete a boundary (slot, content); $RS completes a segment (content, slot).
_CALL = re.compile(r"\$R([CRS])\(\s*[\"']([^\"']{1,100})[\"']\s*,\s*[\"']([^\"']{1,100})[\"']")


def tame(text: str) -> str:
    """The same page, or one that can be parsed in reasonable time."""
    if len(text) > MAX_TAG_CHARACTERS and max(map(len, text.split(">"))) > MAX_TAG_CHARACTERS:
        text = _LONG_TAG.sub(_without_attributes, text)
    tags = text.count("<")
    if tags > FEW_TAGS:
        text = _unify_formatting(text, tags)
    if tags > MANY_TAGS:
        text = _drop_open_formatting(text)
    # Tables in tables are taken apart one by one, which is slow where they are deep.
    if tags > MANY_TAGS or (tags > FEW_TAGS and text.lower().count("<table") > MAX_DEPTH):
        text = flatten(text)
    return text


def flatten(text: str, most: int = MAX_DEPTH) -> str:
    """Leaves out the tags, not the text, of what is nested deeper than a browser would."""
    depth = 0

    def keep_if_shallow(match: re.Match[str]) -> str:
        nonlocal depth
        if match[1]:
            depth = max(0, depth - 1)
            return match[0] if depth < most else ""
        depth += 1
        return match[0] if depth <= most else ""

    return _NESTING_TAG.sub(keep_if_shallow, text)


def _without_attributes(match: re.Match[str]) -> str:
    bare = _VALUE.sub("", match[0])
    return match[0] if len(bare) <= MAX_BARE_CHARACTERS else f"<{match[1]}>"


def _unify_formatting(text: str, tags: int) -> str:
    """Makes formatting alike where too much of it differs."""
    if len(set(_WITH_ATTRIBUTES.findall(text))) * tags <= MAX_REBUILT:
        return text
    return _WITH_ATTRIBUTES.sub(r"<\1>", text)


def _drop_open_formatting(text: str) -> str:
    """Leaves out all formatting of a page that opens more of it than it closes."""
    opened: dict[str, int] = {}
    for slash, name in _FORMATTING_TAG.findall(text):
        count = opened.get(name, 0)
        opened[name] = max(0, count - 1) if slash else count + 1
        if count > MAX_ALIKE and not slash:
            return _FORMATTING_TAG.sub("", text)
    # Inside of these an end tag does not end what was begun outside.
    is_hidden = len(_SCOPE.findall(text)) > MAX_DEPTH
    return _FORMATTING_TAG.sub("", text) if is_hidden else text


def fill_slots(page: LexborHTMLParser, text: str) -> None:
    """Move streamed content to where a browser shows it. `text` is the source of the page."""
    if "$R" not in text:
        return
    calls = [call for script in page.css("script") for call in _CALL.findall(script.text())]
    if not calls:
        return
    by_id = {node.attributes["id"]: node for node in page.css("[id]")}
    filled = []
    for count, (verb, first, second) in enumerate(calls):
        slot, content = (second, first) if verb == "S" else (first, second)
        container = by_id.get(content)
        if container is None:
            continue
        _show(container)
        place = by_id.pop(slot, None)
        if place is not None and count < MAX_CALLS and not _is_around(container, place):
            _remove_fallback(place)
            place.replace_with(container, move=True)
            filled.append(container)
    for container in filled:
        if container.tag == "div":  # what it holds may be a part of a sentence
            container.unwrap()


def _show(container: LexborNode) -> None:
    """Rows of tables are in a hidden table, whose part has the id."""
    holder: LexborNode | None = container
    while holder is not None and "hidden" not in holder.attributes:
        holder = holder.parent if holder.tag in ("tbody", "tr", "colgroup") else None
    if holder is not None:
        del holder.attrs["hidden"]


def _remove_fallback(place: LexborNode) -> None:
    """The fallback ends with the comment that closes the boundary."""
    fallback, depth = [], 0
    node = place.next
    while node is not None:
        if node.is_comment_node:
            mark = node.comment_content or ""
            if mark.startswith("/$"):
                if not depth:
                    break
                depth -= 1
            elif mark.startswith("$"):
                depth += 1
        fallback.append(node)
        node = node.next
    else:
        return
    for node in fallback:
        node.decompose(recursive=False)


def _is_around(container: LexborNode, node: LexborNode) -> bool:
    parent: LexborNode | None = node
    while parent is not None:
        if parent.mem_id == container.mem_id:
            return True
        parent = parent.parent
    return False
