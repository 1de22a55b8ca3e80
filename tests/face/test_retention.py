"""Retention through `Queue` (N7, U12): presets, the archive, the disk budget, cleaning up."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.builders import tallied
from tests.conftest import OpenAnother
from tests.faults import FaultyStore
from windrow import Queue
from windrow.clock import FakeClock
from windrow.errors import ArchiveFailed, InvalidJob, StoreError
from windrow.queue.job import Job, JobState
from windrow.queue.records import FOREVER, Retention
from windrow.queue.retaining import MAINTENANCE, Upkeep
from windrow.queue.store import Store

HOUR = 3600
DAY = 24 * HOUR
SLACK = HOUR  # a store may keep jobs so much longer


async def run_one(queue: Queue, name: str = "default", payload: Any = None, **options: Any) -> Job:
    """A job that completed."""
    await queue.enqueue("work", payload, queue=name, **options)
    lease = await queue.claim([name])
    await lease.complete(lease.jobs[0], {"done": True})
    return lease.jobs[0]


async def run_badly(queue: Queue, name: str = "default") -> Job:
    await queue.enqueue("work", queue=name, max_attempts=1)
    lease = await queue.claim([name])
    await lease.fail(lease.jobs[0], "boom")
    return lease.jobs[0]


def archived(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]


@pytest.mark.parametrize(
    ("preset", "kept"),
    [
        ("nuq", Retention(HOUR, 6 * HOUR, HOUR)),
        ("unified", Retention(DAY, DAY, DAY)),
        ("archive", Retention(FOREVER, FOREVER, FOREVER)),
    ],
)
async def test_presets_name_all_three_states(queue: Queue, preset: str, kept: Retention) -> None:
    assert await queue.set_retention("web", preset=preset) == kept
    assert await queue.retention() == {"web": kept}


async def test_retention_is_given_in_seconds_timedeltas_for_ever_or_as_the_default(
    queue: Queue,
) -> None:
    await queue.set_retention("a", preset="nuq", failed=timedelta(days=2), cancelled=math.inf)
    await queue.set_retention("a", completed=None)

    assert (await queue.retention())["a"] == Retention(None, 2 * DAY, FOREVER)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "name a preset"),
        ({"preset": "weekly"}, "archive, nuq, unified"),
        ({"completed": -1}, "between 0 seconds"),
        ({"completed": "1h"}, "seconds or a timedelta"),
    ],
)
async def test_bad_retention_is_refused(
    queue: Queue, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidJob, match=message):
        await queue.set_retention("web", **options)

    assert await queue.retention() == {}


async def test_nuq_preset_keeps_failed_jobs_longer(queue: Queue, clock: FakeClock) -> None:
    await queue.set_retention("scrape", preset="nuq")
    done, failed = await run_one(queue, "scrape"), await run_badly(queue, "scrape")
    clock.advance(HOUR + SLACK)
    assert (await queue.prune()).jobs == 1
    assert list(await queue.get_many([done.id, failed.id])) == [failed.id]

    clock.advance(5 * HOUR)
    assert (await queue.prune()).jobs == 1


async def test_claiming_prunes_by_itself_about_once_a_minute(
    queue: Queue, clock: FakeClock
) -> None:
    job = await run_one(queue)
    clock.advance(DAY + SLACK)
    assert not await queue.claim()

    assert await queue.get_many([job.id]) == {}


async def test_jobs_are_written_to_the_archive_before_they_are_removed(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    queue = Queue(store, upkeep=Upkeep(archive_dir=tmp_path / "old"))
    group = await queue.create_group()
    done = [
        await run_one(queue, payload={"text": "zwei\nZeilen ü 漢字"}, tags=["a"]),
        await run_one(queue, group=group.id),
    ]
    clock.advance(DAY)
    done.append(await run_badly(queue))
    clock.advance(8 * DAY)
    await queue.prune()
    found = {record["id"]: record for record in archived(tmp_path / "old")}

    assert set(found) == {job.id for job in done}
    first = found[done[0].id]
    assert (first["payload"], first["result"]) == ({"text": "zwei\nZeilen ü 漢字"}, {"done": True})
    assert (first["state"], first["tags"], first["attempts"]) == ("completed", ["a"], 0)
    assert [line["message"] for line in found[done[2].id]["errors"]] == ["boom"]
    assert found[done[1].id]["group"] == group.id
    # One file for each day on which jobs finished.
    names = sorted(path.name for path in (tmp_path / "old").iterdir())
    assert names == ["jobs-2026-01-01.jsonl", "jobs-2026-01-02.jsonl"]


async def test_archive_that_cannot_be_written_keeps_the_jobs_and_lets_claims_go_on(
    store: Store, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    queue = Queue(store, upkeep=Upkeep(archive_dir=blocked))
    job = await run_one(queue)
    clock.advance(DAY + SLACK)
    await queue.enqueue("next")

    assert len((await queue.claim()).jobs) == 1
    assert "cannot be archived" in caplog.text
    assert await queue.get_many([job.id])
    with pytest.raises(ArchiveFailed):
        await queue.prune()
    assert (await queue.prune(archive=tmp_path / "folder")).jobs == 1


async def test_disk_usage_is_told(queue: Queue) -> None:
    await run_one(queue, payload="x" * 10_000)
    usage = await queue.disk_usage()

    assert usage.total >= usage.used > 0
    assert usage.payloads > 0


async def test_clean_counts_or_deletes_what_finished_long_enough_ago(
    queue: Queue, clock: FakeClock, store: Store
) -> None:
    await run_one(queue, "web")
    await run_badly(queue, "web")
    await run_one(queue, "index")
    clock.advance(2 * HOUR)
    await run_one(queue, "web")
    live = await queue.enqueue("work", queue="web")
    before = await tallied(store)

    old = {
        "web": {JobState.COMPLETED: 1, JobState.FAILED: 1},
        "index": {JobState.COMPLETED: 1},
    }
    assert await queue.clean(older_than=HOUR, dry_run=True) == old
    assert await tallied(store) == before
    assert await queue.clean(queue="web", state="failed", older_than=HOUR) == {
        "web": {JobState.FAILED: 1}
    }
    assert await queue.clean(older_than=timedelta(hours=1)) == {
        "web": {JobState.COMPLETED: 1},
        "index": {JobState.COMPLETED: 1},
    }
    assert await queue.clean() == {"web": {JobState.COMPLETED: 1}}
    assert await tallied(store) == {"web": {JobState.READY: 1}}
    assert await queue.get_many([live.id])


async def test_only_finished_jobs_can_be_cleaned(queue: Queue) -> None:
    with pytest.raises(InvalidJob, match="only finished jobs"):
        await queue.clean(state="ready")


def prunes(faulty: FaultyStore) -> int:
    return sum(call.verb == "prune_jobs" for call in faulty.history)


async def test_of_all_who_tend_a_database_one_prunes(
    store: Store, open_another: OpenAnother, clock: FakeClock
) -> None:
    one, other = FaultyStore(store), FaultyStore(await open_another())
    first, second = Queue(one), Queue(other)
    done = await run_one(first, retention=HOUR)
    for _ in range(5):
        await first.tend()
        await second.tend()
        clock.advance(61)
    assert (prunes(one), prunes(other)) == (5, 0)

    clock.advance(HOUR + SLACK)  # and the first one is heard of no more
    for _ in range(3):
        await second.tend()
        clock.advance(61)
    assert prunes(other) == 3
    assert await store.get_jobs([done.id]) == {}
    await first.tend()
    assert prunes(one) == 5


async def test_worker_that_maintains_the_database_prunes_and_is_kept_waiting_by_nobody(
    store: Store, clock: FakeClock
) -> None:
    faulty = FaultyStore(store)
    queue = Queue(faulty)
    await queue.tend()
    assert prunes(faulty) == 1
    assert await store.elect_leader(MAINTENANCE, "worker", 120)
    clock.advance(61)
    await queue.tend()
    assert prunes(faulty) == 1
    clock.advance(61)
    await queue.tend()
    assert prunes(faulty) == 2


async def test_queue_that_is_closed_leaves_the_pruning_to_another(
    store: Store, open_another: OpenAnother
) -> None:
    other = FaultyStore(store)
    first, second = Queue(await open_another()), Queue(other)
    await first.tend()
    await first.close()
    await second.tend()

    assert prunes(other) == 1


async def test_leader_that_does_not_tend_for_a_while_gives_way(
    store: Store, open_another: OpenAnother, clock: FakeClock
) -> None:
    one, other = FaultyStore(store), FaultyStore(await open_another())
    await Queue(one).tend()
    second = Queue(other)
    await second.tend()
    clock.advance(89)
    await second.tend()
    assert prunes(other) == 0
    clock.advance(61)
    await second.tend()
    assert (prunes(one), prunes(other)) == (1, 1)


async def test_queue_is_closed_though_the_lead_cannot_be_given_back(
    open_another: OpenAnother,
) -> None:
    faulty = FaultyStore(await open_another())
    queue = Queue(faulty)
    await queue.tend()
    faulty.fail_before("resign_leader")
    await queue.close()
    assert (faulty.history[-1].verb, faulty.history[-1].outcome) == (
        *("resign_leader", "StoreUnavailable"),
    )
    with pytest.raises(StoreError):
        await queue.queues()
