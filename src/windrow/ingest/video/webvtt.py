"""WEBVTT, the text of captions, as plain text: what is said, each line once."""

from __future__ import annotations

import html
import re
from typing import Final

_TIMES: Final = "-->"
_NUMBER: Final = re.compile(r"\d+")
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>|<\d[\d:.]*>")
_BLOCK: Final = re.compile(r"(NOTE|STYLE|REGION)(\s|$)")


def text_of(captions: str) -> str:
    """The cues of captions as lines; a text that is no WEBVTT is taken as it is.

    Rolling captions say a line again when the next one comes: lines that repeat the one before are
    left out.
    """
    text = captions.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff").strip()
    if not text.startswith("WEBVTT") and _TIMES not in text:
        return text
    lines: list[str] = []
    for block in re.split(r"\n[ \t]*\n", text):
        for line in _cue(block):
            if not lines or lines[-1] != line:
                lines.append(line)
    return "\n".join(lines)


def _cue(block: str) -> list[str]:
    """What is said in a block; nothing in one that has no times, such as a header or a note."""
    lines = block.strip().split("\n")
    if _BLOCK.match(lines[0]):
        return []
    times = next((place for place, line in enumerate(lines) if _TIMES in line), None)
    if times is None:
        return []
    said = [_plain(line) for line in lines[times + 1 :] if _TIMES not in line]
    # Some write cues without a blank line between: then the number of the next one is here.
    return [line for line in said if line and not _NUMBER.fullmatch(line)]


def _plain(line: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", line)).split())
