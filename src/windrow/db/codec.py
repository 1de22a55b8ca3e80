"""JSON in and out of the queue: checks what people hand in before anything is written.

NUL characters and lone surrogates cannot be stored by every database. They are replaced by U+FFFD
and the value is flagged as cleaned: a result must never fail to be stored because of them.
A `msgspec.Raw` is somebody else's JSON, so what was written is read once: without that, one job
that cannot be read (bad syntax or UTF-8, a number out of range) would break every listing it is in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from windrow.errors import InvalidJob

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_read = msgspec.json.Decoder().decode


class Encoded(msgspec.Struct, frozen=True, gc=False):
    json: bytes
    is_cleaned: bool = False


def encode(value: Any, what: str) -> Encoded:
    """The value as JSON. `what` names it in errors: "payload", "result", …"""
    try:
        return _encode(value, what)
    except InvalidJob:
        raise
    except Exception as error:  # a user's object: its attributes may raise anything
        raise InvalidJob(f"the {what} cannot be written as JSON: {error}") from error


def _encode(value: Any, what: str) -> Encoded:
    is_cleaned = False
    try:
        data = msgspec.json.encode(value, enc_hook=_to_plain)
    except UnicodeEncodeError:
        data, is_cleaned = _encode_cleaned(value), True
    # A NaN is encoded as null, so only a value with a null in it can hide one. (`find`: `in` first
    # tries whether what it looks for is a number, which takes longer than the search.)
    if data.find(b"null") >= 0:
        _refuse_nan(value, what)
    if data.find(b"\\u0000") >= 0 and not is_cleaned:
        cleaned = _encode_cleaned(value)
        is_cleaned = cleaned != data  # it may only have been the six characters \u0000
        data = cleaned
    _read(data)
    return Encoded(data, is_cleaned)


def decode_as(data: bytes | str, wanted: Any) -> Any:
    """JSON as a value of a type: a msgspec struct, a dataclass, a TypedDict, a Pydantic model, or
    lists and dicts of these. Raises ValueError, whose message is one line and names the field."""
    if hasattr(wanted, "model_validate_json"):
        return _validate(wanted, data)
    try:
        return msgspec.json.decode(data, type=wanted, dec_hook=_from_plain)
    except TypeError as error:  # no decoder can be made for this type
        raise ValueError(str(error)) from error


def type_name(wanted: Any) -> str:
    """The name of a type in messages."""
    return wanted.__name__ if isinstance(wanted, type) else str(wanted)


def clean_text(text: str) -> str:
    """The text with every character a database would refuse replaced."""
    return _UNSTORABLE.sub("�", text)


def is_storable(text: str) -> bool:
    return _UNSTORABLE.search(text) is None


def _to_plain(value: Any) -> Any:
    """A Pydantic model as plain values, for the encoder."""
    if hasattr(type(value), "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def _from_plain(wanted: Any, value: Any) -> Any:
    """Plain values as a Pydantic model that is part of another type, for the decoder."""
    if hasattr(wanted, "model_validate_json"):
        return _validate(wanted, msgspec.json.encode(value))
    raise ValueError(f"{type_name(wanted)} cannot be made from JSON")


def _validate(model: Any, data: bytes | str) -> Any:
    try:
        return model.model_validate_json(data)
    except ValueError as error:  # Pydantic's, whose text has a line for each part of each problem
        raise ValueError("; ".join(map(_problem, error.errors()))) from error  # type: ignore[attr-defined]


def _problem(problem: Mapping[str, Any]) -> str:
    place = "".join(f".{part}" for part in problem["loc"])
    return f"{problem['msg']} - at `${place}`"


def _encode_cleaned(value: Any) -> bytes:
    return msgspec.json.encode(_cleaned(_plain(value)))


def _plain(value: Any) -> Any:
    """The value in dicts, lists and the like, whatever it was made of."""
    try:
        return msgspec.to_builtins(value, enc_hook=_to_plain)
    except TypeError:  # a Raw: only the encoder takes it
        return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_to_plain))


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
    plain = _plain(value)
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
