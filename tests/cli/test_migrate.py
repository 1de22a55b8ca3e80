"""`windrow migrate legacy`, as it is typed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Read, Windrow
from tests.migration.variants import build


def test_forecast_move_verify_and_drop_u11(windrow: Windrow, read: Read, tmp_path: Path) -> None:
    legacy = build(tmp_path / "old.db", "D", "others")
    place = ("migrate", "legacy", "--from", "old.db")

    forecast = windrow(*place, "--database", "sqlite:///new.db")  # without tables
    assert (forecast.returncode, "would come" in forecast.stdout) == (0, True)
    assert windrow(*place, "--verify").returncode == 1
    assert "would come" in windrow(*place).stdout
    assert windrow(*place, "--drop", "--yes").returncode == 1

    moved = windrow(*place, "--yes")
    assert moved.returncode == 0
    assert "done already" in moved.stdout
    assert all(len(line) <= 100 for line in moved.stdout.splitlines())

    report = read(*place, "--verify")
    assert report["is_good"]
    assert report["matched"]["ingestion_queue"] == 3
    preview = windrow(*place, "--drop")
    assert (preview.returncode, "would be dropped: add --yes" in preview.stdout) == (0, True)
    kept = windrow(*place, "--drop", "--yes")
    assert (kept.returncode, "nothing is dropped: 3 rows are done" in kept.stdout) == (1, True)
    assert read(*place, "--drop", "--discard-finished", "--yes")["is_dropped"]
    assert windrow(*place, "--verify").returncode == 2  # there is nothing to compare with
    assert legacy.exists()


def test_bullmq_is_refused_with_the_way_to_go(
    windrow: Windrow, tmp_path: Path, make_bullmq_url: Callable[[], str]
) -> None:
    build(tmp_path / "old.db", "D")
    place = ("migrate", "legacy", "--from", "old.db", "--database", make_bullmq_url())
    for words in (["--yes"], [], ["--rollback"], ["--rollback", "--yes"]):
        refused = windrow(*place, *words)
        assert refused.returncode == 1
        assert "not copied or migrated to or from BullMQ" in refused.stderr


def test_rollback_says_what_stays_u11(windrow: Windrow, tmp_path: Path) -> None:
    build(tmp_path / "old.db", "D")
    windrow("migrate", "legacy", "--from", "old.db", "--yes")

    preview = windrow("migrate", "legacy", "--from", "old.db", "--rollback")
    assert preview.stdout == (
        "would remove those of 3 jobs from old.db that have not begun: add --yes\n"
    )
    gone = windrow("migrate", "legacy", "--from", "old.db", "--rollback", "--yes")

    assert gone.returncode == 0
    assert "3 jobs from old.db are removed" in gone.stdout


def test_what_cannot_be_read_is_one_sentence_u11(windrow: Windrow) -> None:
    for words, code in (([], 1), (["--verify"], 2)):
        refused = windrow("migrate", "legacy", "--from", "nowhere.db", *words)
        assert refused.returncode == code
        assert refused.stderr.startswith("error: there is no file")
        assert "Traceback" not in refused.stderr
    for place in ("mysql://x/y", "redis://127.0.0.1:6379/0"):
        other = windrow("migrate", "legacy", "--from", place)
        assert (other.returncode, "postgresql://" in other.stderr) == (1, True)
    alone = windrow("migrate", "legacy", "--from", "nowhere.db", "--discard-finished")
    assert alone.returncode == 2
    both = windrow("migrate", "legacy", "--from", "nowhere.db", "--verify", "--drop")
    assert both.returncode == 2
