"""What a crawl brings into the index: its session, as notes of the group it has.

Of a crawl that did not open a session nothing is noted: nobody would remove it. Notes are a set, so
a page that comes twice, or a run that is done again, counts once; only seconds that were spent
twice are counted twice. All of them go when the group does.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from windrow.ids import is_id, new_id
from windrow.queue.queue import Queue

PREFIX: Final = "session."
OPENED: Final = "opened"
LONGEST: Final = 500  # characters of an address that is noted as it is; keys cannot be any longer
PAGE: Final = 1000
Subject = Literal["page", "indexed", "failed", "source", "event", "seconds", "opened"]


@dataclass(frozen=True, slots=True)
class Indexed:
    """A page that can be found now, and whether it was cut and embedded for that."""

    session: str
    uri: str
    is_new: bool = False


class Spent(msgspec.Struct, frozen=True):
    """The seconds that one run of the index spent on pages of a session, by step."""

    run: str
    ended_at: datetime
    seconds: dict[str, float]


async def open_session(queue: Queue, id: str) -> None:
    """From now on things are noted of it; its group is there already."""
    await queue.add_group_notes(id, PREFIX + OPENED, [OPENED])


async def is_opened(queue: Queue, id: str) -> bool:
    return is_id(id) and bool(await queue.group_notes(id, PREFIX + OPENED, limit=1))


async def note(queue: Queue, id: str, subject: Subject, texts: Iterable[str]) -> None:
    """Note pages by their addresses, or other short texts."""
    noted = [_short(text) for text in texts]
    if noted:
        await queue.add_group_notes(id, PREFIX + subject, noted)


async def note_indexed(
    queue: Queue, pages: Iterable[Indexed], seconds: Mapping[str, float] | None = None
) -> None:
    """Note pages that can be found, and of what was spent on all of them each session's share."""
    by_session: defaultdict[str, list[Indexed]] = defaultdict(list)
    for page in pages:
        by_session[page.session].append(page)
    new = sum(page.is_new for some in by_session.values() for page in some)
    for id, some in by_session.items():
        if not await is_opened(queue, id):
            continue
        await note(queue, id, "indexed", [page.uri for page in some])
        share = sum(page.is_new for page in some) / new if new else 0.0
        if seconds and share:
            spent = {step: round(part * share, 6) for step, part in seconds.items()}
            said = Spent(new_id(), datetime.now(UTC), spent)
            await queue.add_group_notes(
                id, PREFIX + "seconds", [msgspec.json.encode(said).decode()]
            )


async def read_notes(queue: Queue, id: str, subject: Subject) -> list[str]:
    """All that was noted on a subject."""
    found: list[str] = []
    after = ""
    while page := await queue.group_notes(id, PREFIX + subject, after=after, limit=PAGE):
        found += page
        after = page[-1]
    return found


def _short(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
