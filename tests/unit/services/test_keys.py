"""The keys a server knows: read once for all who ask meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from windrow import Queue
from windrow.errors import StoreUnavailable
from windrow.services.keys import Identity, KeyRing
from windrow.settings import Settings

CALLERS = 200
TURNS = 5  # of the event loop


class SlowRing(KeyRing):
    """Reads when it is told to."""

    def __init__(self, queue: Queue) -> None:
        super().__init__(queue, Settings(api_keys="secret"))
        self.may_read = asyncio.Event()
        self.reads = 0

    async def _read(self) -> Any:
        self.reads += 1
        await self.may_read.wait()
        return await super()._read()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


async def asked(ring: KeyRing, count: int) -> list[asyncio.Task[dict[str, Identity]]]:
    tasks = [asyncio.create_task(ring.read()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_all_who_ask_while_keys_are_read_go_on_at_once(url: str) -> None:
    async with Queue.open(url, migrate=True) as queue:
        ring = SlowRing(queue)
        waiting = await asked(ring, CALLERS)
        ring.may_read.set()
        await waiting[0]
        for _ in range(TURNS):
            await asyncio.sleep(0)

        assert ring.reads == 1
        assert sum(task.done() for task in waiting) == CALLERS, "nobody is let through one by one"


async def test_who_is_cancelled_takes_the_keys_from_nobody(url: str) -> None:
    async with Queue.open(url, migrate=True) as queue:
        ring = SlowRing(queue)
        first, second = await asked(ring, 2)
        first.cancel()
        ring.may_read.set()

        assert len(await second) == 1
        assert ring.reads == 1


async def test_keys_that_were_read_before_a_change_are_read_again(url: str) -> None:
    async with Queue.open(url, migrate=True) as queue:
        ring = SlowRing(queue)
        [before] = await asked(ring, 1)
        ring.forget()
        [after] = await asked(ring, 1)
        ring.may_read.set()
        await before
        await after
        await ring.read()

        assert ring.reads == 2


async def test_a_reading_that_fails_is_tried_again_by_the_next(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Queue.open(url, migrate=True) as queue:
        ring = KeyRing(queue, Settings(api_keys="secret"))

        async def fail() -> dict[str, Identity]:
            raise StoreUnavailable("away")

        with monkeypatch.context() as patched:
            patched.setattr(ring, "_read", fail)
            waiting = await asked(ring, 2)
            results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in results] == [StoreUnavailable] * 2
        assert len(await ring.read()) == 1
