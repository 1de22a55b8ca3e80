"""Secrets out of what is shown: the one place that says what a secret looks like.

What is kept is never changed, only what people see of it: listings, pages, errors, logs. Payloads
are judged by the names in them, texts by the addresses and headers in them. `restore` puts back
what was hidden from somebody who edited the rest.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, TextIO
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

HIDDEN: Final = "***"
SHORTEST: Final = 6  # of a secret that is looked for as it is

# Names of what only its owner should read, without case, `-` and `_`: whole ones, and endings.
_NAMES: Final = frozenset({"authorization", "proxyauthorization", "cookie", "cookies", "setcookie"})
_ENDINGS: Final = ("password", "passwd", "secret", "token", "apikey", "secretkey", "privatekey")
_JOINTS: Final = re.compile(r"[-_. ]")
_PARAMETER: Final = re.compile(r"((?:^|&)(?:ssl)?password=)[^&]*", re.IGNORECASE)
_SUSPECT: Final = re.compile(
    rb"passw|secret|token|authorization|cookie|webhook|api[-_. ]?key|private[-_. ]?key"
    rb"|://[^\"/?#]*@|\\u00|bearer |basic ",
    re.IGNORECASE,
)
_ROWS: Final = re.compile(r"((?:^|&)rows=)([^&]*)")
# What can be told in a text that somebody else wrote: the user of an address, a password among
# its parameters, and the value of a header. Each is bounded, so that no text takes long.
_IN_TEXT: Final = re.compile(
    r"(?P<head>\b[a-z][a-z0-9+.-]{1,20}://[^\s/?#@:'\"]{0,200}:)[^\s/?#@]{1,500}(?=@)"
    r"|(?P<query>[?&](?:ssl)?password=)[^\s&'\"]{1,500}"
    r"|(?P<rows>[?&]rows=[a-z]{1,20}%3a%2f%2f)[^\s&'\"]{1,1000}"
    # A word after it is no secret: those have digits.
    r"|(?P<scheme>\b(?:bearer|basic|api-key)\s+)(?=[a-z._~+/=-]{0,200}\d)[a-z0-9._~+/=-]{12,2000}",
    re.IGNORECASE,
)


def redact_url(url: str) -> str:
    """The URL as it may be shown. A password may stand before the host, or in the query, where
    libpq takes it too; and the database beside a queue has one of its own."""
    try:
        parts = urlsplit(url)
        has_password = bool(parts.password)
    except ValueError:
        return redact_text(url)
    address = parts.netloc
    if has_password:
        address = f"{parts.username or ''}:{HIDDEN}@{address.rpartition('@')[2]}"
    query = _ROWS.sub(_shown_rows, _PARAMETER.sub(rf"\1{HIDDEN}", parts.query))
    if (address, query) == (parts.netloc, parts.query):
        return url
    return urlunsplit(parts._replace(netloc=address, query=query))


def redact_text(text: str) -> str:
    """A text without the passwords in its addresses and the values of headers it repeats."""
    if "://" not in text and " " not in text:
        return text
    return _IN_TEXT.sub(_hide, text)


def hide(text: str, secrets: Collection[str]) -> str:
    """A text without these secrets, which are known. Short ones would be found in any text."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def redact(value: Any) -> Any:
    """JSON as it may be shown: what is named as a secret is hidden, and so is where a webhook is,
    for its path can be as secret as a header."""
    match value:
        case dict():
            return {name: _redact_item(name, item) for name, item in value.items()}
        case list() | tuple():
            return [redact(item) for item in value]
        case str():
            return redact_text(value)
    return value


def redact_json(stored: str | bytes) -> str | bytes:
    """The same for JSON as it is stored, which is read only where there may be something in it."""
    data = stored.encode() if isinstance(stored, str) else stored
    if _SUSPECT.search(data) is None:
        return stored
    return msgspec.json.encode(redact(msgspec.json.decode(data)))


def restore(edited: Any, original: Any) -> Any:
    """What was edited, with what had been hidden in it as it was."""
    if edited == redact(original):
        return original
    match edited, original:
        case dict(), dict():
            return {
                name: _restore_item(name, item, original[name]) if name in original else item
                for name, item in edited.items()
            }
        case list(), list():
            pairs = zip(edited, original, strict=False)
            return [restore(*pair) for pair in pairs] + edited[len(original) :]
    return edited


def log_to(stream: TextIO, level: int) -> None:
    """Where a command logs to."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])


class _Formatter(logging.Formatter):
    """The lines of a log, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        return redact_text(super().format(record))


def is_secret(name: str) -> bool:
    """Whether something of this name is to be hidden."""
    plain = _JOINTS.sub("", name).lower()
    return plain in _NAMES or plain.endswith(_ENDINGS)


def _redact_item(name: Any, item: Any) -> Any:
    if isinstance(name, str):
        if is_secret(name) and isinstance(item, str) and item:
            return HIDDEN
        if name == "webhook":
            return _redact_webhook(item)
    return redact(item)


def _redact_webhook(webhook: Any) -> Any:
    match webhook:
        case str():
            return _origin(webhook)
        case {"url": str(url), **rest}:
            shown = {"url": _origin(url), **rest}
            headers: Any = rest.get("headers")
            if isinstance(headers, Mapping):
                shown["headers"] = dict.fromkeys(headers, HIDDEN)
            return shown
    return redact(webhook)


def _restore_item(name: str, item: Any, original: Any) -> Any:
    return original if item == _redact_item(name, original) else restore(item, original)


def _origin(url: str) -> str:
    """Where it is, without what may be a secret of it."""
    scheme, mark, rest = url.partition("://")
    host = re.split(r"[/?#\\]", rest, maxsplit=1)[0].rpartition("@")[2]
    return f"{scheme}{mark}{host}/{HIDDEN}" if mark else HIDDEN


def _shown_rows(found: re.Match[str]) -> str:
    return f"{found[1]}{redact_url(unquote(found[2]))}"


def _hide(found: re.Match[str]) -> str:
    return f"{found[found.lastgroup or 0]}{HIDDEN}"
