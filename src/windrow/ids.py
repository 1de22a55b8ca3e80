"""Job ids: UUID version 7, so that ids made later sort later and index pages fill in order.

Made by the client, not the database: a retried insert carries the same id and is recognised.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from windrow.errors import InvalidJob

# The namespace in which NuQ, and so its dialect, turns owner names into UUIDs.
OWNER_NAMESPACE: Final = uuid.UUID("0f38e00e-d7ee-4b77-8a7a-a787a3537ca2")

_POOL: Final = 512  # endings made at once: asking the system for each lets other threads in
_LENGTH: Final = 36  # of an id as it is written
_DASHES: Final = (8, 13, 18, 23)
# The digit after the third dash says in its upper two bits which variant of UUIDs it is.
_VARIANT: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))

_lock = threading.Lock()
_last_tick = 0
_spelled = (-1, "")  # the milliseconds of the last id, which the next mostly has too
_endings: list[str] = []  # random ones, the part behind the third dash


def new_id() -> str:
    """A time-ordered UUID; within one process each is greater than the one before."""
    global _last_tick, _spelled
    with _lock:
        _last_tick = tick = _next_tick()
        if not _endings:
            _endings.extend(_make_endings(_POOL))
        ending = _endings.pop()
    milliseconds, spelled = _spelled
    if milliseconds != tick >> 12:
        milliseconds = tick >> 12
        spelled = _spell(milliseconds)
        _spelled = milliseconds, spelled
    return f"{spelled}{tick & 4095:03x}-{ending}"


def new_ids(count: int) -> list[str]:
    """So many of them, in order; for less than half the price."""
    global _last_tick
    with _lock:
        first = _next_tick()
        _last_tick = first + count - 1
    ids = []
    spelled, before = "", -1
    for tick, ending in enumerate(_make_endings(count), first):
        milliseconds, fraction = divmod(tick, 4096)
        if milliseconds != before:  # mostly they are those of the id before
            spelled, before = _spell(milliseconds), milliseconds
        ids.append(f"{spelled}{fraction:03x}-{ending}")
    return ids


def _spell(milliseconds: int) -> str:
    """The beginning of an id, up to the digits below a millisecond."""
    digits = f"{milliseconds:012x}"
    return f"{digits[:8]}-{digits[8:]}-7"


def named_id(within: str, name: str) -> str:
    """UUIDv5: the same for the same name within the same id. Made here, as every file and every
    chunk needs one, and `uuid` takes three times as long."""
    given = bytes.fromhex(within.replace("-", "")) + name.encode()
    digest = bytearray(hashlib.sha1(given, usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    return uuid_text(digest.hex())


def uuid_text(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def made_at(id: str) -> datetime:
    """When an id was made, to the millisecond."""
    return datetime.fromtimestamp(int(id[:8] + id[9:13], 16) / 1000, UTC)


def _next_tick() -> int:
    """48 bits of milliseconds and 12 of the fraction below them: 244 ns per tick."""
    return max((time.time_ns() << 12) // 1_000_000, _last_tick + 1)


def _make_endings(count: int) -> list[str]:
    digits = os.urandom(8 * count).hex()
    return [
        f"{_VARIANT[digits[at]]}{digits[at + 1 : at + 4]}-{digits[at + 4 : at + 16]}"
        for at in range(0, len(digits), 16)
    ]


def _forget_endings() -> None:
    """In a forked child: what is left is the parent's."""
    global _lock
    _lock = threading.Lock()
    _endings.clear()


os.register_at_fork(after_in_child=_forget_endings)


def is_id(text: str) -> bool:
    """Whether the text is a UUID in any of its usual spellings."""
    try:
        digits = uuid.UUID(text).hex
    except (ValueError, AttributeError, TypeError):
        return False
    # It takes whatever `int` does: spaces, underscores, the digits of other scripts.
    return text.replace("-", "").lower().find(digits) >= 0


def are_plain_ids(texts: Sequence[str]) -> bool:
    """Whether all of these are UUIDs as the stores write them. Looked at together: one by one would
    be felt where many jobs end."""
    joined = "".join(texts)
    try:
        size = len(bytes.fromhex(joined.replace("-", "")))
    except ValueError:
        return False
    dashes = "".join(joined[place::_LENGTH] for place in _DASHES)
    return (
        {*map(len, texts)} <= {_LENGTH}
        and size == 16 * len(texts)
        and dashes == "-" * len(_DASHES) * len(texts)
    )


def plain_id(text: str) -> str:
    """An id as the stores write it, whichever way it was spelled; any other text as it is."""
    if not isinstance(text, str):
        raise InvalidJob(f"an id must be a text such as job.id, not of type {type(text).__name__}")
    return str(uuid.UUID(text)) if is_id(text) else text


def owner_id(owner: str) -> str:
    """An owner as a UUID: one that is a UUID as it is, any other name by UUIDv5."""
    if is_id(owner):
        return plain_id(owner)
    return str(uuid.uuid5(OWNER_NAMESPACE, owner))
