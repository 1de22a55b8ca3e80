"""The commands, run as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Windrow
from tests.conformance.conftest import connect_beside
from tests.migrations import make_development_database, traces
from windrow import NewJob, Queue
from windrow.errors import JobNotFound
from windrow.queue.job import Job


@pytest.fixture
def failed(store_url: str) -> Job:
    """One failed job among ready ones."""
    with Queue.sync(store_url) as queue:
        queue.enqueue("scrape", {"url": "https://example.org/ü"}, queue="web", max_attempts=1)
        lease = queue.claim(["web"])
        lease.fail(lease.jobs[0], ValueError("404 Not Found"))
        queue.enqueue_many([NewJob("index", {"n": n}, queue="index") for n in range(3)])
        return queue.get(lease.jobs[0].id)


def test_jobs_list_shows_a_table_that_fits(windrow: Windrow, failed: Job) -> None:
    printed = windrow("jobs", "list", columns=80)
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()
    assert lines[0].split()[:4] == ["id", "queue", "kind", "state"]
    assert len(lines) == 5
    assert max(map(len, lines)) <= 80


def test_jobs_list_filters_and_pages_as_json(windrow: Windrow, failed: Job) -> None:
    found = json.loads(windrow("jobs", "list", "--state", "failed", "--json").stdout)
    assert [(job["id"], job["error"]) for job in found] == [
        (failed.id, "ValueError: 404 Not Found")
    ]
    first = json.loads(windrow("jobs", "list", "--limit", "2", "--json").stdout)
    after = ["--after", first[-1]["id"]]
    rest = json.loads(windrow("jobs", "list", "--limit", "2", *after, "--json").stdout)
    assert len({job["id"] for job in first + rest}) == 4
    assert f"more: --after {first[-1]['id']}" in windrow("jobs", "list", "--limit", "2").stdout


def test_jobs_show_tells_everything_of_a_job(windrow: Windrow, failed: Job) -> None:
    printed = windrow("jobs", "show", failed.id).stdout
    for part in ("https://example.org/ü", "ValueError: 404 Not Found", "failed", "web"):
        assert part in printed
    shown = json.loads(windrow("jobs", "show", failed.id, "--json").stdout)
    assert shown["payload"] == {"url": "https://example.org/ü"}
    assert [line["type"] for line in shown["errors"]] == ["ValueError"]


def test_a_job_that_is_not_there_is_one_line_a_hint_and_exit_code_1(windrow: Windrow) -> None:
    printed = windrow("jobs", "show", "0190a0b0-0000-7000-8000-000000000000")
    assert printed.returncode == 1
    assert printed.stderr.splitlines() == [
        "error: no such job: 0190a0b0-0000-7000-8000-000000000000",
        f"hint: {JobNotFound.hint}",
    ]


def test_db_status_counts_the_queues(windrow: Windrow, failed: Job) -> None:
    status = json.loads(windrow("db", "status", "--json").stdout)
    assert status["problem"] is None
    assert {queue["name"]: queue["counts"] for queue in status["queues"]} == {
        "index": {"ready": 3},
        "web": {"failed": 1},
    }
    table = windrow("db", "status").stdout
    assert "schema version" in table
    assert "index" in table


def test_db_migrate_twice_does_nothing_the_second_time(windrow: Windrow, empty_url: str) -> None:
    before = windrow("db", "status", "--database", empty_url)
    assert before.returncode == 1
    assert "run `windrow db migrate`" in before.stderr
    assert "applied 0001_" in windrow("db", "migrate", "--database", empty_url).stdout
    assert "nothing to do" in windrow("db", "migrate", "--database", empty_url).stdout
    assert windrow("db", "status", "--database", empty_url).returncode == 0


def test_database_of_a_development_version_is_refused(
    windrow: Windrow, empty_url: str, store_name: str
) -> None:
    beside = connect_beside(store_name, empty_url)
    make_development_database(store_name, beside)
    before = traces(store_name, beside)

    status = windrow("db", "status", "--database", empty_url)
    assert (status.returncode, status.stdout.splitlines()[1]) == (1, "schema version 33")
    read = json.loads(windrow("db", "status", "--json", "--database", empty_url).stdout)
    assert (read["version"], read["queues"]) == (33, [])
    migrated = windrow("db", "migrate", "--database", empty_url)
    assert (migrated.returncode, migrated.stdout) == (1, "")
    for said in (status.stderr, read["problem"], migrated.stderr):
        assert "development version of Windrow" in said
        assert "start with a new database" in said
    assert traces(store_name, beside) == before
    beside.close()


def test_a_password_is_never_printed(windrow: Windrow, tmp_path: Path) -> None:
    url = "postgresql://ana:s3cret@127.0.0.1:1/jobs"
    printed = windrow("db", "status", "--database", url)
    assert printed.returncode == 1
    assert "s3cret" not in printed.stdout + printed.stderr


def test_version_and_help(windrow: Windrow) -> None:
    assert windrow("--version").stdout.startswith("windrow 0.")
    assert "jobs" in windrow("--help").stdout


def test_a_bad_url_is_explained(process: Windrow) -> None:
    printed = process("jobs", "list", "--database", "mysql://me:secret@host/x")
    assert printed.returncode == 2
    assert printed.stderr.startswith("error: cannot open a database at 'mysql://me'…: use sqlite")
    assert "secret" not in printed.stderr
