"""Pages that say the same in nearly the same words.

A sketch is 256 bytes made of the runs of three words of a text (minhash, one permutation): the
share of places in which two sketches agree is about the share of runs that two texts have in
common. It is the same in every process and on every machine, so it can be kept beside a page, and
looked up by its bands: texts that are alike nearly always share one of these keys.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b

PLACES = 64
ROWS = 4  # places in one band
LEAST = 0.7  # of the places that near duplicates agree in: measured in docs/decisions/0014
MIN_WORDS = 20  # a text with fewer says too little to be told from others

_MASK = (1 << 64) - 1
_PLACE_SHIFT = 58  # the highest six bits of a hash say its place,
_VALUE_SHIFT = 26  # the next 32 its value
# Odd numbers without a pattern: they make the order of the words count.
_FIRST, _SECOND, _THIRD = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
# Scripts without spaces are taken apart into characters.
_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
# What makes copies differ without saying anything else: addresses, and figures of all kinds.
_NOISE = re.compile(r"\]\([^)\s]*\)|https?://\S+|\d+(?:[.,:/-]\d+)*")


def sketch(text: str) -> bytes | None:
    """The sketch of a text, such as the markdown of a page; None if it says too little."""
    words = _WORD.findall(_NOISE.sub(" ", text.lower()))
    if len(words) < MIN_WORDS:
        return None
    # Falling, so that the least of each place is written last.
    falling = sorted(_runs(words), reverse=True)
    least = {run >> _PLACE_SHIFT: run >> _VALUE_SHIFT & 0xFFFFFFFF for run in falling}
    values = array("I", _without_gaps(least))
    return b"".join(value.to_bytes(4, "big") for value in values)


def resemblance(one: bytes, other: bytes) -> float:
    """About which share of what two texts say they have in common, from 0 to 1."""
    pairs = zip(_values(one), _values(other), strict=True)
    return sum(mine == theirs for mine, theirs in pairs) / PLACES


def is_near_duplicate(one: bytes | None, other: bytes | None, least: float = LEAST) -> bool:
    """Whether two texts say nearly the same. Those that say too little are never alike."""
    return one is not None and other is not None and resemblance(one, other) >= least


def bands(of: bytes) -> list[str]:
    """Keys to find a sketch by: others with one of these are worth comparing."""
    width = 4 * ROWS
    return [
        f"{start // width}:{of[start : start + width].hex()}" for start in range(0, len(of), width)
    ]


def _runs(words: list[str]) -> set[int]:
    """A number for every three words that follow each other."""
    hashes = [_hash(word) for word in words]
    mixed = (
        (first * _FIRST + second * _SECOND + third * _THIRD) & _MASK
        for first, second, third in zip(hashes, hashes[1:], hashes[2:], strict=False)
    )
    # A sum of products keeps what its low bits have in common: fold the high ones in.
    return {((run ^ run >> 29) * _FIRST) & _MASK for run in mixed}


@lru_cache(maxsize=50_000)
def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


def _without_gaps(least: dict[int, int]) -> Iterator[int]:
    """A place that nothing fell on takes the value of the next one that has any."""
    for place in range(PLACES):
        distance = next(n for n in range(PLACES) if (place + n) % PLACES in least)
        # Borrowed from afar it must not agree with what is near there by right.
        yield least[(place + distance) % PLACES] + distance & 0xFFFFFFFF


def _values(of: bytes) -> list[bytes]:
    return [of[start : start + 4] for start in range(0, 4 * PLACES, 4)]
