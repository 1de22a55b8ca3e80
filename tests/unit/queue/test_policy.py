from __future__ import annotations

import hashlib
from typing import Any

import pytest

from windrow.queue.job import Priority
from windrow.queue.policy import backoff, exponential, steps, unique_key


def test_j3_processing_waits_30_seconds_doubled_each_time_up_to_600() -> None:
    wait = backoff("processing")
    assert [wait(n) for n in range(7)] == [30, 60, 120, 240, 480, 600, 600]


def test_exponential_stays_within_its_cap_and_jitter() -> None:
    wait = exponential(base=2, cap=100, jitter=0.1)
    assert all(2 * 0.9 <= wait(0) <= 2 * 1.1 for _ in range(200))
    assert all(90 <= wait(50) <= 110 for _ in range(200))
    assert wait(100_000) <= 110


def test_exponential_jitter_spreads() -> None:
    wait = exponential(base=10, jitter=0.5)
    assert len({wait(0) for _ in range(50)}) > 40


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        (5, [5, 5, 5]),
        (0.5, [0.5, 0.5, 0.5]),
        ([1, 10], [1, 10, 10]),
        ("none", [0, 0, 0]),
        (lambda attempts: attempts * 3, [0, 3, 6]),
    ],
)
def test_policies_can_be_written_in_many_ways(policy: Any, waits: list[float]) -> None:
    assert [backoff(policy)(n) for n in range(3)] == waits


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no back-off preset named 'fast'; there are: default"):
        backoff("fast")


def test_an_empty_list_of_waits_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        steps([])


def test_u4_unique_keys_end_in_16_hex_digits_of_the_identifier() -> None:
    path = "/home/ana/notizen/über uns.md"
    digest = hashlib.sha256(path.encode()).hexdigest()
    assert unique_key("file", "notes", path) == f"file:notes:{digest[:16]}"


def test_u5_priorities_have_names() -> None:
    named = [
        Priority.NOW,
        Priority.COMMAND,
        Priority.NOTE,
        Priority.ACTIVE_PROJECT,
        Priority.NORMAL,
        Priority.SCAN,
        Priority.LIBRARY,
        Priority.BULK,
    ]
    assert named == [10, 9, 8, 7, 5, 3, 1, 0]
