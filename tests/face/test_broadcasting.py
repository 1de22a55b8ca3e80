"""N14: many listeners and one reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from windrow import NewJob, Queue
from windrow.queue.events import Event
from windrow.services import broadcasting
from windrow.services.broadcasting import Beat, Broadcast, Gap, TooManyListeners, Wanted

Stream = AsyncIterator[Event | Beat | Gap]


async def next_event(stream: Stream) -> Event:
    while not isinstance(one := await anext(stream), Event):
        pass
    return one


async def listen(broadcast: Broadcast, wanted: Wanted, after: str | None = None) -> Stream:
    """A listener that has begun."""
    stream = broadcast.listen(wanted, after)
    assert isinstance(await anext(stream), Beat)
    return stream


async def test_n14_many_listeners_are_one_reader(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    read = queue.store.read_events

    async def counted(*args: object, **options: object) -> object:
        nonlocal looks
        looks += 1
        return await read(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(queue.store, "read_events", counted)
    broadcast = Broadcast(queue)
    streams = [await listen(broadcast, Wanted(queue=f"q{n % 100}")) for n in range(2000)]
    assert len(broadcast) == 2000

    await queue.enqueue_many([NewJob("work", queue=f"q{n}") for n in range(100)])
    heard = await asyncio.gather(*(next_event(stream) for stream in streams))

    assert [event.queue for event in heard] == [f"q{n % 100}" for n in range(2000)]
    assert looks < 50
    for stream in streams:
        await stream.aclose()  # type: ignore[attr-defined]
    assert len(broadcast) == 0


async def test_n14_a_slow_listener_reads_what_it_missed(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcasting, "LINE", 10)
    broadcast = Broadcast(queue)
    slow, quick = [await listen(broadcast, Wanted(queue="a")) for _ in range(2)]
    jobs = []
    for number in range(60):
        jobs.append((await queue.enqueue("work", queue="a")).id)
        if number % 2:
            await next_event(quick)

    heard = [(await next_event(slow)).job_id for _ in jobs]
    more = await queue.enqueue("work", queue="a")

    assert heard == jobs
    assert (await next_event(slow)).job_id == more.id


async def test_n14_a_listener_goes_on_behind_any_cursor(queue: Queue) -> None:
    broadcast = Broadcast(queue)
    await queue.enqueue_many([NewJob("work") for _ in range(5)])
    cursors = [event.cursor async for event in queue.events("0", follow=False)]

    for number, cursor in enumerate(cursors):
        stream = broadcast.listen(Wanted(), cursor)
        rest = []
        while isinstance(one := await anext(stream), Event):
            rest.append(one.cursor)
        assert rest == cursors[number + 1 :]
        await stream.aclose()


async def test_n14_what_is_removed_is_told_as_a_gap(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    from windrow.errors import EventsPruned
    from windrow.queue.events import EventReader

    await queue.enqueue("work")
    [event] = [event async for event in queue.events("0", follow=False)]
    is_first = True
    look = EventReader._look

    async def pruned(self: EventReader) -> bool:
        nonlocal is_first
        if is_first and not self._follow:
            is_first = False
            raise EventsPruned("0", event.cursor)
        return await look(self)

    monkeypatch.setattr(EventReader, "_look", pruned)
    stream = Broadcast(queue).listen(Wanted(), "0")

    assert await anext(stream) == Gap("0", event.cursor)
    await queue.enqueue("more")
    assert (await next_event(stream)).kind == "more"


async def test_there_is_an_end_to_listeners(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcasting, "MOST_LISTENERS", 1)
    broadcast = Broadcast(queue)
    stream = await listen(broadcast, Wanted())

    with pytest.raises(TooManyListeners):
        await anext(broadcast.listen(Wanted()))
    broadcast.close()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
