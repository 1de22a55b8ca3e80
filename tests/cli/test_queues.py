"""`windrow queues list|stats|pause|resume`, run as a person runs them."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Read, Windrow
from windrow import NewJob, Queue
from windrow.queue.job import JobState


@pytest.fixture(autouse=True)
def jobs(store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        queue.enqueue("scrape", queue="web", max_attempts=1)
        lease = queue.claim(["web"])
        lease.fail(lease.jobs[0], ValueError("404"))
        queue.enqueue_many([NewJob("scrape", queue="web"), NewJob("index", queue="index")])
        queue.set_queue("web", max_depth=10, on_full="drop_oldest")
        queue.set_retention("web", completed=60)


def test_queues_are_listed_with_their_counts(windrow: Windrow, read: Read) -> None:
    assert {one["name"]: one["counts"] for one in read("queues", "list")} == {
        "index": {"ready": 1},
        "web": {"ready": 1, "failed": 1},
    }
    header, *lines = windrow("queues", "list", columns=80).stdout.splitlines()
    assert header.split() == ["queue", "paused", "ready", "failed", "oldest"]
    assert [line.split()[:3] for line in lines] == [["index", "1", "0"], ["web", "1", "1"]]


def test_stats_tell_all_of_a_queue(windrow: Windrow, read: Read) -> None:
    [web] = read("queues", "stats", "web")
    assert web["info"]["counts"] == {"ready": 1, "failed": 1}
    assert [(one["kind"], one["count"]) for one in web["next_kinds"]] == [("scrape", 1)]
    assert [(one["error"], one["count"]) for one in web["errors"]] == [("ValueError: 404", 1)]
    assert web["retention"]["completed"] == 60
    printed = windrow("queues", "stats", columns=80).stdout
    for part in ("10 jobs may wait, then drop_oldest", "completed 60 s", "1 × ValueError: 404"):
        assert part in printed
    assert len(read("queues", "stats")) == 2
    assert read("queues", "stats", "nobody")[0]["info"]["counts"] == {}


def test_paused_queues_start_nothing_until_they_are_resumed(
    windrow: Windrow, read: Read, store_url: str
) -> None:
    printed = windrow("queues", "pause", "web", "index")
    assert printed.stdout == "paused web: 1 ready, 0 running\npaused index: 1 ready, 0 running\n"
    with Queue.sync(store_url) as queue:
        assert not queue.claim().jobs
        assert read("queues", "resume", "web")[0]["is_paused"] is False
        assert queue.claim().jobs[0].queue == "web"
        assert queue.counts("index")[JobState.READY] == 1
    assert windrow("queues", "resume", "index").stdout == "resumed index: 1 ready\n"
