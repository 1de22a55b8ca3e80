"""Many processes add to one capped group: each key once, and exactly so many members."""

from __future__ import annotations

from pathlib import Path

from tests.builders import EVERYTHING, get_group, make_group
from tests.integration.test_race import (  # noqa: F401
    RACERS,
    Start,
    logged,
    real,
    run_to_the_end,
    start,
)
from windrow.queue.store import Store

KEYS = 200
MOST = 150


async def test_8_processes_fill_a_group_to_its_cap_with_each_key_once(
    real: Store,  # noqa: F811
    start: Start,  # noqa: F811
    tmp_path: Path,
) -> None:
    """N5: what a crawl has seen, and its limit, hold however many workers find pages."""
    group = await make_group(real, max_jobs=MOST, is_open=True)
    options = {"group": group.id, "keys": KEYS, "rounds": 30}
    logs = {"log": lambda n: str(tmp_path / f"{n}.log"), "seed": lambda n: n}
    run_to_the_end(start(RACERS, "crawl", **options, **logs))

    told = logged(tmp_path)
    assert told.pop("kept") == 3  # of eight that asked for three keys
    assert set(told.values()) == {1}
    assert len(told) == MOST
    found = await get_group(real, group.id)
    assert (found.members, sum(found.counts.values())) == (MOST, MOST)
    jobs = await real.list_jobs(EVERYTHING, limit=2 * MOST)
    assert sorted(str(job.payload) for job in jobs) == sorted(told)
