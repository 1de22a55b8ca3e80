"""Names of spaces: one for each model and generation, whichever collections are in it."""

from __future__ import annotations

import hashlib
import re
from typing import Final

LONGEST: Final = 40  # of a model's name; Postgres takes 63 characters, and an index adds its own


def space_name(model: str, dimension: int, generation: int) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    if plain != model:
        # Two names that look alike now are still two.
        digest = hashlib.sha256(model.encode()).hexdigest()[:6]
        plain = f"{plain[: LONGEST - 7]}-{digest}"
    return f"{plain[:LONGEST]}-{dimension}-{generation}"
