"""Rules as data and pure functions: how long to wait before a failed job runs again, how long
finished ones are kept, and unique keys.

A back-off policy takes the number of attempts that had failed *before* this one (0 at the first
failure) and returns seconds. Presets have names that can be written in settings and decorators.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Sequence
from typing import Final

Backoff = Callable[[int], float]

# A doubling per attempt overflows a float after ~1000; no real policy is still growing by then.
_MOST_DOUBLINGS = 64


def exponential(
    base: float = 2.0, cap: float = 3600.0, jitter: float = 0.1, *, factor: float = 2.0
) -> Backoff:
    """`base · factor^attempts`, at most `cap`, spread by up to `jitter` (a share) either way."""

    def wait(attempts: int) -> float:
        seconds = min(cap, base * factor ** min(attempts, _MOST_DOUBLINGS))
        spread = random.uniform(-jitter, jitter)  # noqa: S311 - no secret
        return max(0.0, seconds * (1 + spread))

    return wait


def fixed(seconds: float) -> Backoff:
    """The same wait every time."""
    return lambda attempts: seconds


def steps(waits: Sequence[float]) -> Backoff:
    """The waits in turn; the last one repeats."""
    if not waits:
        raise ValueError("a list of waits needs at least one")
    chosen = tuple(waits)
    return lambda attempts: chosen[min(attempts, len(chosen) - 1)]


PRESETS: Final[dict[str, Backoff]] = {
    "default": exponential(),
    "processing": exponential(base=30.0, cap=600.0, jitter=0.0),
    "none": fixed(0.0),
}


# How many seconds finished jobs are kept, by state; a group's are counted from its end.
RETENTION_PRESETS: Final[dict[str, dict[str, float]]] = {
    "nuq": {"completed": 3600, "failed": 6 * 3600, "cancelled": 3600},
    "unified": {"completed": 86_400, "failed": 86_400, "cancelled": 86_400},
    "archive": {"completed": math.inf, "failed": math.inf, "cancelled": math.inf},
}


def backoff(policy: str | float | Sequence[float] | Backoff) -> Backoff:
    """A policy from what people write: a preset's name, seconds, a list of seconds, a function."""
    if callable(policy):
        return policy
    if isinstance(policy, str):
        if policy not in PRESETS:
            known = ", ".join(sorted(PRESETS))
            raise ValueError(f"no back-off preset named {policy!r}; there are: {known}")
        return PRESETS[policy]
    if isinstance(policy, int | float):
        return fixed(float(policy))
    return steps(policy)


def unique_key(kind: str, collection: str, identifier: str) -> str:
    """A key for one thing in one collection: `kind:collection:` and 16 hex digits of its hash."""
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{kind}:{collection}:{digest[:16]}"


def other_group(unique: str | None, holder: object) -> str:
    """Why a job may not replace the one that holds its key."""
    return (
        f"unique key {unique!r} is held by job {holder} of another group, "
        "which cannot be replaced by this one"
    )


def following_itself(unique: str | None, holder: object, group: str) -> str:
    """Why a job may not follow the one that holds its key."""
    return (
        f"unique key {unique!r} is held by job {holder}, which cannot be followed by a job of "
        f"group {group}: it waits for that group to end, so the two would wait for each other"
    )
