"""Slots of a page that is streamed: a script moves hidden parts into their places.

React sends a placeholder first (`<template id="B:0">`, often with a fallback such as "Loading"),
then the content in a hidden container (`<div hidden id="S:0">`), then a call that moves it:
`$RC("B:0","S:0")`. Whole containers are moved here, so each call costs the same.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_CALLS = 1_000  # each may nest one container in another; the rest is shown where it is
# $RC and $RR complete a boundary (slot, content); $RS completes a segment (content, slot).
_CALL = re.compile(r"\$R([CRS])\(\s*[\"']([^\"']{1,100})[\"']\s*,\s*[\"']([^\"']{1,100})[\"']")


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
