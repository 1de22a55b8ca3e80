"""Who is rung for what, and what a bell says of it."""

from __future__ import annotations

from windrow.queue.bells import Belfry, Bell, end_of, work_in

LONG = 20.0  # seconds; only a failing test waits for it


async def test_a_bell_names_all_the_queues_it_has_rung_for_and_forgets_them() -> None:
    belfry, bell = Belfry(), Bell()
    belfry.hang(bell, work_in(None))
    belfry.ring(["a"])
    belfry.ring(["b"])
    assert await bell.wait(LONG)
    assert set(bell.take_queues() or ()) == {"a", "b"}
    assert bell.take_queues() is None


async def test_a_bell_names_only_the_queues_that_were_wished_for() -> None:
    belfry, bell = Belfry(), Bell()
    belfry.hang(bell, work_in(["a"]))
    belfry.ring(["a", "b"])
    assert await bell.wait(LONG)
    assert bell.take_queues() == ("a",)


async def test_a_bell_that_also_rang_for_whatever_there_is_names_no_queue() -> None:
    belfry, bell = Belfry(), Bell()
    belfry.hang(bell, work_in(None))
    belfry.ring(["a"])
    belfry.ring_workers()
    belfry.ring(["b"])
    assert await bell.wait(LONG)
    assert bell.take_queues() is None


async def test_the_end_of_a_job_rings_without_naming_a_queue() -> None:
    belfry, bell = Belfry(), Bell()
    belfry.hang(bell, end_of(["x"]))
    belfry.ring(["a"])
    assert not await bell.wait(0.01)
    belfry.ring(job_ids=["x"])
    assert await bell.wait(LONG)
    assert bell.take_queues() is None
