"""`windrow jobs clean` (U12) and `windrow db prune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Windrow
from windrow import Queue


@pytest.fixture
def finished(store_url: str) -> None:
    """Three completed jobs and a failed one, just now, beside a ready one."""
    with Queue.sync(store_url) as queue:
        for n in range(4):
            queue.enqueue("work", {"n": n}, queue="web", max_attempts=1)
        lease = queue.claim(["web"], limit=4)
        for job in lease.jobs[1:]:
            lease.complete(job)
        lease.fail(lease.jobs[0], "boom")
        queue.enqueue("work", queue="web")


def test_without_yes_jobs_are_counted_and_none_is_deleted(windrow: Windrow, finished: None) -> None:
    shown = windrow("jobs", "clean")
    assert shown.returncode == 0, shown.stderr
    assert "4 jobs would be deleted: add --yes" in shown.stdout
    assert json.loads(windrow("jobs", "clean", "--json").stdout)["is_done"] is False
    assert len(json.loads(windrow("jobs", "list", "--json").stdout)) == 5


def test_clean_deletes_finished_jobs_of_a_state(windrow: Windrow, finished: None) -> None:
    found = json.loads(windrow("jobs", "clean", "--state", "completed", "-y", "--json").stdout)
    assert found == {"jobs": 3, "is_done": True, "queues": {"web": {"completed": 3}}}
    left = json.loads(windrow("jobs", "list", "--json").stdout)
    assert sorted(job["state"] for job in left) == ["failed", "ready"]


def test_younger_jobs_and_other_queues_stay(windrow: Windrow, finished: None) -> None:
    assert "deleted 0 jobs" in windrow("jobs", "clean", "--older-than", "2h", "--yes").stdout
    assert "deleted 0 jobs" in windrow("jobs", "clean", "--queue", "other", "--yes").stdout
    assert "deleted 4 jobs" in windrow("jobs", "clean", "--older-than", "0", "--yes").stdout


def test_bad_durations_and_states_are_one_line(windrow: Windrow, finished: None) -> None:
    assert windrow("jobs", "clean", "--older-than", "soon").returncode == 2
    refused = windrow("jobs", "clean", "--state", "ready")
    assert refused.returncode == 1
    assert "only finished jobs" in refused.stderr


def test_db_prune_says_what_it_removes(
    windrow: Windrow, finished: None, store_url: str, tmp_path: Path
) -> None:
    prune = ["db", "prune", "--archive", str(tmp_path / "archive")]
    assert "would remove up to 0 jobs that are past their time: add --yes" in windrow(*prune).stdout
    with Queue.sync(store_url) as queue:
        job = queue.enqueue("short", queue="short", retention=0)
        lease = queue.claim(["short"])
        lease.complete(lease.jobs[0])
        assert json.loads(windrow(*prune, "--json").stdout) == {"is_done": False, "jobs": 1}
        assert queue.get(job.id).state == "completed"
    pruned = json.loads(windrow(*prune, "--yes", "--json").stdout)
    assert pruned.pop("jobs") in (0, 1)  # Postgres removes most jobs by the hour
    assert pruned == {"is_done": True, "groups": 0}
    assert "removed 0 jobs and 0 groups" in windrow("db", "prune", "--yes").stdout
