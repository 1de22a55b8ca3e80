"""How common words are, and which of a question's are looked for first."""

from __future__ import annotations

from windrow.index.pgvector import Shares

KNOWN = Shares(10_000, {"the": 0.9, "lease": 0.2, "worker": 0.1}, 0.001)


def test_rarest_words_are_taken_until_many_chunks_have_one() -> None:
    assert KNOWN.rarest(["heartbeat", "worker", "lease", "the"], 1_500) == ["heartbeat", "worker"]
    assert KNOWN.rarest(["heartbeat", "worker", "lease", "the"], 500) == ["heartbeat"]
    assert KNOWN.rarest(["heartbeat", "token"], 500) == ["heartbeat", "token"]


def test_rarest_word_is_taken_however_common_it_is() -> None:
    assert KNOWN.rarest(["lease", "the"], 500) == ["lease"]


def test_all_words_are_taken_and_count_the_same_if_nothing_is_known() -> None:
    unknown = Shares()

    assert unknown.rarest(["lease", "the"], 1) == ["lease", "the"]
    assert unknown.of("lease") == unknown.of("the")
