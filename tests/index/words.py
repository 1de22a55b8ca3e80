"""An embedder for tests: texts with the same words are near each other, and nothing is random."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence

DIMENSION = 64


def embed(text: str) -> list[float]:
    vector = [0.01] * DIMENSION
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        vector[digest[0] % DIMENSION] += 1.0
        vector[digest[1] % DIMENSION] += 0.5
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


def embed_all(texts: Sequence[str]) -> list[list[float]]:
    return [embed(text) for text in texts]
