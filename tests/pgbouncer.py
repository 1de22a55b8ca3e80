"""A real pgbouncer for the tests, in transaction mode, in front of the tests' Postgres.

It serves every database of the server, those made later too, and lets anybody in from this machine
only. Like Postgres it refuses to run as root, and is then run by an unprivileged account. It is
stopped by its own process handle.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.postgres_server import (
    PORT_TRIES,
    START_SECONDS,
    STOP_SECONDS,
    database_name,
    free_port,
    make_reachable_folder,
    stop_with_parent,
    unprivileged_account,
)

MISSING = (
    "pgbouncer is not installed, so nothing was tested behind a pooler "
    "(Debian, Ubuntu: apt install pgbouncer; .ci/run does it where it may)"
)
CONSOLE = "pgbouncer"  # the database that is the bouncer's own console
SESSIONS = 20  # with the server, for each database

SETTINGS = {
    "listen_addr": "127.0.0.1",
    "unix_socket_dir": "",
    "auth_type": "any",  # ignores who is asking: it listens on the loopback address only
    "pool_mode": "transaction",
    "default_pool_size": str(SESSIONS),
    "max_client_conn": "1000",
    "server_idle_timeout": "10",
    "autodb_idle_timeout": "10",
    "log_connections": "0",
    "log_disconnections": "0",
    "log_pooler_errors": "0",
}


def find_pgbouncer() -> Path | None:
    """The program, on PATH or where Debian puts it, which is not on everybody's PATH."""
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    return Path(found) if found else None


class Bouncer:
    """`start()` it and ask for a `url()`; `stop()` leaves neither a process nor a file behind."""

    def __init__(
        self, server_url: str, program: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self.folder: Path | None = None
        self.port = 0
        self._server_url = server_url
        self._program = program
        self._settings = {**SETTINGS, **(settings or {})}
        self._account = unprivileged_account()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        try:
            self.folder = make_reachable_folder("windrow-pgbouncer-", self._account)
            self._launch()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None
        if self.folder is not None:
            shutil.rmtree(self.folder)
            self.folder = None

    def url(self, dbname: str) -> str:
        """The way to a database through the bouncer, not yet declared as such."""
        return f"postgresql://anybody@127.0.0.1:{self.port}/{dbname}"

    def _launch(self) -> None:
        # Between choosing a free port and the bouncer binding it, somebody else may take it.
        for _ in range(PORT_TRIES):
            self.port = free_port()
            self._write_settings()
            self._process = self._spawn()
            if self._answers():
                return
        raise RuntimeError(f"pgbouncer did not start:\n{self._log()}")

    def _write_settings(self) -> None:
        assert self.folder is not None
        path = self.folder / "pgbouncer.ini"
        path.touch(0o600)  # the server's password will be in it
        settings = {**self._settings, "listen_port": str(self.port)}
        path.write_text(settings_text(self._server_url, settings))
        self._give_away(path)

    def _spawn(self) -> subprocess.Popen[bytes]:
        assert self.folder is not None
        account: dict[str, Any] = {}
        if self._account:
            account = {
                "user": self._account.pw_uid,
                "group": self._account.pw_gid,
                "extra_groups": [],
            }
        with (self.folder / "pgbouncer.log").open("ab") as log:
            return subprocess.Popen(
                [self._program, self.folder / "pgbouncer.ini"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C is for pytest, which then stops us in order
                preexec_fn=stop_with_parent(signal.SIGTERM),
                **account,
            )

    def _answers(self) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None:
            try:
                ask_console(self.url(CONSOLE), "SHOW VERSION")
                return True
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"pgbouncer does not answer:\n{self._log()}") from None
            time.sleep(0.02)
        return False

    def _give_away(self, path: Path) -> None:
        if self._account:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _log(self) -> str:
        assert self.folder is not None
        return (self.folder / "pgbouncer.log").read_text(errors="replace")[-4000:]


def settings_text(server_url: str, settings: Mapping[str, str]) -> str:
    """The settings file: any database, always as the tests' own user."""
    server = urlsplit(server_url)
    login = {
        "host": server.hostname or "127.0.0.1",
        "port": str(server.port or 5432),
        "user": unquote(server.username or "postgres"),
        "password": unquote(server.password or ""),
    }
    target = " ".join(f"{name}={_quoted(value)}" for name, value in login.items() if value)
    lines = [f"{name} = {value}" for name, value in settings.items()]
    return "\n".join(["[databases]", f"* = {target}", "[pgbouncer]", *lines, ""])


def ask_console(console_url: str, question: str) -> list[dict[str, Any]]:
    """Ask the bouncer about itself (`SHOW POOLS`, `SHOW STATS` …); its console knows only plain
    statements."""
    with psycopg.connect(console_url, autocommit=True, row_factory=dict_row) as connection:
        cursor = psycopg.ClientCursor(connection, row_factory=dict_row)
        return cursor.execute(question.encode()).fetchall()


def require_prepared(console_url: str) -> None:
    """Skip the test where the bouncer does not follow prepared statements."""
    settings = {row["key"]: row["value"] for row in ask_console(console_url, "SHOW CONFIG")}
    if int(settings.get("max_prepared_statements") or 0) == 0:
        pytest.skip("this pgbouncer keeps no prepared statements (1.21 and newer ones can)")


def through(bouncer_url: str, url: str) -> str:
    """The URL of the same database as `url`, by way of the bouncer, declared as a pooler."""
    parts = urlsplit(bouncer_url)
    return f"{parts._replace(path='/' + database_name(url)).geturl()}?pooled=true"


def without_options(url: str) -> str:
    """The URL for a driver: what follows the question mark is for Windrow."""
    return url.partition("?")[0]


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _end(process: subprocess.Popen[bytes]) -> None:
    """At once, whoever is connected; SIGKILL only if it does not obey."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
            return
        except subprocess.TimeoutExpired:
            continue
