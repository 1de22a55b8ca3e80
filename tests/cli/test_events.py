"""`windrow events`, run as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Windrow
from windrow import Queue


@pytest.fixture
def job_id(store_url: str) -> str:
    """A job that has been enqueued, started and completed."""
    with Queue.sync(store_url) as queue:
        job = queue.enqueue("resize", {"path": "a.png"}, queue="images")
        lease = queue.claim("images")
        lease.progress(lease.jobs[0], 50, "[half]")
        lease.complete(lease.jobs[0])
        return str(job.id)


def lines(printed: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert printed.returncode == 0, printed.stderr
    return [json.loads(line) for line in printed.stdout.splitlines()]


def test_events_are_printed_oldest_first(windrow: Windrow, job_id: str) -> None:
    printed = windrow("events", columns=40)
    shown = printed.stdout.splitlines()

    assert printed.returncode == 0, printed.stderr
    assert [line.split()[2] for line in shown[:-1]] == [
        *("job.created", "job.started", "job.progress", "job.finished")
    ]
    assert all(f"{job_id}  images  resize" in line for line in shown[:-1])
    assert "message=[half]" in shown[2]
    assert shown[-1].startswith("more: --after ")


def test_events_go_on_behind_a_cursor_as_json_lines(windrow: Windrow, job_id: str) -> None:
    events = lines(windrow("events", "--json"))
    rest = lines(windrow("events", "--after", events[1]["cursor"], "--json"))

    assert [event["type"] for event in events][1:3] == ["job.started", "job.progress"]
    assert rest == events[2:]
    assert {event["job_id"] for event in events} == {job_id}


def test_events_are_chosen_by_type_and_job(windrow: Windrow, job_id: str) -> None:
    wanted = ("--type", "job.created", "--type", "job.finished", "--job", job_id)

    assert [event["state"] for event in lines(windrow("events", *wanted, "--json"))] == [
        "ready",
        "completed",
    ]
    assert lines(windrow("events", "--queue", "other", "--json")) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [(("--after", "yesterday"), "no cursor"), (("--type", "job.born"), "no event type")],
)
def test_what_cannot_be_meant_is_refused(windrow: Windrow, words: tuple[str], why: str) -> None:
    printed = windrow("events", *words)

    assert printed.returncode == 1
    assert why in printed.stderr
    assert "Traceback" not in printed.stderr


def test_following_tells_what_happens_now(store_url: str, tmp_path: Path) -> None:
    following = subprocess.Popen(
        [sys.executable, "-m", "windrow", "events", "--follow", "--after", "0", "--json"],
        env=os.environ | {"WINDROW_DATABASE_URL": store_url},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        with Queue.sync(store_url) as queue:
            assert following.stdout is not None
            for _ in range(3):
                job = queue.enqueue("work")
                assert json.loads(following.stdout.readline())["job_id"] == job.id
    finally:
        following.kill()
        following.communicate()
