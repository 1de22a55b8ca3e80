"""The fault injector itself: it must fail exactly where it is told to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.faults import FaultyStore
from windrow.errors import StoreUnavailable


class Counting:
    """Something with verbs; it remembers what really happened."""

    capabilities = "all"

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.is_closed = False

    async def insert_jobs(self, what: Any, *, tx: Any = None) -> str:
        self.done.append(what)
        return f"inserted {what}"

    async def claim_jobs(self, what: Any) -> str:
        self.done.append(what)
        return f"claimed {what}"

    async def refuse(self) -> None:
        raise KeyError("no")

    async def close(self) -> None:
        self.is_closed = True

    def describe(self) -> str:
        return "plain"


@pytest.fixture
def real() -> Counting:
    return Counting()


@pytest.fixture
def faulty(real: Counting) -> Any:
    return FaultyStore(real)  # type: ignore[arg-type]


async def test_without_faults_everything_passes_through(faulty, real: Counting) -> None:
    assert await faulty.insert_jobs(1, tx=2) == "inserted 1"
    assert (faulty.capabilities, faulty.describe()) == ("all", "plain")
    with pytest.raises(AttributeError):
        faulty.no_such_thing  # noqa: B018


async def test_fault_before_reaches_nothing(faulty, real: Counting) -> None:
    faulty.fail_before("insert_jobs")
    with pytest.raises(StoreUnavailable):
        await faulty.insert_jobs(1)

    assert real.done == []
    assert await faulty.insert_jobs(2) == "inserted 2"


async def test_lost_reply_happens_and_raises(faulty, real: Counting) -> None:
    faulty.lose_reply("insert_jobs")
    with pytest.raises(StoreUnavailable):
        await faulty.insert_jobs(1)

    assert real.done == [1]


async def test_faults_are_planned_by_verb_and_number(faulty, real: Counting) -> None:
    faulty.fail_before("insert_jobs", call=2)
    faulty.lose_reply("claim_jobs", call=1)
    await faulty.insert_jobs("a")
    with pytest.raises(StoreUnavailable):
        await faulty.claim_jobs("b")
    with pytest.raises(StoreUnavailable):
        await faulty.insert_jobs("c")
    await faulty.claim_jobs("d")

    assert real.done == ["a", "b", "d"]


async def test_delayed_call_waits_for_the_event(faulty, real: Counting) -> None:
    event = asyncio.Event()
    faulty.delay("insert_jobs", until=event)
    waiting = asyncio.ensure_future(faulty.insert_jobs(1))
    await faulty.claim_jobs(2)
    assert real.done == [2]

    event.set()
    assert await waiting == "inserted 1"
    assert real.done == [2, 1]


async def test_call_may_be_delayed_by_seconds(faulty, real: Counting) -> None:
    faulty.delay("insert_jobs", until=0.001)

    assert await faulty.insert_jobs(1) == "inserted 1"


async def test_history_tells_what_became_of_each_call(faulty) -> None:
    faulty.lose_reply("insert_jobs", call=2)
    await faulty.insert_jobs(1)
    with pytest.raises(StoreUnavailable):
        await faulty.insert_jobs(2)
    with pytest.raises(KeyError):
        await faulty.refuse()

    assert [(c.verb, c.number, c.fault, c.outcome) for c in faulty.history] == [
        ("insert_jobs", 1, None, "returned"),
        ("insert_jobs", 2, "lost_reply", "StoreUnavailable"),
        ("refuse", 1, None, "KeyError"),
    ]
    assert faulty.calls("insert_jobs") == 2


async def outcomes_of(faulty: Any, count: int = 200) -> list[str | None]:
    for n in range(count):
        await asyncio.gather(faulty.insert_jobs(n), return_exceptions=True)
    return [call.fault for call in faulty.history]


async def test_random_faults_are_the_same_for_a_seed(real: Counting) -> None:
    seen = []
    for seed in (1, 1, 2):
        faulty: Any = FaultyStore(real)  # type: ignore[arg-type]
        faulty.at_random(seed, rate=0.3)
        seen.append(await outcomes_of(faulty))

    assert seen[0] == seen[1] != seen[2]
    assert set(seen[0]) == {None, "before", "lost_reply"}
    assert 30 < sum(fault is not None for fault in seen[0]) < 90


async def test_random_faults_keep_to_the_chosen_verbs_and_kinds(faulty) -> None:
    faulty.at_random(1, rate=1.0, kinds=["before"], verbs=["claim_jobs"])
    await faulty.insert_jobs(1)
    with pytest.raises(StoreUnavailable):
        await faulty.claim_jobs(2)

    faulty.heal()
    assert await faulty.claim_jobs(3) == "claimed 3"


async def test_closing_never_fails(faulty, real: Counting) -> None:
    faulty.at_random(1, rate=1.0)
    await faulty.close()

    assert real.is_closed


async def test_misspelt_verbs_and_past_calls_are_refused(faulty) -> None:
    with pytest.raises(ValueError, match="inzert"):
        faulty.fail_before("inzert")
    with pytest.raises(ValueError, match="describe"):
        faulty.at_random(1, 0.5, verbs=["describe"])
    await faulty.insert_jobs(1)
    with pytest.raises(ValueError, match="already"):
        faulty.lose_reply("insert_jobs", call=1)
