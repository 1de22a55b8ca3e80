"""The archive: whole lines, on the disk, whoever else writes and whatever broke before."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from windrow.errors import ArchiveFailed
from windrow.ids import new_id
from windrow.queue.archive import JsonlArchive
from windrow.queue.job import Job, JobState

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def job(**fields: Any) -> Job:
    defaults: dict[str, Any] = {
        "id": new_id(),
        "seq": 1,
        "queue": "default",
        "kind": "work",
        "state": JobState.COMPLETED,
        "priority": 5,
        "attempts": 0,
        "crashes": 0,
        "runs": 1,
        "max_attempts": 5,
        "max_crashes": 5,
        "created_at": NOON,
        "run_at": NOON,
        "finished_at": NOON,
    }
    return Job(**(defaults | fields))


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_line_has_payload_and_result_as_they_were_stored(tmp_path: Path) -> None:
    JsonlArchive(tmp_path)(
        [job(payload_json='{"a":\n  1.50,\n "b": "x\\ny"}', result_json=b"[1,\n2]")]
    )
    text = (tmp_path / "jobs-2026-03-01.jsonl").read_text("utf-8")

    assert text.count("\n") == 1
    assert '"payload":{"a":1.50,"b":"x\\ny"}' in text
    assert lines(tmp_path / "jobs-2026-03-01.jsonl")[0]["result"] == [1, 2]


def test_day_of_a_file_is_that_of_the_finish_in_utc(tmp_path: Path) -> None:
    late = datetime(2026, 3, 2, 1, 30, tzinfo=timezone(timedelta(hours=5)))
    JsonlArchive(tmp_path)([job(), job(finished_at=late), job(finished_at=NOON + timedelta(1))])

    assert len(lines(tmp_path / "jobs-2026-03-01.jsonl")) == 2
    assert len(lines(tmp_path / "jobs-2026-03-02.jsonl")) == 1


def test_later_jobs_are_appended_after_a_line_that_was_torn(tmp_path: Path) -> None:
    path = tmp_path / "jobs-2026-03-01.jsonl"
    archive = JsonlArchive(tmp_path)
    archive([job()])
    with path.open("ab") as file:
        file.write(b'{"id": "torn')
    after = job()
    archive([after])
    whole, torn, last = path.read_text("utf-8").splitlines()

    assert json.loads(whole)["state"] == "completed"
    assert torn == '{"id": "torn'
    assert json.loads(last)["id"] == after.id


def test_many_may_write_at_once(tmp_path: Path) -> None:
    big = json.dumps("x" * 200_000)
    with ThreadPoolExecutor(8) as threads:
        list(
            threads.map(
                lambda _: JsonlArchive(tmp_path)([job(payload_json=big) for _ in range(3)]),
                range(20),
            )
        )

    assert len({line["id"] for line in lines(tmp_path / "jobs-2026-03-01.jsonl")}) == 60


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveFailed, match="file"):
        JsonlArchive(tmp_path / "file" / "below")([job()])
