"""`Queue.events()`: what happened, one small `Event` after the other, from any place on.

Stores write events in batches, with the changes they tell of. A reader takes them apart and knows
its place: `cursor`, a text to be kept and given as `after` the next time, by the same or another
process. Nothing is missed and nothing comes twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self

import msgspec

from windrow.errors import EventsPruned, InvalidCursor, InvalidJob
from windrow.queue.bells import Bell, jittered
from windrow.queue.checks import check_id, check_name
from windrow.queue.records import EventBatch, EventFilter, EventPage
from windrow.queue.store import Store
from windrow.queue.waiting import pauses

OLDEST: Final = "0"  # after this cursor comes all that is kept
# How many numbers of the stream a look goes over, and how many batches it takes at the most.
SPAN: Final = 5000
PAGE: Final = 200
# How soon to look again when a transaction under way keeps readers back: it will not ring.
COMMIT_SECONDS: Final = 0.05


class EventType(StrEnum):
    JOB_CREATED = "job.created"
    JOB_STARTED = "job.started"
    JOB_PROGRESS = "job.progress"
    JOB_FINISHED = "job.finished"
    GROUP_PROGRESS = "group.progress"
    GROUP_ENDED = "group.ended"

    def __repr__(self) -> str:
        """As a plain string, so that printed events are readable."""
        return repr(self.value)


# When it comes, the states it may name, and its details; for docs/reference/events.md.
MEANINGS: Final[Mapping[EventType, tuple[str, str, str]]] = {
    EventType.JOB_CREATED: (
        "a job was enqueued, as a follow-up or by a schedule too",
        "where it waits: `ready`, `scheduled`, `held`",
        "",
    ),
    EventType.JOB_STARTED: ("a job was claimed; again for each run", "`active`", ""),
    EventType.JOB_PROGRESS: (
        "a run said how far it is",
        "`active`",
        "`percent`, `message` and the counters",
    ),
    EventType.JOB_FINISHED: ("a job ended", "`completed`, `failed`, `cancelled`", ""),
    EventType.GROUP_PROGRESS: (
        "members of a group ended; once for all that ended together",
        "`active`",
        "`total`, `completed`, `failed`, `cancelled`",
    ),
    EventType.GROUP_ENDED: (
        "the last member of a group ended, or it was cancelled or closed",
        "`completed`, `cancelled`",
        "`total`, `completed`, `failed`, `cancelled`",
    ),
}
FIELDS: Final[Mapping[str, str]] = {
    "cursor": "its place in the stream: give it as `after` to go on behind this event",
    "at": "when it happened, by the database's clock",
    "type": "one of the types above",
    "state": "of the job or group, by this event",
    "job_id": "the job; none, if it happened to a group",
    "group_id": "the group; of a job, the one it belongs to",
    "queue": "the job's queue",
    "kind": "the job's kind",
    "tenant": "whose it is",
    "details": "numbers and words, as above",
}


class Event(msgspec.Struct, frozen=True):
    """Something that happened to a job, or to a group (then `job_id` is None); see FIELDS."""

    cursor: str
    at: datetime
    type: EventType
    state: str
    job_id: str | None = None
    group_id: str | None = None
    queue: str | None = None
    kind: str | None = None
    tenant: str | None = None
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Place:
    """A place in the stream: behind a batch, or within one."""

    def __init__(self, cursor: str) -> None:
        number, _, done = cursor.partition(".")
        is_number = number.isascii() and number.isdecimal() and len(number) < 19
        if not is_number or not (done.isascii() and (done.isdecimal() or "." not in cursor)):
            raise InvalidCursor(f"{cursor!r} is no cursor of an event")
        self.cursor = cursor
        self.seq = int(number)
        self.done = int(done) + 1 if done else None  # events of batch `seq` that are done with

    @property
    def after(self) -> int:
        """All batches up to this number are done with."""
        return self.seq if self.done is None else self.seq - 1


class EventReader:
    """Follows the stream: `async for event in queue.events()`.

    `cursor` is the place after the last event given. It stays good after an error (a database that
    was away for a moment): go on with the same reader, or with a new one from its cursor.
    """

    def __init__(self, store: Store, after: str | None, wanted: EventFilter, follow: bool) -> None:
        self._store = store
        self._place = None if after is None else Place(after)
        self._wanted = wanted
        self._follow = follow
        self._ready: deque[Event] = deque()
        self._read_to: int | None = None
        self._has_more = True
        self._is_closed = False

    @property
    def cursor(self) -> str | None:
        """None before the reader has begun, if it begins with what happens next."""
        return None if self._place is None else self._place.cursor

    async def begin(self) -> None:
        """Take one's place, before the first event is asked for."""
        if self._place is None:
            await self._look()

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        self._is_closed = True
        self._ready.clear()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            if self._is_closed:
                raise StopAsyncIteration
            if await self._look():
                continue
            if not self._follow:
                raise StopAsyncIteration
            await self._sleep()
        event = self._ready.popleft()
        self._place = Place(event.cursor)
        return event

    async def _sleep(self) -> None:
        """Until there is something; the bell hangs before the look, so nothing is slept over."""
        async with self._store.listen_for_events() as bell:
            for pause in pauses(None):
                if self._is_closed or await self._look():
                    return
                await self._wait(bell, pause)

    async def _wait(self, bell: Bell, pause: float) -> None:
        await bell.wait(COMMIT_SECONDS if self._has_more else jittered(pause))

    async def _look(self) -> bool:
        """Read on; whether there was anything, wanted or not."""
        former = self._read_to
        if former is None and self._place is not None:
            former = self._place.after
        page = await self._read(former)
        self._read_to, self._has_more = page.read_to, page.has_more
        self._ready.extend(self._expand(page))
        if not self._ready:
            self._place = Place(str(page.read_to))
        return page.read_to != former

    async def _read(self, former: int | None) -> EventPage:
        """The next page, if nothing is missing in front of it."""
        while True:
            page = await self._store.read_events(former, self._wanted, span=SPAN, limit=PAGE)
            if former is None or self._place is None:
                return page
            if former > page.last:
                raise InvalidCursor(f"{self._place.cursor!r} lies after all that has happened")
            if page.floor <= former:
                return page
            if self._place.cursor != OLDEST:
                raise EventsPruned(self._place.cursor, str(page.floor))
            former = page.floor

    def _expand(self, page: EventPage) -> Iterator[Event]:
        place = self._place
        for batch in page.batches:
            skipped = place.done or 0 if place is not None and place.seq == batch.seq else 0
            for number, event in enumerate(expand(batch)):
                if number >= skipped and self._wanted.job in (None, event.job_id):
                    yield event


