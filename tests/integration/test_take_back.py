"""A copy that cannot be finished is undone: what was on its way is live in the source again."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, cast

import pytest

from tests.builders import EVERYTHING, add, add_many, claim, get_group, ids, make_group, row, state
from tests.faults import FaultyStore
from tests.integration.moving import move
from windrow.errors import ConfigError, StoreUnavailable
from windrow.queue.copying import CopyStore
from windrow.queue.job import JobState
from windrow.queue.records import ScheduleRow
from windrow.queue.store import Store
from windrow.services import copying as services
from windrow.services.taking_back import TakeBackReport, take_back, take_back_jobs


async def give_up(source: Any, target: Any) -> TakeBackReport:
    report = TakeBackReport("here", None if target is None else "there")
    await take_back(cast(CopyStore, source), cast("CopyStore | None", target), report)
    return report


async def break_off(source: Store, target: Store, *, is_written: bool) -> None:
    """A copy that stops at its first parcel; the one before it proves who the target is."""
    faulty = FaultyStore(target)
    (faulty.lose_reply if is_written else faulty.fail_before)("receive_parcel", 2)
    with pytest.raises(StoreUnavailable):
        await move(source, faulty)


async def test_what_the_target_does_not_have_is_live_in_the_source_again(
    both: tuple[Store, Store],
) -> None:
    source, target = both
    jobs = await add_many(source, 5)
    held = await add(source, unique="k")
    await source.put_schedule(ScheduleRow(name="nightly", job=row("tick"), cron="0 3 * * *"))
    await break_off(source, target, is_written=False)
    [number] = await cast(CopyStore, source).list_parcels()
    parcel = await cast(CopyStore, source).read_parcel(number)
    assert parcel is not None
    assert await source.list_jobs(EVERYTHING) == []

    report = await give_up(source, target)

    assert (report.taken_back, report.arrived, report.is_over) == (6, 0, True)
    assert sorted(ids(await claim(source, 10))) == sorted([*jobs, held])
    assert [found.name for found in await source.list_schedules()] == ["nightly"]
    assert await cast(CopyStore, source).list_parcels() == {}
    # A copy that was stopped meanwhile and goes on now hands it over in vain.
    late = await cast(CopyStore, target).receive_parcel(parcel)
    assert late.items == 0
    assert await target.list_jobs(EVERYTHING) == []


async def test_what_the_target_has_stays_there(both: tuple[Store, Store]) -> None:
    source, target = both
    jobs = await add_many(source, 5)
    await break_off(source, target, is_written=True)
    report = await give_up(source, target)
    assert (report.taken_back, report.arrived, report.is_over) == (0, 5, True)
    assert await source.list_jobs(EVERYTHING) == []
    assert sorted(ids(await target.list_jobs(EVERYTHING))) == sorted(jobs)


@pytest.mark.parametrize("is_asked", [True, False], ids=["target asked", "target lost"])
async def test_groups_come_back_and_end_in_the_source(
    both: tuple[Store, Store], is_asked: bool
) -> None:
    source, target = both
    group = await make_group(source, then=row("finish"))
    members = await add_many(source, 4, group=group.id)
    await break_off(source, target, is_written=False)
    report = await give_up(source, target if is_asked else None)
    assert (report.taken_back, report.groups) == (4, 1)
    assert (await get_group(source, group.id)).pending == 4
    assert sorted(ids(await claim(source, 10))) == sorted(members)


async def test_a_large_group_that_had_half_arrived_in_a_lost_target_is_taken_back_whole(
    both: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "PARCEL_JOBS", 10)
    source, target = both
    group = await make_group(source)
    members = await add_many(source, 35, group=group.id)
    faulty = FaultyStore(target)
    faulty.fail_before("receive_parcel", 4)
    with pytest.raises(StoreUnavailable):
        await move(source, faulty)
    assert len(await target.list_jobs(EVERYTHING)) == 20

    report = await give_up(source, None)
    assert (report.taken_back, report.is_over) == (35, True)
    assert sorted(ids(await claim(source, 100))) == sorted(members)
    assert (await get_group(source, group.id)).pending == 35


async def test_a_key_that_is_held_by_now_is_followed_or_kept_on_the_way(
    both: tuple[Store, Store],
) -> None:
    source, target = both
    first = await add(source, unique="k")
    await break_off(source, target, is_written=False)
    await add(source, unique="k")
    report = await give_up(source, target)
    assert report.taken_back == 1
    assert await state(source, first) is JobState.HELD  # behind the newer one


async def test_taking_back_that_was_interrupted_loses_nothing_if_the_copy_goes_on(
    both: tuple[Store, Store],
) -> None:
    """The number is void in the target and the parcel still in the outbox."""
    source, target = both
    jobs = await add_many(source, 5)
    await break_off(source, target, is_written=False)
    faulty = FaultyStore(source)
    faulty.fail_before("take_back", 1)
    with pytest.raises(StoreUnavailable):
        await give_up(faulty, target)

    assert (await move(source, target, wait=5)).is_over
    assert sorted(ids(await target.list_jobs(EVERYTHING))) == sorted(jobs)
    assert await source.list_jobs(EVERYTHING) == []


async def test_taking_back_twice_changes_nothing(both: tuple[Store, Store]) -> None:
    source, target = both
    await add_many(source, 3)
    await break_off(source, target, is_written=False)
    faulty = FaultyStore(source)
    faulty.lose_reply("take_back", 1)
    with pytest.raises(StoreUnavailable):
        await give_up(faulty, target)
    assert (await give_up(source, target)).taken_back == 0
    assert len(await source.list_jobs(EVERYTHING)) == 3


async def test_only_the_database_they_were_sent_to_can_be_asked(
    urls: tuple[str, str], both: tuple[Store, Store]
) -> None:
    source, _ = both
    await add(source)
    await cast(CopyStore, source).take_jobs("elsewhere", 10)
    with pytest.raises(ConfigError, match="on their way to elsewhere"):
        await take_back_jobs(*urls)


async def test_the_command_warns_when_the_target_is_not_asked(
    urls: tuple[str, str], both: tuple[Store, Store]
) -> None:
    source, _ = both
    await add_many(source, 3)
    await cast(CopyStore, source).take_jobs("elsewhere", 10)
    words = [sys.executable, "-m", "windrow", "db", "copy", "-d", urls[0], "--take-back", "--json"]
    preview = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert json.loads(preview.stdout) == {"is_done": False, "jobs": 3}
    assert await claim(source, 10) == []
    words.append("--yes")
    printed = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert printed.returncode == 0, printed.stderr
    assert "would run twice" in printed.stderr
    assert json.loads(printed.stdout)["taken_back"] == 3
    assert len(await claim(source, 10)) == 3
