"""Which charset a body is in: byte order mark, header, `<meta>`, valid UTF-8, then a guess.

Labels mean what they mean on the web (WHATWG), where `latin-1` is windows-1252 and `gb2312` is
gb18030. A label that the bytes contradict is not believed: pages that say UTF-8 and are
windows-1251, or say Latin-1 and are UTF-8, are common.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

META_BYTES: Final = 4_096  # browsers look at 1,024; some pages put scripts in front
LOOK_BYTES: Final = (
    65_536  # from the first that is beyond ASCII on: large bodies are judged by a part
)
BROKEN_SHARE: Final = 0.1  # of the characters beyond ASCII that may be broken in UTF-8

BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins as the mark of UTF-16 does
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# Python's name of the label -> the codec that reads what the web means by it.
WEB_CODECS: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "hz": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
WEB_LABELS: Final = {
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "ks_c_5601-1987": "cp949",
    "windows-949": "cp949",
    "x-gbk": "gb18030",
    "x-x-big5": "big5hkscs",
    "x-cp1251": "cp1251",
    "x-cp1252": "cp1252",
    "x-euc-jp": "euc_jp",
    "x-mac-cyrillic": "mac_cyrillic",
    "x-user-defined": "cp1252",
    "unicode": "utf-16-le",
}
# What pages without a label are in; others that fit by chance are not even looked at.
GUESSED: Final = (
    *("cp1251", "koi8_r", "gb18030", "big5", "cp932", "euc_jp", "cp949"),
    *("cp1250", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
)
LATIN: Final = frozenset({"cp1250", "cp1252", "cp1254", "cp1257", "cp1258"})
NEARLY: Final = 0.05  # of what the guess calls chaos
# UTF-7 hides markup from whatever looks at the bytes; no browser reads it.
REFUSED: Final = {"utf-7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"}

_TEXT_TYPES: Final = re.compile(
    r"text/|[^/]+/[^/]+\+(?:xml|json)$"
    r"|application/(?:x-)?(?:xml|json|javascript|ndjson|yaml|toml|sh|sql|php|perl|tex|latex)\b"
)
_HEADER: Final = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]+)", re.IGNORECASE)
_META: Final = re.compile(
    rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([a-z0-9_:.-]{2,40})"
    rb"|^\s*<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([a-z0-9_:.-]{2,40})"
    rb"|^\s*@charset \"([a-z0-9_:.-]{2,40})\"",
    re.IGNORECASE,
)
_TAG: Final = re.compile(rb"<[^<>]{0,2000}>")
_BEYOND_ASCII: Final = re.compile(rb"[^\x00-\x7f]")


def is_text(content_type: str, body: bytes = b"") -> bool:
    """Whether a body of this media type (lower case, without parameters) is text. Where none is
    said, the bytes tell: NUL is in no text but that of UTF-16, which has a mark."""
    if not content_type:
        return b"\0" not in body[:1024] or body.startswith(
            (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        )
    return _TEXT_TYPES.match(content_type) is not None


def detect_charset(body: bytes, content_type_header: str = "") -> str:
    """The Python codec that reads this body."""
    for mark, codec in BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return codec
    said = _HEADER.search(content_type_header)
    declared = find_codec(said[1]) if said else None
    if declared == "utf-8" and _is_utf8(body):
        return declared
    if declared is None or _contradicts(body, declared):
        found = _META.search(body, 0, META_BYTES)
        in_body = find_codec((found[1] or found[2] or found[3]).decode("ascii")) if found else None
        # A page that could be read up to its <meta> is in no 16-bit charset, whatever it says.
        declared = "utf-8" if in_body and in_body.startswith("utf-16") else in_body
    if declared is None or _contradicts(body, declared):
        return "utf-8" if _is_utf8(body) else _guess(body)
    return declared


def find_codec(label: str) -> str | None:
    """The codec for a label as pages write it; None for one that nobody knows."""
    label = label.strip().lower()
    if label in WEB_LABELS:
        return WEB_LABELS[label]
    try:
        found = codecs.lookup(label)
    except (LookupError, ValueError):  # ValueError: a NUL in the label
        return None
    if found.name in REFUSED or not found._is_text_encoding:
        return None
    return WEB_CODECS.get(found.name, found.name)


def _contradicts(body: bytes, codec: str) -> bool:
    """Whether the bytes show that the label is wrong."""
    if body.isascii():
        return False
    if codec == "utf-8":
        return not _is_utf8(body)
    # Text in another charset is hardly ever valid UTF-8 by chance, unless it is a few double bytes.
    return codec == "cp1252" and _is_valid(body, "utf-8")


def _is_utf8(body: bytes) -> bool:
    """Whether this is UTF-8, with a few broken places at most."""
    if _is_valid(body, "utf-8"):
        return True
    text = _part_beyond_ascii(body).decode("utf-8", "replace")
    broken = text.count("\ufffd")
    beyond = len(text) - len(text.encode("ascii", "ignore"))
    return broken <= beyond * BROKEN_SHARE


def _is_valid(body: bytes, codec: str) -> bool:
    try:
        body.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _guess(body: bytes) -> str:
    from charset_normalizer import from_bytes  # 30 ms to import; most pages say what they are

    # Tags are ASCII in every charset, and only dilute what tells them apart.
    words = _TAG.sub(b" ", _part_beyond_ascii(body))
    matches = from_bytes(words, cp_isolation=[*GUESSED])
    best = matches.best()
    if best is None:
        return "cp1252"
    if best.encoding in LATIN:
        # They differ in a few letters, so that several fit: then it is what is usual.
        if best.language == "Turkish":
            return "cp1254"
        near = (match.encoding for match in matches if match.chaos <= best.chaos + NEARLY)
        return "cp1252" if "cp1252" in near else best.encoding
    return find_codec(best.encoding) or "cp1252"


def _part_beyond_ascii(body: bytes) -> bytes:
    first = _BEYOND_ASCII.search(body)
    start = max(first.start() - 512, 0) if first else 0
    return body[start : start + LOOK_BYTES]
