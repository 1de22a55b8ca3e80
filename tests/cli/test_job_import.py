"""`windrow jobs import`: jobs from JSON lines, as it is typed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Read, Windrow
from windrow import Queue
from windrow.services.job_import import JobImport, import_jobs
from windrow.settings import Settings


def write_lines(path: Path, *jobs: object) -> Path:
    path.write_text("".join(f"{json.dumps(job)}\n" for job in jobs))
    return path


def test_each_line_becomes_a_job_with_its_options(
    windrow: Windrow, read: Read, tmp_path: Path
) -> None:
    later = "2099-01-01T00:00:00Z"
    write_lines(
        tmp_path / "jobs.jsonl",
        {"kind": "mail", "payload": {"to": "Zoë"}, "queue": "mail", "priority": 9, "tags": ["a"]},
        {"kind": "mail", "run_at": later, "id": "0f38e00e-d7ee-4b77-8a7a-a787a3537ca2"},
        {"kind": "mail", "unique": "one", "max_attempts": 2, "headers": {"celery_id": 7}},
    )
    done = windrow("jobs", "import", "jobs.jsonl")
    assert (done.returncode, done.stdout) == (0, "3 of 3 jobs are new\n")

    first, second, last = sorted(read("jobs", "list"), key=lambda job: int(job["seq"]))
    assert (first["payload"], first["queue"], first["priority"]) == ({"to": "Zoë"}, "mail", 9)
    assert (first["tags"], first["state"]) == (["a"], "ready")
    assert (second["id"], second["state"]) == ("0f38e00e-d7ee-4b77-8a7a-a787a3537ca2", "scheduled")
    assert (last["unique"], last["max_attempts"], last["headers"]) == ("one", 2, {"celery_id": 7})


def test_a_file_that_is_imported_twice_adds_nothing_twice(
    windrow: Windrow, read: Read, tmp_path: Path
) -> None:
    write_lines(tmp_path / "jobs.jsonl", *[{"kind": "mail", "payload": 1} for _ in range(700)])
    windrow("jobs", "import", "jobs.jsonl")
    again = windrow("jobs", "import", "jobs.jsonl")
    assert (again.returncode, again.stdout) == (0, "0 of 700 jobs are new\nexisting: 700\n")
    with (tmp_path / "jobs.jsonl").open("a") as file:  # another file: all of its lines are new
        file.write('{"kind": "mail"}\n\n')
    assert read("jobs", "import", "jobs.jsonl")["outcomes"] == {"inserted": 701}


def test_a_job_that_has_ended_is_not_enqueued_again_by_its_file(
    windrow: Windrow, read: Read, tmp_path: Path
) -> None:
    write_lines(tmp_path / "jobs.jsonl", {"kind": "mail"})
    windrow("jobs", "import", "jobs.jsonl")
    [job] = read("jobs", "list")
    windrow("jobs", "cancel", job["id"], "--yes")
    assert read("jobs", "import", "jobs.jsonl")["outcomes"] == {"existing": 1}
    assert [job["state"] for job in read("jobs", "list")] == ["cancelled"]


def test_a_bad_line_is_named_and_nothing_is_written(
    windrow: Windrow, read: Read, tmp_path: Path
) -> None:
    good = {"kind": "mail"}
    windrow("db", "migrate")
    for bad, why in (
        ({"kind": "mail", "priorty": 9}, "priorty"),
        ({"payload": {}}, "kind"),
        ({"kind": "mail", "priority": "high"}, "priority"),
        ({"kind": "mail", "unique": ""}, "unique"),
        ({"kind": "mail", "id": "seven"}, "id"),
        ({"kind": "mail", "run_at": "2099-01-01T00:00:00Z", "delay": 5}, "delay"),
        ([1], "object"),
    ):
        write_lines(tmp_path / "jobs.jsonl", *[good] * 600, bad)
        refused = windrow("jobs", "import", "jobs.jsonl")
        assert refused.returncode == 1
        assert refused.stderr.startswith("error: line 601: "), refused.stderr
        assert why in refused.stderr
    (tmp_path / "jobs.jsonl").write_bytes(b'{"kind": "mail"}\n{"kind": "m\xff"}\n{"kind"')
    assert "error: line 2: " in windrow("jobs", "import", "jobs.jsonl").stderr
    assert windrow("jobs", "import", "nowhere.jsonl").returncode == 2
    assert read("jobs", "list") == []


def test_lines_of_stdin_are_checked_without_writing_them(windrow: Windrow, read: Read) -> None:
    windrow("db", "migrate")
    checked = windrow("jobs", "import", "-", "--dry-run", input='{"kind": "mail"}\n')
    assert checked.stdout == "lines checked: 1; nothing was written\n"
    assert read("jobs", "list") == []
    assert read("jobs", "import", "-", input='{"kind": "mail"}\n')["outcomes"] == {"inserted": 1}


async def test_two_imports_of_a_file_at_once_add_each_job_once(
    store_url: str, tmp_path: Path
) -> None:
    file = write_lines(
        tmp_path / "jobs.jsonl", *[{"kind": "mail", "payload": n} for n in range(1200)]
    )
    settings = Settings(database_url=store_url)
    with file.open("rb") as one, file.open("rb") as other:
        reports = await asyncio.gather(import_jobs(settings, one), import_jobs(settings, other))

    assert sum(report.outcomes["inserted"] for report in reports) == 1200
    assert sum(report.outcomes["existing"] for report in reports) == 1200
    async with Queue.open(store_url) as queue:
        assert sum((await queue.counts()).values()) == 1200


async def test_an_import_that_died_after_a_batch_is_finished_by_the_next(
    store_url: str, tmp_path: Path
) -> None:
    def die(report: JobImport) -> None:
        raise ConnectionResetError  # the batch is committed, and nobody learns of it

    file = write_lines(
        tmp_path / "jobs.jsonl", *[{"kind": "mail", "payload": n} for n in range(1200)]
    )
    settings = Settings(database_url=store_url)
    with file.open("rb") as lines, pytest.raises(ConnectionResetError):
        await import_jobs(settings, lines, show=die)
    with file.open("rb") as lines:
        report = await import_jobs(settings, lines)

    assert (report.outcomes["existing"], report.outcomes["inserted"]) == (500, 700)
