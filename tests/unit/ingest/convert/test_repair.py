"""Markup made to choke a parser: read in little time and memory, and no text lost."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.unit.ingest.convert.pages import markdown
from windrow.ingest.convert.repair import MAX_DEPTH, tame

MOST_SECONDS = 150.0  # of CPU time, on a busy machine; untamed they take minutes, or gigabytes


def _different(count: int) -> str:
    return "".join(f"<font color={number}>" for number in range(count))


def _attributes(count: int) -> str:
    return " ".join(f"a{number}=1" for number in range(count))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: "<div>" * 10_000 + "END" + "</div>" * 10_000, id="deep"),
        pytest.param(lambda: "<div>" * 60_000 + "END", id="very deep"),
        pytest.param(lambda: "<b><i><u>" * 15_000 + "END", id="deep formatting"),
        pytest.param(lambda: "<p>" + _different(4_000) + "<p>x" * 4_000 + "END", id="open fonts"),
        pytest.param(lambda: "<p><b><i><u><s>" * 9 + "<p>x" * 30_000 + "END", id="open bold"),
        pytest.param(lambda: "<table><tr><td>" * 3_000 + "END", id="tables"),
        pytest.param(lambda: "<ul><li>" * 11_000 + "END", id="lists"),
        pytest.param(lambda: f"<p {_attributes(200_000)}>END", id="attributes"),
        pytest.param(lambda: "<" * 100_000 + "<p>END", id="less than"),
        pytest.param(lambda: "<p>END</p><!--" * 20_000, id="comments"),
        pytest.param(
            lambda: "<p>A line of text.</p>\n" * 900_000 + "END",
            id="20 MB",
            marks=pytest.mark.chaos,
        ),
    ],
)  # fmt: skip
def test_hostile_markup_is_read_in_time(make: Callable[[], str]) -> None:
    page = f"<html><body>{make()}"
    started = time.process_time()
    text = markdown(page)

    assert "END" in text
    assert time.process_time() - started < MOST_SECONDS


def test_ordinary_pages_are_not_touched() -> None:
    page = '<p>A <b class="x">bold</b> word and a <code id="y">name</code>.</p>' * 5_000

    assert tame(page) == page


def test_what_is_nested_too_deep_loses_its_tags_and_not_its_text() -> None:
    page = "<div>" * 20_001 + "<p>in</p>" + "</div>" * 20_001 + "<p>after</p>"
    tamed = tame(page)

    assert tamed.count("<div>") == tamed.count("</div>") == MAX_DEPTH
    assert "<p>in</p>" in tamed
    assert tamed.endswith("<p>after</p>")
