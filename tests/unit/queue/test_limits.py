"""The choice between held jobs: room, rates, and turns. Nothing here touches a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import StoreUnavailable
from windrow.queue.limits import WINDOW, Held, Limit, choose_jobs, make_room

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def jobs(count: int, *keys: str) -> list[Held]:
    return [Held(f"{keys[0]}-{n}", keys) for n in range(count)]


def chosen(limits: Sequence[Limit], *waiting: Sequence[Held], most: int = 1000) -> list[str]:
    known = {limit.key: limit for limit in limits}
    found = choose_jobs(known, {held[0].keys[0]: held for held in waiting}, NOW, most)
    return [job.id for job in found]


def test_no_more_are_chosen_than_there_is_room_for() -> None:
    assert chosen([Limit("a", active=5, in_use=3)], jobs(9, "a")) == ["a-0", "a-1"]


def test_key_over_its_limit_has_no_room() -> None:
    assert chosen([Limit("a", active=2, in_use=7)], jobs(9, "a")) == []


def test_job_whose_second_key_is_full_is_passed_over() -> None:
    waiting = [Held("x", ("a", "full")), Held("y", ("a", "free")), Held("z", ("a", "full"))]
    limits = [Limit("a"), Limit("full", active=1, in_use=1), Limit("free", active=1)]

    assert chosen(limits, waiting) == ["y"]


def test_key_that_is_not_locked_counts_as_full() -> None:
    assert chosen([Limit("a")], [Held("x", ("a", "unknown"))]) == []


def test_unlimited_key_has_a_window_of_ready_jobs() -> None:
    assert len(chosen([Limit("a")], jobs(200, "a"))) == WINDOW
    assert len(chosen([Limit("a", ready=5)], jobs(200, "a"))) == WINDOW - 5
    assert chosen([Limit("a", ready=WINDOW)], jobs(200, "a")) == []
    assert len(chosen([Limit("a", active=100)], jobs(200, "a"))) == 100


def test_keys_take_turns() -> None:
    limits = [Limit("a"), Limit("b"), Limit("shared", active=40)]
    order = chosen(limits, jobs(50, "a", "shared"), jobs(50, "b", "shared"))

    assert Counter(name[0] for name in order) == {"a": 20, "b": 20}
    assert Counter(name[0] for name in order[:8]) == {"a": 4, "b": 4}


def test_turns_go_on_from_one_choice_to_the_next() -> None:
    limits = [Limit(key) for key in "abc"] + [Limit("shared", active=1)]
    order = []
    for _ in range(9):
        waiting = [jobs(9, key, "shared") for key in "abc"]
        order += [name[0] for name in chosen(limits, *waiting)]
        for limit in limits:  # the job has ended
            limit.ready = limit.in_use = 0

    assert order == list("abcabcabc")


def test_key_that_stayed_behind_gets_one_turn_more_and_not_a_thousand() -> None:
    limits = [Limit("a", turn=1000.0), Limit("b", turn=0.0), Limit("shared", active=10)]
    order = chosen(limits, jobs(50, "a", "shared"), jobs(50, "b", "shared"))

    assert Counter(name[0] for name in order)["b"] == pytest.approx(5, abs=1)


def test_parked_key_has_no_room_until_its_time() -> None:
    assert chosen([Limit("a", parked_until=NOW + timedelta(seconds=1))], jobs(1, "a")) == []
    assert chosen([Limit("a", parked_until=NOW)], jobs(1, "a")) == ["a-0"]


def test_bucket_begins_full_and_burst_is_a_seconds_worth() -> None:
    limit = Limit("a", per_second=2.5)
    limit.refill(NOW)

    assert (limit.tokens, limit.room(NOW)) == (3.0, 3)


def test_bucket_and_ready_jobs_together_are_no_more_than_the_burst() -> None:
    limit = Limit("a", per_second=10, burst=5, ready=3, tokens=0.0, refilled_at=NOW)
    limit.refill(NOW + timedelta(hours=1))

    assert limit.tokens == 2


def test_clock_that_goes_back_takes_no_tokens_and_gives_none_twice() -> None:
    limit = Limit("a", per_second=1, burst=9, tokens=2.0, refilled_at=NOW)
    limit.refill(NOW - timedelta(hours=1))

    assert (limit.tokens, limit.refilled_at) == (2.0, NOW)


@given(
    per_second=st.floats(0.1, 50),
    burst=st.integers(1, 20),
    steps=st.lists(st.tuples(st.floats(0, 3), st.booleans(), st.booleans()), max_size=60),
)
def test_starts_in_any_time_are_at_most_the_burst_and_what_the_rate_gives(
    per_second: float, burst: int, steps: list[tuple[float, bool, bool]]
) -> None:
    limit = Limit("a", per_second=per_second, burst=burst)
    starts: list[float] = []
    at = 0.0
    for wait, is_claimed, is_evaluated in steps:
        at += wait
        now = NOW + timedelta(seconds=at)
        if is_evaluated:
            limit.refill(now)
            limit.ready += len(choose_jobs({"a": limit}, {"a": jobs(100, "a")}, now, 100))
        if is_claimed:
            starts += [at] * limit.ready
            if limit.ready:
                limit.started, limit.last_started_at = limit.started + limit.ready, now
            limit.ready = 0
    for n, first in enumerate(starts):
        for m, last in enumerate(starts[n:], 1):
            assert m <= burst + per_second * (last - first) + 0.001


@pytest.mark.parametrize(
    ("limit", "surplus"),
    [
        (Limit("a", active=3, in_use=5, ready=4), 2),
        (Limit("a", active=3, in_use=9, ready=4), 4),
        (Limit("a", active=3, in_use=3, ready=3), 0),
        (Limit("a", per_second=1, burst=1, in_use=3, ready=3), 2),
        (Limit("a", in_use=3, ready=3), 0),
    ],
)
def test_surplus_is_what_is_ready_over_the_limit(limit: Limit, surplus: int) -> None:
    assert limit.surplus() == surplus


class Spy:
    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[Any] = []
        self.error = error

    async def promote_jobs(self, keys: Sequence[str] | None = None, limit: int = 1000) -> int:
        self.asked.append(keys)
        if self.error is not None:
            raise self.error
        return 1


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        ([(), ()], []),
        ([("b",), ("a",), ()], [["a", "b"]]),
        ([("a",), ("a", "b")], [None]),
    ],
)
async def test_room_is_made_where_jobs_left_it(keys: Any, asked: list[Any]) -> None:
    spy = Spy()
    await make_room(spy, keys)

    assert spy.asked == asked


async def test_promotion_that_fails_does_not_fail_what_was_done_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await make_room(Spy(StoreUnavailable()), [("a",)]) == 0
    assert "done later" in caplog.text
