"""`windrow db backup` and `windrow db restore`: the file as it was at one moment."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Read, Windrow
from tests.migrations import make_development_database
from windrow import Queue
from windrow.services.indexing import index_folder, owning
from windrow.settings import load_settings


@pytest.fixture
def database(sqlite_template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(sqlite_template, tmp_path / "jobs.db"))


@pytest.fixture
def store_url(database: Path) -> str:
    return f"sqlite:///{database}"


def test_backup_holds_what_was_committed_and_comes_back(
    windrow: Windrow, read: Read, store_url: str, database: Path, tmp_path: Path
) -> None:
    with Queue.sync(store_url) as queue:  # it stays open: somebody is always at work
        kept = [queue.enqueue("work", {"n": n}).id for n in range(3)]
        lease = queue.claim(limit=1)
        done = read("db", "backup", "copy.db")
        assert done["bytes"] == Path("copy.db").stat().st_size
        assert stat.S_IMODE(Path("copy.db").stat().st_mode) == 0o600
        late = queue.enqueue("work").id
        lease.complete(lease.jobs[0])
    database.rename(tmp_path / "lost.db")

    assert "restored to" in windrow("db", "restore", "copy.db").stdout
    assert sorted(path.name for path in tmp_path.glob("copy.db*")) == ["copy.db"]
    with Queue.sync(store_url) as queue:
        assert {str(one.state) for one in queue.get_many(kept).values()} == {"ready", "active"}
        assert queue.get_many([late]) == {}


def test_nothing_is_overwritten(windrow: Windrow, database: Path, tmp_path: Path) -> None:
    assert windrow("db", "backup", "copy.db").returncode == 0
    again = windrow("db", "backup", "copy.db")
    assert again.returncode == 1
    assert "copy.db is there already" in again.stderr
    assert "is there already" in windrow("db", "restore", "copy.db").stderr

    database.rename(tmp_path / "lost.db")
    log = database.with_name(f"{database.name}-wal")
    log.write_bytes(b"what a killed worker left")
    refused = windrow("db", "restore", "copy.db")
    assert refused.returncode == 1
    assert f"{log} is there already" in refused.stderr
    log.unlink()
    assert windrow("db", "restore", "copy.db").returncode == 0


def test_what_is_no_sound_backup_is_refused(
    windrow: Windrow, database: Path, tmp_path: Path
) -> None:
    assert windrow("db", "backup", "copy.db").returncode == 0
    database.rename(tmp_path / "lost.db")
    torn = bytearray(Path("copy.db").read_bytes())
    torn[8192:12288] = bytes(4096)
    Path("torn.db").write_bytes(torn)
    Path("text.db").write_text("no database at all" * 100)
    sqlite3.connect("empty.db").execute("CREATE TABLE other (n)").connection.close()
    with closing(sqlite3.connect("old.db", isolation_level=None)) as old:
        make_development_database("sqlite", old)

    for name, why in (
        ("torn.db", "is damaged"),
        ("text.db", "is not an SQLite database"),
        ("empty.db", "has no tables of Windrow"),
        ("old.db", "start with a new database"),
        ("none.db", "there is no backup"),
    ):
        refused = windrow("db", "restore", name)
        assert refused.returncode == 1
        assert why in refused.stderr
    assert not database.exists()
    assert list(tmp_path.glob("*.partial*")) == []


def test_restore_waits_for_nobody_who_is_at_work(
    windrow: Windrow, store_url: str, database: Path, tmp_path: Path
) -> None:
    assert windrow("db", "backup", "copy.db").returncode == 0
    database.rename(tmp_path / "lost.db")
    folder = index_folder(load_settings({"database_url": store_url}))
    (folder / "spaces" / "old").mkdir(parents=True)
    with owning(folder):
        refused = windrow("db", "restore", "copy.db")
        assert refused.returncode == 1
        assert "stop it first" in refused.stderr
    assert windrow("db", "restore", "copy.db").returncode == 0
    assert not (folder / "spaces").exists(), "it may have what the documents that came back lack"


def test_postgres_is_left_to_its_own_tools(windrow: Windrow) -> None:
    refused = windrow("db", "backup", "copy.db", "-d", "postgresql://localhost/jobs")
    assert refused.returncode == 2
    assert "pg_dump" in refused.stderr