def expand(batch: EventBatch) -> Iterator[Event]:
    """The events of a batch. The cursor of the last one is that of the batch."""
    job_ids: Sequence[str | None] = (None,) if batch.job_ids is None else batch.job_ids
    details = {} if batch.details is None else msgspec.json.decode(batch.details)
    for number, job_id in enumerate(job_ids):
        is_last = number == len(job_ids) - 1
        yield Event(
            cursor=str(batch.seq) if is_last else f"{batch.seq}.{number}",
            at=batch.at,
            type=EventType(batch.type),
            state=batch.state or "",
            job_id=job_id,
            group_id=batch.group_id,
            queue=batch.queue,
            kind=batch.kind,
            tenant=batch.tenant,
            details=details,
        )


class Following:
    """The part of a queue that tells what happens."""

    store: Store

    def events(
        self,
        after: str | None = None,
        *,
        types: Sequence[str] | str | None = None,
        queue: str | None = None,
        group: str | None = None,
        job: str | None = None,
        follow: bool = True,
    ) -> EventReader:
        """What happens from now on, or what happened after a cursor (`"0"`: all that is kept), and
        then on for ever, or up to now (`follow=False`): `async for event in queue.events()`.

        Each event has the cursor to go on from. A cursor whose events have been removed since
        raises EventsPruned. The filters choose by type, queue, group and job.
        """
        wanted = EventFilter(
            types=_types(types),
            queue=None if queue is None else check_name(queue, "queue"),
            group=check_id(group, "group"),
            job=check_id(job, "job"),
        )
        return EventReader(self.store, after, wanted, follow)


def _types(types: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if types is None:
        return None
    listed = (types,) if isinstance(types, str) else tuple(types)
    known = [str(one) for one in EventType]
    for one in listed:
        if one not in known:
            raise InvalidJob(f"no event type named {one!r}; there are: {', '.join(known)}")
    return tuple(str(one) for one in listed)
