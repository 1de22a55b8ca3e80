"""report_progress: fenced, and the percentage never goes back."""

from __future__ import annotations

from tests.builders import add_and_claim, add_many, claim, claim_one, complete, get
from windrow.clock import FakeClock
from windrow.ids import new_id
from windrow.queue.job import Job, Progress
from windrow.queue.records import ProgressReport
from windrow.queue.store import Store


def report(job: Job, percent: int | None = None, message: str | None = None, **counters: int):
    assert job.lease_token is not None
    return ProgressReport(job.id, job.lease_token, percent, message, counters)


async def progress_of(store: Store, job: Job) -> Progress:
    progress = (await get(store, job.id)).progress
    assert progress is not None
    return progress


async def test_progress_is_read_back(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    clock.advance(3)
    lost = await store.report_progress([report(job, 40, "page 4 of 10", pages=4, errors=0)])

    assert lost == ()
    assert await progress_of(store, job) == Progress(
        40, "page 4 of 10", {"pages": 4, "errors": 0}, clock.now()
    )


async def test_percentage_never_goes_back(store: Store) -> None:
    job = await add_and_claim(store)
    seen = []
    for percent in (10, 50, 30, 50, 0, 51, 100, 99):
        await store.report_progress([report(job, percent)])
        seen.append((await progress_of(store, job)).percent)

    assert seen == [10, 50, 50, 50, 50, 51, 100, 100]


async def test_lower_percentage_leaves_only_the_percentage(store: Store) -> None:
    job = await add_and_claim(store)
    await store.report_progress([report(job, 50, "half", a=1)])
    await store.report_progress([report(job, 20, "looking again", a=2)])
    progress = await progress_of(store, job)

    assert (progress.percent, progress.message, progress.counters) == (
        50,
        "looking again",
        {"a": 2},
    )


async def test_no_percentage_leaves_it(store: Store) -> None:
    job = await add_and_claim(store)
    await store.report_progress([report(job, 50)])
    await store.report_progress([report(job, None, "still busy")])
    progress = await progress_of(store, job)

    assert (progress.percent, progress.message) == (50, "still busy")


async def test_first_report_without_a_percentage_starts_at_zero(store: Store) -> None:
    job = await add_and_claim(store)
    await store.report_progress([report(job, None, "starting")])

    assert (await progress_of(store, job)).percent == 0


async def test_counters_are_merged_over_the_former_ones(store: Store) -> None:
    job = await add_and_claim(store)
    await store.report_progress([report(job, 1, pages=1, links=7)])
    await store.report_progress([report(job, 2, pages=2, errors=1)])

    assert (await progress_of(store, job)).counters == {"pages": 2, "links": 7, "errors": 1}


async def test_ugly_messages_and_counter_names_are_kept(store: Store) -> None:
    job = await add_and_claim(store)
    name = """a.b "c" 'd' $[0] 🚜"""
    await store.report_progress([report(job, 1, "עבר 漢字 🚜 'x' \"y\"", **{name: 2**40})])
    await store.report_progress([report(job, 1, None, other=1)])

    assert (await progress_of(store, job)).counters == {name: 2**40, "other": 1}


async def test_stale_token_changes_nothing(store: Store, clock: FakeClock) -> None:
    """N2: the worker whose lock was lost is told."""
    stale = await add_and_claim(store)
    await store.report_progress([report(stale, 10, "mine")])
    clock.advance(61)
    await store.rescue_jobs()
    assert await store.report_progress([report(stale, 20)]) == (stale.id,)

    fresh = await claim_one(store)
    assert await store.report_progress([report(stale, 30, "no")]) == (stale.id,)
    progress = await progress_of(store, fresh)
    assert (progress.percent, progress.message) == (10, "mine")


async def test_finished_and_unknown_jobs_are_lost(store: Store) -> None:
    job = await add_and_claim(store)
    await complete(store, job)
    unknown = ProgressReport(new_id(), new_id(), 5)

    assert set(await store.report_progress([report(job, 10), unknown])) == {job.id, unknown.id}
    assert (await get(store, job.id)).progress is None


async def test_good_reports_are_kept_beside_stale_ones(store: Store) -> None:
    await add_many(store, 3)
    done, *rest = await claim(store, 3)
    await complete(store, done)
    lost = await store.report_progress([report(job, 30) for job in (rest[0], done, rest[1])])

    assert lost == (done.id,)
    assert [(await progress_of(store, job)).percent for job in rest] == [30, 30]


async def test_nothing_to_report_is_no_error(store: Store) -> None:
    assert await store.report_progress([]) == ()


async def test_two_reports_of_one_job_in_a_call_count_in_order(store: Store) -> None:
    job = await add_and_claim(store)
    await store.report_progress(
        [report(job, 10, "first", a=1, b=1), report(job, 20, "second", a=2)]
    )
    progress = await progress_of(store, job)

    assert (progress.percent, progress.message) == (20, "second")
    assert progress.counters == {"a": 2, "b": 1}


async def test_progress_goes_on_in_the_next_run(store: Store, clock: FakeClock) -> None:
    job = await add_and_claim(store)
    await store.report_progress([report(job, 60)])
    clock.advance(61)
    await store.rescue_jobs()
    again = await claim_one(store)
    await store.report_progress([report(again, 5)])

    assert (await progress_of(store, again)).percent == 60
