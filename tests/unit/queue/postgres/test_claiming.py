"""Where claims look: behind what was claimed, and behind what others are about to claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from tests.builders import claim, completion, row
from windrow.db.statements import Statement
from windrow.db.transactions import Executor
from windrow.queue import heads
from windrow.queue.postgres import claiming
from windrow.queue.postgres.claiming import START, Claimer, Look
from windrow.queue.postgres.rows import sql
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.records import Claim


@pytest.fixture(autouse=True)
def moments_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a store remembers for a moment is not forgotten because the machine is slow."""
    monkeypatch.setattr(claiming, "RESCAN_SECONDS", 3600)
    monkeypatch.setattr(heads, "LISTING_SECONDS", 3600)


class Asked:
    """Answers which queues have jobs, and counts how often it is asked."""

    def __init__(self, *queues: str) -> None:
        self.queues = queues
        self.times = 0

    async def fetch(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Any]:
        assert statement.name == "list_ready_queues"
        self.times += 1
        return [{"queue": queue, "priority": 5, "seq": 1} for queue in self.queues]


def place(look: Look | None) -> tuple[int, int]:
    assert look is not None
    [priority], [seq] = look.floor_priorities, look.floor_seqs
    return priority, seq


async def insert(store: PostgresStore, count: int, priority: int = 5) -> list[int]:
    """Their places in the line."""
    rows = [row(queue="q", priority=priority) for _ in range(count)]
    return [one.seq or 0 for one in await store.insert_jobs(rows)]


def claim_of(limit: int) -> Claim:
    return Claim(("q",), limit, 30, "worker")


async def look(store: PostgresStore, claim: Claim) -> Look:
    found = await store._claimer.look(store._database, claim, claim.limit, store.clock.now())
    assert found is not None
    return found


async def carry_out(store: PostgresStore, found: Look, claim: Claim) -> list[int]:
    """The places of what it brings."""
    values = {**found.values(claim), "now": store.clock.now()}
    rows = await store._database.fetch(sql("claim_jobs"), values)
    return [job.seq for job in store._claimer.note(rows, found, claim)]


async def test_claim_begins_behind_what_others_on_their_way_will_take(store: PostgresStore) -> None:
    seqs = await insert(store, 9)
    claim = claim_of(2)
    assert [job.seq for job in await store.claim_jobs(claim)] == seqs[:2]
    first, second, third = [await look(store, claim) for _ in range(3)]
    assert [place(one)[1] for one in (first, second, third)] == [seqs[1], seqs[3], seqs[5]]
    # In whatever order they come back, each job is taken once and the next begins behind all.
    assert await carry_out(store, third, claim) == seqs[6:8]
    assert await carry_out(store, first, claim) == seqs[2:4]
    assert await carry_out(store, second, claim) == seqs[4:6]
    assert place(await look(store, claim)) == (5, seqs[7])


async def test_claim_that_took_better_jobs_leaves_none_behind(store: PostgresStore) -> None:
    """The other began where it would have ended without them."""
    seqs = await insert(store, 9)
    claim = claim_of(2)
    await store.claim_jobs(claim)
    first, second = await look(store, claim), await look(store, claim)
    better = await insert(store, 1, priority=9)
    assert await carry_out(store, second, claim) == [*better, seqs[4]]
    assert await carry_out(store, first, claim) == seqs[2:4]
    left = await store.claim_jobs(claim_of(9))
    assert [job.seq for job in left] == seqs[5:9]


async def test_gap_before_a_claim_that_began_further_on_is_looked_into(
    store: PostgresStore,
) -> None:
    seqs = await insert(store, 9)
    claim = claim_of(2)
    await store.claim_jobs(claim)
    first, second = await look(store, claim), await look(store, claim)
    better = await insert(store, 1, priority=9)
    assert await carry_out(store, first, claim) == [*better, seqs[2]]
    assert await carry_out(store, second, claim) == seqs[4:6]
    assert [job.seq for job in await store.claim_jobs(claim_of(1))] == [seqs[3]]


async def test_job_that_comes_before_the_place_of_the_next_claim_is_seen_by_it(
    store: PostgresStore,
) -> None:
    """What is on its way was asked for more jobs than there are."""
    await insert(store, 3)
    await store.claim_jobs(claim_of(2))
    await look(store, claim_of(50))
    new = await insert(store, 1)
    assert place(await look(store, claim_of(1))) == START
    assert new[0] in [job.seq for job in await store.claim_jobs(claim_of(9))]


