"""Findings that no test can provoke for real: a full disk, a network file system, another clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import OpenAnother
from windrow.clock import FakeClock
from windrow.queue.queue import Queue
from windrow.queue.records import OpenTransaction, Vitals, WorkerInfo
from windrow.services import health
from windrow.services.examination import Examination, examine

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def found(check: health.Check, *, skew: float = 0.0, **vitals: Any) -> list[health.Finding]:
    seen = Examination(vitals=Vitals(**({"now": NOW} | vitals)), skew=skew)
    return list(check(seen))


@pytest.mark.parametrize(
    ("free", "levels"),
    [(10**12, []), (200 * health.MIB, ["warning"]), (health.MIB, ["error"]), (None, [])],
)
def test_disk_that_fills_up(free: int | None, levels: list[str]) -> None:
    assert [one.level for one in found(health.check_disk, free_bytes=free)] == levels


def test_file_on_a_network_file_system() -> None:
    [one] = found(health.check_file_system, network_file_system="nfs4")
    assert "nfs4" in one.what
    assert found(health.check_file_system) == []


def test_journal_that_is_not_a_log() -> None:
    [one] = found(health.check_log, journal_mode="delete")
    assert one.level == "error"
    assert found(health.check_log, journal_mode="wal", log_bytes=1) == []


def test_prepared_transaction_is_ended_by_its_own_words() -> None:
    held = OpenTransaction("order-7", True, "ana", "", "prepared", 3600, "")
    [one] = found(health.check_transactions, oldest_transaction=held)
    assert "ROLLBACK PREPARED 'order-7'" in one.fix


async def test_clock_of_the_database_that_is_wrong(open_another: OpenAnother) -> None:
    ahead = FakeClock(datetime.now(UTC) + timedelta(hours=1))
    seen = await examine(Queue(await open_another(ahead)))
    [one] = health.check_clock(seen)
    assert "ahead of" in one.what
    behind = FakeClock(datetime.now(UTC) - timedelta(hours=1))
    [one] = health.check_clock(await examine(Queue(await open_another(behind))))
    assert "behind" in one.what


def test_worker_of_which_a_part_keeps_failing() -> None:
    times: dict[str, Any] = {"started_at": NOW, "seen_at": NOW, "expires_at": NOW}
    row: dict[str, Any] = {"host": "h", "pid": 1, "queues": None, "kinds": None, "concurrency": 1}
    broken = WorkerInfo(id="1", name="a", trouble="its completer failed", **row, **times)
    works = WorkerInfo(id="2", name="b", **row, **times)
    seen = Examination(vitals=Vitals(now=NOW), workers=[broken, works])
    [one] = health.check_broken_workers(seen)
    assert (one.level, "`a`" in one.what) == ("error", True)
    assert "its completer failed" in one.cause
