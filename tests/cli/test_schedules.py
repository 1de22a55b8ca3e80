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
    assert lines[0].split() == ["name", "when", "queue", "kind", "next"], "what is said of any"
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


def test_add_makes_a_schedule_with_everything_of_its_jobs(windrow: Windrow) -> None:
    words = (
        'schedules add poll fetch {"page":1} --every 30m --jitter 90s --catch-up all --queue web '
        "--priority 7 --unique poll --on-conflict replace --tenant acme --tag a --tag b "
        '--headers {"trace":"1"} --max-attempts 2 --max-crashes 3 --lease 2m --retention 1h '
        "--limit acme --limit api --max-hold 10m --json"
    )
    printed = windrow(*words.split())
    assert printed.returncode == 0, printed.stderr
    made = json.loads(printed.stdout)
    assert made == json.loads(windrow("schedules", "show", "poll", "--json").stdout)
    expected = {
        "every_seconds": 1800.0,
        "jitter_seconds": 90.0,
        "catch_up": "all",
        "kind": "fetch",
        "payload": {"page": 1},
        "queue": "web",
        "priority": 7,
        "unique": "poll",
        "on_conflict": "replace",
        "tenant": "acme",
        "headers": {"trace": "1"},
        "tags": ["a", "b"],
        "max_attempts": 2,
        "max_crashes": 3,
        "lease_seconds": 120,
        "retention_seconds": 3600,
        "limits": ["acme", "api"],
        "max_hold_seconds": 600,
    }
    assert {name: made[name] for name in expected} == expected


def test_add_changes_the_schedule_of_that_name(windrow: Windrow) -> None:
    printed = windrow("schedules", "add", "tidy", "tidy", "--cron", "@daily").stdout
    assert printed.startswith("tidy: @daily UTC, next at 20")
    assert len(json.loads(windrow("schedules", "list", "--json").stdout)) == 2


def test_add_explains_what_it_cannot_take(windrow: Windrow) -> None:
    printed = windrow("schedules", "add", "odd", "odd")
    assert printed.returncode == 1
    assert printed.stderr.splitlines()[0] == "error: give either every or cron, and not both"
    printed = windrow("schedules", "add", "odd", "odd", "{", "--every", "1h")
    assert printed.returncode == 2
    assert "is not JSON" in printed.stderr


def test_pause_resume_and_remove(windrow: Windrow) -> None:
    assert windrow("schedules", "pause", "tidy").stdout == "paused tidy\n"
    assert json.loads(windrow("schedules", "show", "tidy", "--json").stdout)["is_paused"]
    assert windrow("schedules", "resume", "tidy").stdout.startswith("resumed tidy: next at 20")
    assert not json.loads(windrow("schedules", "pause", "tidy", "--json").stdout)["last_at"]
    preview = json.loads(windrow("schedules", "remove", "tidy", "--json").stdout)
    assert preview == {"is_done": False, "name": "tidy"}
    removed = json.loads(windrow("schedules", "remove", "tidy", "--yes", "--json").stdout)
    assert removed == {"is_done": True, "name": "tidy"}


@pytest.mark.parametrize("command", ["show", "pause", "resume", "remove", "remove --yes"])
def test_a_schedule_that_is_not_there_is_one_line_and_exit_code_1(
    windrow: Windrow,
    command: str,
) -> None:
    printed = windrow("schedules", *command.split(), "nobody")
    assert printed.returncode == 1
    assert printed.stderr.splitlines()[0] == "error: no such schedule: nobody"
