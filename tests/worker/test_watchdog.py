"""The watchdog names what blocks the event loop; the memory guard sees what is in use."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from windrow.worker.watchdog import MemoryGuard, Watchdog, memory_in_use


def block_the_loop(watchdog: Watchdog) -> None:
    watchdog.start()  # here, so that whatever it sees stand still is this
    while not watchdog.stalls:
        time.sleep(0.01)


async def test_watchdog_shows_where_the_loop_stands_still(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = Watchdog(stall_seconds=0.1)
    block_the_loop(watchdog)
    watchdog.stop()

    [record] = [one for one in caplog.records if "stood still" in one.message]
    assert record.levelno == logging.WARNING
    assert "block_the_loop" in record.message
    first = record.message.partition(" It is at:\n")[2].splitlines()[0]
    assert __file__ in first
    assert "test_watchdog_shows_where" in first


async def test_watchdog_is_silent_while_the_loop_runs(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = Watchdog(stall_seconds=60)
    watchdog.start()
    for _ in range(10):
        await asyncio.sleep(0.01)
    watchdog.stop()

    assert watchdog.stalls == 0
    assert not caplog.records


@pytest.mark.parametrize(("ceiling", "is_recycled"), [(1, True), (2**60, False)])
async def test_memory_above_the_ceiling_asks_for_a_fresh_process(
    ceiling: int, is_recycled: bool
) -> None:
    asked = []
    guard = MemoryGuard(ceiling, lambda: asked.append(True))
    await guard.run_once()

    assert bool(asked) is is_recycled
    assert guard.is_stopping is is_recycled
    assert memory_in_use() > 2**20
