"""Workers that come back from the dead: stopped for longer than their lease, kept from everything
by a handler, or in a time that jumps. What they say then is refused if another has their jobs."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from pathlib import Path

import pytest

from tests.trust.harness import Crew

pytestmark = pytest.mark.chaos

LEASE = 1
STOPS = 5
JOBS = 3000


async def test_a_worker_that_was_stopped_for_longer_than_its_lease_changes_nothing(
    store_url: str, store_name: str, tmp_path: Path
) -> None:
    """N4: its handlers go on when it wakes, and their ends are refused."""
    dice = random.Random(3)
    recovery = []
    with Crew(store_url, tmp_path) as crew:
        crew.make_rows()
        workers = [crew.start(lease=LEASE, seconds=0.2) for _ in range(3)]
        await crew.enqueue(JOBS, ("work", "write"))
        for _ in range(STOPS):
            before = crew.done
            await crew.until(lambda before=before: crew.done >= before + 60)  # type: ignore[misc]
            zombie = dice.choice(workers)
            zombie.signal(signal.SIGSTOP)
            stopped_at = time.monotonic()
            await asyncio.sleep(LEASE + 2.5)
            zombie.signal(signal.SIGCONT)
            recovery.append(crew.took_over(zombie.by, stopped_at))
        await crew.until_drained()
        await crew.stop()
        verdict = await crew.conclude()
    refused = sum(one.what == "finished" and one.accepted is False for one in verdict.entries)
    assert refused, "no zombie had anything to say"
    verdict.keep(
        "stale_refused",
        "SIGSTOP for longer than the lease",
        store=store_name,
        faults=STOPS,
        recovery=[seconds for seconds in recovery if seconds is not None],
        note=f"{refused} late ends were refused; recovery: until another had all its jobs; "
        f"lease {LEASE} s",
    )


async def test_a_handler_that_blocks_the_loop_loses_its_jobs_to_others(
    store_url: str, store_name: str, tmp_path: Path
) -> None:
    """No heartbeat comes out of a blocked loop. Its neighbours' jobs are run by another worker."""
    with Crew(store_url, tmp_path) as crew:
        await crew.enqueue(3, ("block",), 4.0, max_crashes=3)
        await crew.enqueue(1000)
        for _ in range(2):
            crew.start(lease=LEASE)
        began = time.monotonic()
        await crew.until_drained()
        await crew.stop()
        verdict = await crew.conclude()
    lost = sum(one.what == "finished" and one.accepted is False for one in verdict.entries)
    verdict.keep(
        "stale_refused",
        "event loop blocked for four leases",
        store=store_name,
        faults=3,
        note=f"{lost} late ends were refused; all was over after {time.monotonic() - began:.0f} s",
    )


async def test_time_jumps_and_nothing_is_lost_or_done_twice(
    store_url: str, store_name: str, tmp_path: Path
) -> None:
    """By ten minutes, there and back: leases that have just been given have run out then, or last
    long. Who lost a job by that is refused."""
    steps = (600, -600, 1200, 0, 3600)
    offset = tmp_path / "offset"
    offset.write_text("0")
    recovery = []
    with Crew(store_url, tmp_path) as crew:
        crew.make_rows()
        await crew.enqueue(4000, ("work", "write"))
        for _ in range(2):
            crew.start(lease=LEASE, seconds=0.02, clock=str(offset))
        for step in steps:
            before = crew.done
            await crew.until(lambda before=before: crew.done >= before + 300)  # type: ignore[misc]
            fresh = tmp_path / "offset.new"
            fresh.write_text(str(step))
            fresh.rename(offset)
            recovery.append(await crew.next_done(time.monotonic()))
        await crew.until_drained()
        await crew.stop()
        verdict = await crew.conclude()
    verdict.keep(
        "stale_refused",
        "clock stepped by up to an hour, forward and back",
        store=store_name,
        faults=len(steps),
        recovery=recovery,
    )
