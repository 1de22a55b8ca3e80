"""Chunks: what holds for every text, and where markdown and other text is cut."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.index.chunk import Chunk, Limits, chunk
from windrow.index.chunk.grammars import ALIASES, GRAMMARS

SMALL = Limits(target=200, largest=300, small=60, largest_bytes=500)
LANGUAGES = ["markdown", "text", "python", "typescript", "cpp", "toml"]

TEXTS = {
    "Chinese": "# 标题\n\n" + "这是一个没有空格的很长的段落。" * 80,
    "Arabic": "# عنوان\n\n" + "مرحبا بالعالم، هذا نص طويل. " * 60,
    "emoji": "👩‍👩‍👧‍👦👍🏽 and e\u0301 " * 200,
    "family in one line": "👩‍👩‍👧‍👦" * 300,
    "CRLF": "\r\n".join(["# A", "", "one " * 100, "", "## B", "", "two " * 100]),
    "old Mac": "\r".join(["# A", "", "one " * 100, "", "## B", "", "two " * 100]),
    "byte order mark": "\ufeff# A\n\ntext " + "x " * 300,
    "lone surrogates": "a \udcff b \ud800 " * 200,
    "no space": "x" * 5000,
    "white space": " \n\t\u3000" * 2000,
    "empty": "",
    "NUL": "a\0b" * 500,
    "unclosed fence": "```\n" + "x = 1\n" * 500,
    "separators": "one\u2028two\u0085three\x0cfour " * 100,
}


def check(text: str, chunks: list[Chunk], limits: Limits) -> None:
    """What `chunk` promises for every text."""
    place = 1 if text.startswith("\ufeff") else 0
    for ordinal, piece in enumerate(chunks):
        shown = text[piece.start : piece.end]
        assert piece.ordinal == ordinal
        assert piece.text == shown.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert piece.text.strip()
        assert piece.start >= place
        assert not text[place : piece.start].strip()
        assert len(piece.text) <= limits.largest
        assert len(piece.text.encode()) <= limits.largest_bytes
        place = piece.end
    assert not text[place:].strip()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", TEXTS)
def test_offsets_lead_to_the_chunk_in_every_kind_of_text(name: str, language: str) -> None:
    for limits in (SMALL, Limits()):
        check(TEXTS[name], chunk(TEXTS[name], language=language, limits=limits), limits)


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.sampled_from("ab# \n\r\t`|-=*>.{}();:\ufeff日é😀\u200d\u0301\"'/<"), max_size=900),
    st.sampled_from([*LANGUAGES, "go", "rust", "java", "javascript", "bash"]),
)
def test_any_text_is_covered_by_its_chunks(text: str, language: str) -> None:
    limits = Limits(target=80, largest=120, small=20, largest_bytes=200)
    check(text, chunk(text, language=language, limits=limits), limits)


def test_chunks_carry_the_path_of_their_headings() -> None:
    text = (
        f"# Guide\n\n{'intro ' * 60}\n\n## First *part* of [it](http://x)\n\n{'one ' * 80}\n\n"
        f"### Deep\n\n{'deep ' * 70}\n\nSecond part\n-----------\n\n{'two ' * 80}\n"
    )

    found = chunk(text, limits=Limits(target=400, largest=600, small=60))

    assert [piece.headings for piece in found] == [
        ("Guide",),
        ("Guide", "First part of it"),
        ("Guide", "First part of it", "Deep"),
        ("Guide", "Second part"),
    ]
    assert found[1].text.startswith("## First")
    assert found[3].text.startswith("Second part\n---")
    assert found[2].in_context("Book").startswith("Book > Guide > First part of it > Deep\n\n### D")
    assert found[0].in_context("Guide").startswith("Guide\n\n# Guide")


def test_what_is_in_a_fence_or_in_front_matter_is_no_heading() -> None:
    text = "---\ntitle: x\n---\n\n# Real\n\n```sh\n# no\nmake\n```\n\n~~~\n## no\n~~~\n\nEnd.\n"

    [piece] = chunk(text)

    assert piece.headings == ()  # it begins above the first heading
    assert chunk(text, limits=Limits(target=30, largest=40, small=1))[-1].headings == ("Real",)


def test_a_fence_that_fits_is_not_cut() -> None:
    fence = "```python\n" + "value = compute(something)\n\n" * 8 + "```"
    text = f"{'words ' * 25}\n\n{fence}\n\n{'more words ' * 20}\n"

    found = chunk(text, limits=Limits(target=240, largest=300, small=50))

    assert any(fence in piece.text for piece in found)


def test_a_fence_that_does_not_fit_is_cut_between_its_lines() -> None:
    lines = [f"    value_{number} = compute(1). More." for number in range(60)]
    text = "```python\n" + "\n".join(lines) + "\n```\n"

    found = chunk(text, limits=SMALL)

    assert len(found) > 4
    for piece in found:
        assert set(piece.text.splitlines()) <= {*lines, "```python", "```"}


def test_rows_of_a_table_stay_whole_and_its_head_has_one_of_them() -> None:
    rows = [f"| row {number} | some text. And more of it |" for number in range(30)]
    text = "\n".join(["| number | what it says |", "| --- | --- |", *rows])

    found = chunk(text, limits=SMALL)

    assert len(found) > 3
    assert found[0].text.splitlines()[2] == rows[0]
    assert [row for piece in found for row in piece.text.splitlines()][2:] == rows


def test_small_sections_are_joined_under_what_is_above_them() -> None:
    text = "# Words\n\n" + "\n\n".join(f"## {name}\n\nIt is {name}." for name in "abcdef")

    [piece] = chunk(text)

    assert piece.headings == ("Words",)


def test_a_heading_stands_with_what_follows_it() -> None:
    limits = Limits(target=400, largest=600, small=100)
    text = f"{'before ' * 40}\n\n## Title\n\n{'w ' * 199}\n\n## Next\n\n{'n ' * 199}\n"

    assert all("\n\n" in piece.text for piece in chunk(text, limits=limits)[1:])


def test_long_paragraphs_are_cut_between_sentences() -> None:
    text = "This is a sentence of some length. " * 100

    found = chunk(text, limits=SMALL)

    assert all(piece.text.endswith(".") for piece in found)


def test_text_without_a_grammar_is_cut_at_blank_lines_before_others() -> None:
    text = "\n\n".join(f"[section-{number}]\nkey = 1\nother = 2" for number in range(40))

    found = chunk(text, language="toml", limits=SMALL)

    assert all(piece.text.startswith("[section-") for piece in found)


def test_limits_that_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="small <= target <= largest"):
        Limits(target=10, largest=5)
    with pytest.raises(ValueError, match="at least 16"):
        Limits(largest_bytes=3)


WORDS = ["if", "def", "class", "//", "/*", "*/", "return", ""]


def hostile(size: int) -> dict[str, str]:
    """Texts that have made a parser or a splitter take for ever."""
    source = random.Random(1)
    words = [*"(){}[];:,=<>&*+\"'#xy1\n\t", *WORDS]
    return {
        "one line": "var a=function(b,c){return b+c};" * (size // 32),
        "no space": "a" * size,
        "brackets": "(" * size,
        "quotes": "> " * (size // 2),
        "lines": "x\n" * (size // 2),
        "backticks": "`" * size,
        "rows": "|a|b|\n" * (size // 6),
        "garbage": " ".join(source.choice(words) for _ in range(size // 2)),
        "headings": "# h\n" * (size // 4),
    }


@pytest.mark.parametrize("name", hostile(1))
def test_time_is_bounded_for_what_no_person_wrote(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.index.chunk.code.PARSE_SECONDS", 0.2)
    text = hostile(200_000)[name]
    started = time.process_time()

    for language in ("markdown", "javascript", "toml"):
        check(text, chunk(text, language=language), Limits())

    assert time.process_time() - started < 10


@pytest.mark.chaos
@pytest.mark.parametrize("name", hostile(1))
def test_ten_megabytes_are_chunked_in_bounded_time(name: str) -> None:
    text = hostile(10_000_000)[name]
    started = time.process_time()

    for language in ("markdown", "tsx", "python"):
        check(text, chunk(text, language=language), Limits())

    assert time.process_time() - started < 120


def test_a_parser_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windrow.index.chunk.code.PARSE_SECONDS", 0.2)
    text = hostile(30_000)["garbage"]  # keeps the grammar of TSX busy for ever

    check(text, chunk(text, language="tsx"), Limits())


@pytest.mark.parametrize("name", GRAMMARS)
def test_every_grammar_can_be_loaded(name: str) -> None:
    check("x = 1\n", chunk("x = 1\n", language=name), Limits())


def test_every_other_name_of_a_language_is_that_of_a_grammar() -> None:
    assert set(ALIASES.values()) <= set(GRAMMARS)
