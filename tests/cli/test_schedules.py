"""`windrow schedules`, run as a person runs it."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Windrow
from windrow import Queue


@pytest.fixture(autouse=True)
def schedules(store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        queue.schedule("tidy", "tidy", every=3600)
        queue.schedule(
            "nightly report",
            "report",
            {"ü": 1},
            cron="30 2 * * MON-FRI",
            timezone="America/Argentina/Buenos_Aires",
            queue="reports",
            headers={"trace": "1"},
        )


def test_list_shows_a_table_that_fits(windrow: Windrow) -> None:
    printed = windrow("schedules", "list", columns=80)
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()
    assert lines[0].split() == ["name", "when", "queue", "kind", "paused", "next", "last"]
    assert [line.split()[0] for line in lines[1:]] == ["nightly", "tidy"]
    assert "every 3600 s" in lines[2]
    assert max(map(len, lines)) <= 80


def test_list_and_show_as_json(windrow: Windrow) -> None:
    listed = json.loads(windrow("schedules", "list", "--json").stdout)
    assert [one["name"] for one in listed] == ["nightly report", "tidy"]
    shown = json.loads(windrow("schedules", "show", "nightly report", "--json").stdout)
    assert shown == listed[0]
    assert (shown["cron"], shown["kind"], shown["payload"], shown["headers"]) == (
        *("30 2 * * MON-FRI", "report"),
        {"ü": 1},
        {"trace": "1"},
    )


def test_show_tells_everything_of_a_schedule(windrow: Windrow) -> None:
    printed = windrow("schedules", "show", "nightly report").stdout
    for part in ("30 2 * * MON-FRI", "America/Argentina/Buenos_Aires", "reports", '"ü": 1'):
        assert part in printed


def test_pause_resume_and_remove(windrow: Windrow) -> None:
    assert windrow("schedules", "pause", "tidy").stdout == "paused tidy\n"
    assert json.loads(windrow("schedules", "show", "tidy", "--json").stdout)["is_paused"]
    assert windrow("schedules", "resume", "tidy").stdout.startswith("resumed tidy: next at 20")
    assert not json.loads(windrow("schedules", "pause", "tidy", "--json").stdout)["last_at"]
    assert json.loads(windrow("schedules", "remove", "tidy", "--json").stdout) == {
        "removed": "tidy"
    }


@pytest.mark.parametrize("command", ["show", "pause", "resume", "remove"])
def test_a_schedule_that_is_not_there_is_one_line_and_exit_code_4(
    windrow: Windrow,
    command: str,
) -> None:
    printed = windrow("schedules", command, "nobody")
    assert (printed.returncode, printed.stderr) == (4, "error: no such schedule: nobody\n")
