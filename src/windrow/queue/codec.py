"""JSON in and out of the queue: checks what people hand in before anything is written.

NUL characters and lone surrogates cannot be stored by every database. They are replaced by U+FFFD
and the value is flagged as cleaned: a result must never fail to be stored because of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from windrow.errors import InvalidJob

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Encoded(msgspec.Struct, frozen=True, gc=False):
    json: bytes
    is_cleaned: bool = False


def encode(value: Any, what: str) -> Encoded:
    """The value as JSON. `what` names it in errors: "payload", "result", …"""
    is_cleaned = False
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        data, is_cleaned = _encode_cleaned(value, what), True
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidJob(f"the {what} cannot be written as JSON: {error}") from error
    # A NaN is encoded as null, so only a value with a null in it can hide one. (`find`: `in` first
    # tries whether what it looks for is a number, which takes longer than the search.)
    if data.find(b"null") >= 0:
        _refuse_nan(value, what)
    if data.find(b"\\u0000") >= 0 and not is_cleaned:
        cleaned = _encode_cleaned(value, what)
        is_cleaned = cleaned != data  # it may only have been the six characters \u0000
        data = cleaned
    return Encoded(data, is_cleaned)


def clean_text(text: str) -> str:
    """The text with every character a database would refuse replaced."""
    return _UNSTORABLE.sub("�", text)


def is_storable(text: str) -> bool:
    return _UNSTORABLE.search(text) is None


def _encode_cleaned(value: Any, what: str) -> bytes:
    try:
        return msgspec.json.encode(_cleaned(msgspec.to_builtins(value)))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidJob(f"the {what} cannot be written as JSON: {error}") from error


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {_cleaned(key): _cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item) for item in value]
        case _:
            return value


def _refuse_nan(value: Any, what: str) -> None:
    plain = msgspec.to_builtins(value)
    if _has_nan(plain):
        for path in _nan_paths(plain, what):
            raise InvalidJob(f"{path} is not a finite number, which JSON cannot hold")


def _has_nan(value: Any) -> bool:
    """Whether there is one at all: to spell out where each value stands takes much longer."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_has_nan, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_nan, value))


def _nan_paths(value: Any, path: str) -> Iterator[str]:
    match value:
        case float() if not math.isfinite(value):
            yield path
        case dict():
            for key, item in value.items():
                yield from _nan_paths(item, f"{path}.{key}")
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _nan_paths(item, f"{path}[{index}]")