async def test_claim_that_failed_is_forgotten(store: PostgresStore) -> None:
    seqs = await insert(store, 6)
    claim = claim_of(2)
    await store.claim_jobs(claim)
    await look(store, claim)  # never carried out
    later = await look(store, claim)
    store._claimer.floors.drop_all()
    assert place(await look(store, claim)) == START
    assert await carry_out(store, later, claim) == seqs[4:6]
    rest = await store.claim_jobs(claim_of(9))
    assert [job.seq for job in rest] == seqs[2:4]


async def test_busy_worker_remembers_for_a_moment_which_queues_have_jobs() -> None:
    claimer, asked = Claimer(), Asked("a")
    claim = Claim(None, 10, 30, "worker")
    looks = [await claimer.look(asked, claim, 10, None, is_busy=True) for _ in range(3)]
    assert asked.times == 1
    assert looks[2] is not None
    assert looks[2].may_have_more(9)  # it may be that another queue has some by now


async def test_queues_are_asked_for_again_when_too_few_jobs_came() -> None:
    claimer, asked = Claimer(), Asked("a")
    claim = Claim(None, 10, 30, "worker")
    look = await claimer.look(asked, claim, 10, None, is_busy=True)
    assert look is not None
    claimer.note([], look, claim)
    await claimer.look(asked, claim, 10, None, is_busy=True)
    assert asked.times == 2


async def test_idle_worker_asks_each_time_which_queues_have_jobs() -> None:
    claimer, asked = Claimer(), Asked("a")
    for _ in range(2):
        await claimer.look(asked, Claim(None, 10, 30, "worker"), 10, None)
    assert asked.times == 2


async def test_queue_that_got_jobs_meanwhile_is_claimed_with_the_next_end(
    store: PostgresStore,
) -> None:
    everywhere = Claim(None, 2, 30, "worker")
    await insert(store, 3)
    first = await store.claim_jobs(everywhere)
    await store.insert_jobs([row(queue="new")])
    finished = await store.finish_jobs([completion(job) for job in first], claim=everywhere)
    assert {job.queue for job in finished.claimed} == {"q", "new"}


async def test_claims_of_very_many_queues_look_at_few_and_take_the_best_first(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each claim would read the first jobs of every queue."""
    urgent = [f"queue-{n}" for n in range(0, 300, 7)]
    rows = [row(queue=f"queue-{n}", priority=5) for n in range(300)]
    rows += [row(queue=queue, priority=9) for queue in urgent for _ in range(2)]
    await store.insert_jobs(rows)
    looked_at: list[int] = []
    share_heads = claiming._share_heads

    async def spy(
        executor: Executor, asked: Claim, look: Look, best: heads.Place | None, now: datetime | None
    ) -> Sequence[Any]:
        looked_at.append(len(look.queues))
        return await share_heads(executor, asked, look, best, now)

    monkeypatch.setattr(claiming, "_share_heads", spy)
    claimed = []
    while jobs := await claim(store, 20):
        claimed += jobs
    priorities = [job.priority for job in claimed]

    assert len({job.id for job in claimed}) == len(rows)
    assert priorities == sorted(priorities, reverse=True)
    assert max(looked_at[:8]) <= 40, looked_at


async def test_queues_that_are_listed_anew_meanwhile_are_looked_at_once(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(queue=f"queue-{n}") for n in range(200)]
    await store.insert_jobs(rows)
    share_heads = claiming._share_heads
    looks: list[Look] = []

    async def spy(
        executor: Executor, asked: Claim, look: Look, best: heads.Place | None, now: datetime | None
    ) -> Sequence[Any]:
        looks.append(look)
        if len(looks) == 1:
            [known] = store._claimer._heads.values()
            known.relist([(one.queue, 5, 0) for one in rows], 0, with_taken=True)
            return []
        return await share_heads(executor, asked, look, best, now)

    monkeypatch.setattr(claiming, "_share_heads", spy)
    assert len(await claim(store, 20)) == 20
    assert [len(look.queues) - len(set(look.queues)) for look in looks] == [0] * len(looks)


async def test_queues_whose_first_jobs_are_of_another_kind_hide_nothing(
    store: PostgresStore,
) -> None:
    await store.insert_jobs([row("other", queue=f"queue-{n}", priority=9) for n in range(200)])
    wanted = [row("mine", queue=f"queue-{n}") for n in range(150, 160)]
    await store.insert_jobs(wanted)

    claimed = await claim(store, 5, kinds=("mine",)) + await claim(store, 50, kinds=("mine",))
    assert sorted(job.id for job in claimed) == sorted(one.id for one in wanted)
