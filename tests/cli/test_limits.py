"""`windrow limits` and the bound of `windrow queues set`, run as a person runs them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Windrow
from windrow import Queue
from windrow.errors import QueueFull
from windrow.queue.job import JobState


def read(windrow: Windrow, *words: str) -> Any:
    printed = windrow(*words, "--json")
    assert printed.returncode == 0, printed.stderr
    return json.loads(printed.stdout)


@pytest.fixture(autouse=True)
def jobs(store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        queue.set_limit("api", active=1, per_second=2.5, burst=10)
        for _ in range(3):
            queue.enqueue("fetch", limits=["api"])
        queue.enqueue("fetch", limits=["free"])


def test_limits_are_listed_in_a_table_that_fits(windrow: Windrow) -> None:
    printed = windrow("limits", "list", columns=80)
    assert printed.returncode == 0, printed.stderr
    header, *lines = printed.stdout.splitlines()
    assert header.split() == "key active per second burst in use ready held parked".split()  # noqa: SIM905
    assert [line.split() for line in lines] == [
        ["api", "1", "2.5", "10", "0", "1", "2", "-"],
        ["free", "-", "-", "-", "0", "1", "0", "-"],
    ]
    assert max(map(len, printed.stdout.splitlines())) <= 80


def test_limits_as_json(windrow: Windrow) -> None:
    [api, free] = read(windrow, "limits", "list")
    assert api == {
        "key": "api",
        "active": 1,
        "per_second": 2.5,
        "burst": 10,
        "in_use": 0,
        "ready": 1,
        "held": 2,
        "parked_until": None,
    }
    assert (free["key"], free["active"], free["ready"]) == ("free", None, 1)


def test_limit_that_is_set_lets_jobs_go_and_replaces_what_was_set(windrow: Windrow) -> None:
    printed = windrow("limits", "set", "api", "--active", "2")
    assert printed.stdout == "api: 2 active\n"
    [api, _] = read(windrow, "limits", "list")
    assert (api["per_second"], api["ready"], api["held"]) == (None, 2, 1)


def test_limit_that_cannot_be_is_explained(windrow: Windrow) -> None:
    printed = windrow("limits", "set", "api", "--burst", "5")
    assert printed.returncode == 1
    assert printed.stderr.splitlines()[0] == "error: burst needs per_second"


def test_removed_limit_holds_nothing(windrow: Windrow, store_url: str) -> None:
    preview = windrow("limits", "remove", "api").stdout
    assert preview == "would remove the limit of api, which holds 2 jobs: add --yes\n"
    assert windrow("limits", "remove", "api", "--yes").stdout == "removed the limit of api\n"
    gone = read(windrow, "limits", "remove", "nobody", "--yes")
    assert gone == {"is_done": True, "key": "nobody", "was_set": False}
    with Queue.sync(store_url) as queue:
        assert queue.counts()[JobState.READY] == 4


def test_parked_key_starts_nothing_until_it_goes_on(windrow: Windrow, store_url: str) -> None:
    assert windrow("limits", "park", "free", "30m").stdout.startswith("free is parked until 20")
    [_, free] = read(windrow, "limits", "list")
    assert free["parked_until"] is not None
    assert windrow("limits", "park", "free", "--off").stdout == "free goes on\n"
    assert read(windrow, "limits", "list")[1]["parked_until"] is None
    assert windrow("limits", "park", "free").returncode == 2


def test_queue_is_bounded_and_free_again(windrow: Windrow, store_url: str) -> None:
    words = ("queues", "set", "small", "--max-depth", "1")
    assert windrow(*words).stdout == "small: at most 1 jobs wait; when it is full: reject\n"
    with Queue.sync(store_url) as queue:
        queue.enqueue("work", queue="small")
        with pytest.raises(QueueFull):
            queue.enqueue("work", queue="small")
    assert read(windrow, *words, "--on-full", "drop_oldest") == {
        "name": "small",
        "max_depth": 1,
        "on_full": "drop_oldest",
    }
    assert windrow("queues", "set", "small").stdout == "small: any number of jobs may wait\n"
    assert windrow("queues", "set", "small", "--on-full", "explode").returncode == 2
