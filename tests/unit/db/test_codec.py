from __future__ import annotations

import dataclasses
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.db.codec import clean_text, encode
from windrow.errors import InvalidJob


@dataclasses.dataclass
class Page:
    url: str
    words: list[str]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1.5,
        "",
        "héllo",
        "日本語",
        "שלום",
        "👩‍👩‍👧",
        [],
        {},
        {"a": [1, {"b": None}]},
        2**63,
    ],
)
def test_json_values_come_back_as_they_were(value: Any) -> None:
    assert msgspec.json.decode(encode(value, "payload").json) == value


def test_dataclasses_are_written_by_their_fields() -> None:
    encoded = encode(Page("https://example.org", ["a"]), "payload")
    assert encoded.json == b'{"url":"https://example.org","words":["a"]}'


@pytest.mark.parametrize("value", [object(), {"a": {1, object()}}, {(1, 2): 3}, lambda: None])
def test_what_json_cannot_hold_is_refused_by_name(value: Any) -> None:
    with pytest.raises(InvalidJob, match="the payload cannot be written as JSON"):
        encode(value, "payload")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_with_their_place(number: float) -> None:
    with pytest.raises(InvalidJob, match=r"payload\.prices\[1\] is not a finite number"):
        encode({"note": None, "prices": [1.5, number]}, "payload")


def test_a_null_alone_is_not_taken_for_a_nan() -> None:
    assert encode({"a": None, "b": "null"}, "payload").json == b'{"a":null,"b":"null"}'


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "\udfff", "\x00\ud83d"])
def test_unstorable_characters_are_replaced_and_flagged(text: str) -> None:
    encoded = encode({"k" + text: [text]}, "result")
    assert encoded.is_cleaned
    [(key, [value])] = msgspec.json.decode(encoded.json).items()
    assert key == "k" + clean_text(text)
    assert value == clean_text(text)
    assert "�" in value


def test_the_six_characters_of_an_escape_are_left_alone() -> None:
    encoded = encode("a literal \\u0000", "payload")
    assert not encoded.is_cleaned
    assert msgspec.json.decode(encoded.json) == "a literal \\u0000"


def test_nesting_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidJob, match="recursion"):
        encode(deep, "payload")


@given(st.text(alphabet=st.characters(categories=["L", "Cs", "Cc", "So"]) | st.just("\x00")))
def test_any_text_can_be_stored(text: str) -> None:
    decoded = msgspec.json.decode(encode(text, "payload").json)
    assert "\x00" not in decoded
    decoded.encode("utf-8")
    assert len(decoded) == len(text)
