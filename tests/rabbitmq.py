"""A real RabbitMQ for the tests: a broker of our own on loopback ports, in a temporary folder.

Brokers find each other through a small server, epmd, that the first one starts and leaves behind:
ours is started here, on a port of its own, so that it can be stopped too. Both are stopped by their
own process handles. `launch()` does not wait until the broker answers, because that takes seconds
that whoever asks first may need for something else: `wait_for(url)` does.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.postgres_server import (
    STOP_SECONDS,
    free_port,
    make_reachable_folder,
    stop_with_parent,
    unprivileged_account,
)

MISSING = (
    "rabbitmq-server is not installed, so no notifier was tested with a broker "
    "(Debian, Ubuntu: apt install rabbitmq-server; .ci/run does it where it may)"
)
# Debian's own command in PATH changes to an account and a folder of its choice.
SYSTEM_FOLDER = Path("/usr/lib/rabbitmq/bin")
START_SECONDS = 90.0
GREETING = b"AMQP\x00\x00\x09\x01"


def find_rabbitmq() -> Path | None:
    """The start script, if it and epmd are there."""
    system = SYSTEM_FOLDER / "rabbitmq-server"
    found = str(system) if system.is_file() else shutil.which("rabbitmq-server")
    return Path(found) if found and shutil.which("epmd") else None


class Broker:
    def __init__(self, program: Path) -> None:
        self.folder: Path | None = None
        self.port = free_port()
        self._program = program
        self._account = unprivileged_account()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def launch(self) -> None:
        """Start it, if it is not running, and go on at once."""
        if self._processes:
            return
        if self.folder is None:
            self.folder = make_reachable_folder("windrow-rabbitmq-", self._account)
        try:
            environment = self._environment(self.folder)
            epmd = ["epmd", "-address", "127.0.0.1", "-port", environment["ERL_EPMD_PORT"]]
            self._processes.append(self._spawn(epmd, environment))
            self._processes.append(self._spawn([str(self._program)], environment))
        except BaseException:
            self.stop()
            raise

    def halt(self) -> None:
        """End it, and keep what it has written: `launch()` goes on with that."""
        while self._processes:
            _end(self._processes.pop())

    def stop(self) -> None:
        """End it and leave nothing behind."""
        self.halt()
        if self.folder is not None:
            shutil.rmtree(self.folder)
            self.folder = None

    def _environment(self, folder: Path) -> dict[str, str]:
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("RABBITMQ", "ERL", "PG")) and key != "NOTIFY_SOCKET"
        }
        return {
            **inherited,
            "HOME": str(folder),  # for the cookie
            "LC_ALL": "C.UTF-8",
            "ERL_EPMD_PORT": str(free_port()),
            # The script becomes the broker, instead of waiting for it: what ends is then all of it.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_NODENAME": f"windrow-{secrets.token_hex(4)}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            # Its schedulers sleep when there is nothing to do, rather than look for it in circles.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-kernel inet_dist_use_interface {127,0,0,1} "
                "+sbwt none +sbwtdcpu none +sbwtdio none"
            ),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
        }

    def _spawn(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        assert self.folder is not None
        account: dict[str, Any] = {}
        if self._account:
            account = {
                "user": self._account.pw_uid,
                "group": self._account.pw_gid,
                "extra_groups": [],
            }
        with (self.folder / "output").open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env=environment,
                start_new_session=True,  # a group of its own, that can be ended as one
                preexec_fn=stop_with_parent(signal.SIGTERM),
                **account,
            )


def wait_for(url: str) -> None:
    """Until the broker answers in its protocol."""
    address = urlsplit(url).hostname or "", urlsplit(url).port or 5672
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(address, 1) as connection:
                connection.sendall(GREETING)
                if connection.recv(1):
                    return
        except OSError:
            pass  # not there yet
        time.sleep(0.05)
    raise RuntimeError(f"RabbitMQ does not answer on port {address[1]} after {START_SECONDS} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and those it started, which are in its group; SIGKILL if they do not obey."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        try:
            process.wait(STOP_SECONDS)
            return
        except subprocess.TimeoutExpired:
            continue
