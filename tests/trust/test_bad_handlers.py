"""Jobs that never succeed, take their process along or eat its memory: bounded, and the good ones
have their turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.trust.harness import PATIENCE, Crew
from tests.trust.programs import RECYCLED

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

FAILING = 9_970
CRASHING = 30
GOOD = 2_000
CRASHES = 2
LEASE = 1


async def test_10000_poison_jobs_are_bounded_and_the_good_ones_finish(
    store_url: str, store_name: str, tmp_path: Path
) -> None:
    with Crew(store_url, tmp_path) as crew:
        await crew.enqueue(FAILING, ("fail",))
        await crew.enqueue(CRASHING, ("crash",), max_crashes=CRASHES)
        await crew.enqueue(GOOD)
        for _ in range(2):
            crew.start(lease=LEASE)
        await crew.until_drained(2 * PATIENCE, meanwhile=lambda: crew.replace_the_dead(lease=LEASE))
        verdict = await crew.conclude()
        ended = sum(one.is_buried for one in crew.members)
    states = verdict.states()
    assert (states["completed"], states["failed"]) == (GOOD, FAILING + CRASHING)
    verdict.keep(
        "bounded",
        "poison jobs: they fail always, or crash the process",
        store=store_name,
        faults=FAILING + CRASHING,
        note=f"{CRASHING} of them killed {ended} processes; {GOOD:,} good jobs among them finished",
    )


async def test_a_handler_that_leaks_memory_has_its_worker_begin_afresh(
    store_url: str, store_name: str, tmp_path: Path
) -> None:
    """`max_memory` is the guard: the worker stops in order, hands back, and is started again."""
    options: dict[str, Any] = {
        "leak": 2**20,
        "spare_memory": 60 * 2**20,
        "seconds": 0.05,
        "concurrency": 2,
    }
    with Crew(store_url, tmp_path) as crew:
        await crew.enqueue(300, ("leak",))
        crew.start(**options)
        await crew.until_drained(meanwhile=lambda: crew.replace_the_dead(**options))
        ends = [one.process.exitcode for one in crew.members if not one.is_alive]
        verdict = await crew.conclude()
    assert ends
    assert set(ends) == {RECYCLED}
    crashes = verdict.crashes()
    assert crashes == 0
    verdict.keep(
        "bounded",
        "a handler that leaks memory",
        store=store_name,
        faults=len(ends),
        note=f"the worker began afresh {len(ends)} times; {crashes} crashes",
    )
