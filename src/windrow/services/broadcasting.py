"""`Broadcast`: what happens to jobs and groups, for many listeners and by one reader.

However many listen, the database is read once: each event goes to those it is for. A listener that
comes back, or that takes more slowly than things happen, reads what it missed from the stored
stream, so nothing is kept for it here but a short line of events.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from windrow.errors import EventsPruned, StoreError
from windrow.queue.events import Event, EventReader, Place
from windrow.queue.queue import Queue
from windrow.worker.service import Trouble

logger = logging.getLogger(__name__)

MOST_LISTENERS: Final = 10_000
LINE: Final = 500  # events that wait for a listener; it reads the rest from the database
CATCHING_UP: Final = 4  # listeners that do so at once

# What an event is found by: ("job", id), ("group", id), ("queue", name) or ("all", "").
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events a listener is told of; None: any."""

    tenant: str | None = None
    types: tuple[str, ...] | None = None
    queue: str | None = None
    group: str | None = None
    job: str | None = None

    @property
    def key(self) -> Key:
        """The narrowest of them."""
        for name in ("job", "group", "queue"):
            if (value := getattr(self, name)) is not None:
                return name, value
        return "all", ""

    def takes(self, event: Event) -> bool:
        return (
            self.tenant in (None, event.tenant)
            and (self.types is None or event.type in self.types)
            and self.queue in (None, event.queue)
            and self.group in (None, event.group_id)
            and self.job in (None, event.job_id)
        )


@dataclass(frozen=True, slots=True)
class Beat:
    """Nothing happened for a while; the stream has been read up to here."""

    cursor: str


@dataclass(frozen=True, slots=True)
class Gap:
    """What came after `cursor` has been removed; it goes on behind `oldest`."""

    cursor: str
    oldest: str


@dataclass(slots=True, eq=False)
class Listener:
    wanted: Wanted
    line: deque[Event] = field(default_factory=deque)
    has_missed: bool = False  # the line was full: what it lost has to be read
    rung: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, event: Event) -> None:
        if not self.has_missed and self.wanted.takes(event):
            if len(self.line) >= LINE:
                self.miss()
            else:
                self.line.append(event)
            self.rung.set()

    def miss(self) -> None:
        self.has_missed = True
        self.line.clear()


class TooManyListeners(Exception):
    """There is no room for another one."""


class Broadcast:
    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._listeners: defaultdict[Key, set[Listener]] = defaultdict(set)
        self._count = 0
        self._reader: EventReader | None = None
        self._task: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()
        self._slots = asyncio.Semaphore(CATCHING_UP)
        self._is_closed = False

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """End what everybody listens to."""
        self._is_closed = True
        for listeners in self._listeners.values():
            for one in listeners:
                one.rung.set()

    async def listen(
        self, wanted: Wanted, after: str | None = None, *, beat: float = 15.0
    ) -> AsyncGenerator[Event | Beat | Gap, None]:
        """What happens from now on, or happened after a cursor; a beat when that begins, and when
        nothing happens. Raises InvalidCursor, TooManyListeners."""
        if self._count >= MOST_LISTENERS:
            raise TooManyListeners
        with self._listening(wanted) as listener:
            await self._begin()
            listener.line.clear()
            place = self._place
            if after is None:
                yield Beat(place.cursor)
            else:
                place = Place(after)
                listener.miss()
            while not self._is_closed:
                if listener.has_missed:
                    listener.has_missed = False
                    async for one in self._catch_up(wanted, place):
                        yield one
                        place = Place(one.cursor if isinstance(one, Event | Beat) else one.oldest)
                while listener.line:
                    event = listener.line.popleft()
                    if _order(Place(event.cursor)) > _order(place):
                        place = Place(event.cursor)
                        yield event
                if not await self._rings(listener, beat):
                    # Told of nothing, it is as far as the reader, which tells everybody at once.
                    place = place if listener.line or listener.has_missed else self._place
                    yield Beat(place.cursor)

    @property
    def _place(self) -> Place:
        cursor = None if self._reader is None else self._reader.cursor
        return Place(cursor or "0")

    async def _rings(self, listener: Listener, seconds: float) -> bool:
        """Whether there is something for it, or soon is."""
        try:
            async with asyncio.timeout(seconds):
                await listener.rung.wait()
        except TimeoutError:
            return False
        listener.rung.clear()
        return True

    async def _catch_up(self, wanted: Wanted, place: Place) -> AsyncIterator[Event | Beat | Gap]:
        """What is stored behind a place, up to now; at the end how far that is."""
        async with self._slots:
            while True:
                reader = self._queue.events(
                    place.cursor,
                    types=wanted.types,
                    queue=wanted.queue,
                    group=wanted.group,
                    job=wanted.job,
                    follow=False,
                )
                try:
                    async for event in reader:
                        if wanted.takes(event):
                            yield event
                except EventsPruned as error:
                    yield Gap(place.cursor, error.oldest)
                    place = Place(error.oldest)
                else:
                    yield Beat(reader.cursor or place.cursor)
                    return

    @contextmanager
    def _listening(self, wanted: Wanted) -> Iterator[Listener]:
        listener = Listener(wanted)
        key = wanted.key
        self._listeners[key].add(listener)
        self._count += 1
        try:
            yield listener
        finally:
            self._count -= 1
            self._listeners[key].discard(listener)
            if not self._listeners[key]:
                del self._listeners[key]
            if not self._count:
                self._end()

    async def _begin(self) -> None:
        """Have the stream read, from now on, as long as somebody listens."""
        if self._task is None:
            self._begun = asyncio.Event()
            self._reader = self._queue.events()
            self._task = asyncio.create_task(self._read(self._reader, self._begun))
        await self._begun.wait()

    def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task = self._reader = None

    async def _read(self, reader: EventReader, begun: asyncio.Event) -> None:
        trouble = Trouble("reading events")
        while True:
            try:
                await reader.begin()
                begun.set()
                async for event in reader:
                    trouble.over()
                    self._tell(event)
            except StoreError as error:
                await asyncio.sleep(trouble.wait(error))

    def _tell(self, event: Event) -> None:
        keys: list[Key] = [("all", "")]
        keys += [("queue", event.queue)] if event.queue is not None else []
        keys += [("group", event.group_id)] if event.group_id is not None else []
        keys += [("job", event.job_id)] if event.job_id is not None else []
        for key in keys:
            for listener in self._listeners.get(key, ()):
                listener.tell(event)


def _order(place: Place) -> tuple[int, float]:
    """Places in the order of the stream: the last event of a batch has the cursor of the batch."""
    return place.seq, float("inf") if place.done is None else place.done
