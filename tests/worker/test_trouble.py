"""How long a part of a worker waits while the database is away."""

from __future__ import annotations

import logging
from itertools import accumulate

import pytest

from windrow.errors import StoreUnavailable
from windrow.worker.service import LONGEST_WAIT, Trouble


def test_no_wait_is_much_longer_than_the_outage_so_far() -> None:
    trouble = Trouble("work")
    waits = [trouble.wait(StoreUnavailable()) for _ in range(1200)]

    assert waits[0] <= 0.1
    for so_far, wait in zip(accumulate(waits), waits[1:], strict=False):
        assert wait <= 1.5 * so_far + 0.1
    assert 0 < min(waits[10:]) <= max(waits) <= LONGEST_WAIT


def test_after_an_outage_it_begins_anew_and_each_was_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trouble = Trouble("work")
    with caplog.at_level(logging.WARNING):
        for _ in range(8):
            trouble.wait(StoreUnavailable())
        trouble.over()
        again = trouble.wait(StoreUnavailable())

    assert again <= 0.1
    first, over, second = (record.getMessage() for record in caplog.records)
    assert over == "work: works again after 8 tries"
    assert first == second
