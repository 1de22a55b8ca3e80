"""`windrow groups`, run as a person runs it."""

from __future__ import annotations

import pytest

from tests.builders import UNKNOWN_ID
from tests.cli.conftest import Read, Windrow
from windrow import NewJob, Queue


@pytest.fixture
def groups(store_url: str) -> list[str]:
    """An ended group and one with a running, a ready and a completed job; the newest first."""
    with Queue.sync(store_url) as queue:
        made = [queue.create_group().id for _ in range(2)]
        queue.enqueue("work", group=made[0])
        lease = queue.claim()
        lease.complete(lease.jobs[0])
        queue.enqueue_many([NewJob("work", group=made[1]) for _ in range(3)])
        lease = queue.claim(limit=2)
        lease.complete(lease.jobs[0])
        return [made[1], made[0]]


def test_groups_are_listed_newest_first(windrow: Windrow, read: Read, groups: list[str]) -> None:
    found = read("groups", "list")
    assert [(one["id"], one["state"], one["pending"]) for one in found] == [
        (groups[0], "active", 2),
        (groups[1], "completed", 0),
    ]
    assert [one["id"] for one in read("groups", "list", "--state", "active")] == groups[:1]
    assert [one["id"] for one in read("groups", "list", "--after", groups[0])] == groups[1:]
    first = windrow("groups", "list", "--limit", "1", columns=80).stdout.splitlines()
    assert first[0].split() == ["id", "state", "left", "done", "failed", "cancelled", "age"]
    assert first[1].split()[:6] == [groups[0], "active", "2", "1", "0", "0"]
    assert first[2] == f"more: --after {groups[0]}"
    assert max(map(len, first)) <= 80


def test_show_counts_the_members_by_state(windrow: Windrow, read: Read, groups: list[str]) -> None:
    counts = {"ready": 1, "active": 1, "completed": 1}
    assert read("groups", "show", groups[0])["counts"] == counts
    assert read("groups", "show", groups[0][:-2])["id"] == groups[0]
    assert len(read("jobs", "list", "--group", groups[0][:-2])) == 3
    assert read("jobs", "cancel", "--group", groups[0][:-2])["states"] == {"active": 1, "ready": 1}
    assert f"jobs list --group {groups[0]}" in windrow("groups", "show", groups[0]).stdout


def test_pause_and_resume(windrow: Windrow, read: Read, groups: list[str]) -> None:
    assert windrow("groups", "pause", groups[0]).stdout == f"paused {groups[0]}: 2 jobs left\n"
    assert [one["id"] for one in read("groups", "list", "--paused")] == groups[:1]
    assert " paused " in windrow("groups", "list").stdout
    assert read("groups", "resume", groups[0])["is_paused"] is False
    assert read("groups", "list", "--paused") == []


def test_cancel_shows_what_it_would_do_until_yes(
    windrow: Windrow, read: Read, groups: list[str]
) -> None:
    shown = windrow("groups", "cancel", groups[0]).stdout
    assert shown == "1 jobs would be cancelled and 1 running ones told: add --yes\n"
    assert read("groups", "cancel", groups[0])["is_done"] is False
    assert read("groups", "show", groups[0])["counts"] == {"ready": 1, "active": 1, "completed": 1}
    assert read("groups", "cancel", groups[0], "--yes")["counts"]["cancelled"] == 1
    assert "nothing to cancel" in windrow("groups", "cancel", groups[1]).stdout
    assert "nothing to cancel" in windrow("groups", "cancel", groups[1], "--yes").stdout
    assert read("groups", "cancel", groups[1], "--yes")["is_done"] is False


@pytest.mark.parametrize("command", ["show", "pause", "resume", "cancel"])
@pytest.mark.parametrize("unknown", [UNKNOWN_ID, "nobody"])
def test_a_group_that_is_not_there_is_one_line(
    windrow: Windrow, command: str, unknown: str
) -> None:
    printed = windrow("groups", command, unknown)
    assert printed.returncode == 1
    assert printed.stderr.splitlines()[0] == f"error: no such group: {unknown}"


def test_a_state_that_groups_do_not_have_is_explained(windrow: Windrow) -> None:
    printed = windrow("groups", "list", "--state", "ready")
    assert printed.returncode == 1
    assert "the states are: active, completed, cancelled" in printed.stderr
