"""The history survives its writers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.trust.history import Entry, History, read
from windrow.queue.job import Job, JobState

ROOT = Path(__file__).parents[2]

# Writes until it is killed, and says when it has begun.
WRITER = """
import sys
from pathlib import Path
from tests.trust.history import History
history = History(Path(sys.argv[1]), by=sys.argv[2])
for number in range(10**9):
    history.write("effect", f"job-{number}", note="x" * 500)
    if number == 20:
        print("begun", flush=True)
"""


def test_entries_are_read_in_the_order_in_which_all_writers_wrote_them(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    one, two = History(path, "one", iter((1.0, 3.0)).__next__), History(path, "two", lambda: 2.0)

    one.write("offered", "a", key="k", limits=("l",))
    two.write("claimed", "a", token="t", attempt=1)
    one.write("enqueued", "a", outcome="inserted")

    assert read(path) == [
        Entry(1.0, "one", "offered", "a", key="k", limits=("l",)),
        Entry(2.0, "two", "claimed", "a", token="t", attempt=1),
        Entry(3.0, "one", "enqueued", "a", outcome="inserted"),
    ]


def test_an_entry_that_a_killed_writer_left_unfinished_is_dropped_and_counted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "history.jsonl"
    history = History(path, "one", lambda: 1.0)
    history.write("started", "a")
    with path.open("ab") as file:
        file.write(b'\n{"at":1.0,"by":"two","wha')
    history.write("ended", "a")

    entries = read(path)

    assert [entry.what for entry in entries] == ["started", "ended"]
    assert entries.torn == 1


def test_an_entry_with_an_unknown_word_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"at":1.0,"by":"one","what":"forgotten"}\n')

    assert read(path).torn == 1


def test_writers_that_are_killed_tear_nothing_of_others(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), f"writer-{number}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        for number in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"begun\n"
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()

    entries = read(path)

    assert entries.torn <= len(writers)
    for number in range(2):
        written = [entry.job for entry in entries if entry.by == f"writer-{number}"]
        assert len(written) > 20
        assert written == [f"job-{count}" for count in range(len(written))]


def test_a_run_is_written_as_the_claim_gave_it_and_an_end_as_the_store_tells_it() -> None:
    entries: list[Entry] = []
    history = History(entries, "worker", lambda: 1.0)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    job = Job(
        id="a",
        seq=1,
        queue="q",
        kind="k",
        state=JobState.ACTIVE,
        priority=0,
        attempts=1,
        crashes=2,
        runs=4,
        max_attempts=3,
        max_crashes=5,
        created_at=now,
        run_at=now,
        unique="u",
        limits=("l",),
        lease_token="t",
    )

    history.of(job, "claimed", note="seen")
    history.final(job, rows=1)

    claimed, final = entries
    assert (claimed.token, claimed.attempt, claimed.key) == ("t", 4, "u")
    assert (claimed.limits, claimed.note) == (("l",), "seen")
    assert (final.state, final.attempts, final.crashes) == ("active", 1, 2)
    assert (final.max_attempts, final.max_crashes, final.results, final.rows) == (3, 5, 0, 1)


def test_a_short_write_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path / "history.jsonl", "one")
    monkeypatch.setattr(os, "write", lambda file, line: len(line) - 1)

    with pytest.raises(OSError, match="bytes of an entry"):
        history.write("started", "a")
