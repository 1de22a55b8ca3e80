"""`windrow top`: one frame, and the live screen in a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Read, Windrow
from windrow import Queue
from windrow.cli.top import short
from windrow.ids import new_id
from windrow.queue.records import WorkerRow
from windrow.queue.sync_queue import SyncQueue

SECONDS = 60.0  # on a busy machine


@pytest.fixture
def queue(store_url: str) -> Iterator[SyncQueue]:
    """Two queues, a worker that runs a job, one that nobody knows of, and a limit in use."""
    with Queue.sync(store_url) as opened:
        opened.set_limit("api", active=1)
        opened.enqueue("fetch", queue="web", limits=["api"])
        opened.enqueue("fetch", queue="web", limits=["api"])
        opened.claim(["web"], worker="host:1")
        opened.enqueue("mail", queue="mail")
        opened.enqueue("mail", queue="mail")
        opened.claim(["mail"], worker="loop:2")
        row = WorkerRow(new_id(), "host:1", "host", 1, ("web",), ("fetch",), 10, 1)
        opened._portal.run(opened.store.register_worker(row, 3600))
        yield opened


def test_one_frame_tells_queues_workers_and_limits(windrow: Windrow, queue: SyncQueue) -> None:
    printed = windrow("top", "--once", columns=80)
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    words = [line.split() for line in lines]
    assert "1 of 10 places in use" in lines[1]
    assert ["queue", "held", "ready", "active", "per", "s", "oldest"] in words
    assert [">", "mail", "0", "1", "1", "0.0"] in [line[:6] for line in words]
    assert ["web", "1", "0", "1", "0.0", "-"] in words
    assert ["host:1", "web", "1/10"] in [line[:3] for line in words]
    assert ["loop:2", "-", "1", "-", "mail", "1"] in words
    assert ["api", "1", "0", "1", "-"] in words


def test_one_frame_as_json(read: Read, queue: SyncQueue) -> None:
    seen = read("top")
    assert {one["name"]: one["counts"] for one in seen["queues"]} == {
        "mail": {"ready": 1, "active": 1},
        "web": {"held": 1, "active": 1},
    }
    assert [one["name"] for one in seen["workers"]] == ["host:1"]
    assert {one["worker"] for one in seen["running"]} == {"host:1", "loop:2"}


def test_nothing_to_show_is_said(windrow: Windrow) -> None:
    printed = windrow("top", "--once").stdout
    assert "no queue has jobs" in printed
    assert "no worker is alive" in printed
    assert windrow("top", "--interval", "0").returncode == 2


class Terminal:
    """A process on a terminal of its own; what it writes is read until it says what is wanted."""

    def __init__(self, words: list[str], folder: Path, database: str) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        environment = os.environ | {"WINDROW_DATABASE_URL": database, "TERM": "xterm"}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "windrow", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment,
        )
        os.close(theirs)
        self._terminal = ours
        self._shown = ""

    def read_until(self, wanted: Callable[[str], bool]) -> str:
        """Read on until what was shown since the last time is what is wanted."""
        deadline = time.monotonic() + SECONDS
        while not wanted(self._shown):
            assert time.monotonic() < deadline, self._shown
            if select.select([self._terminal], [], [], 0.5)[0]:
                self._shown += os.read(self._terminal, 65536).decode("utf-8", "replace")
        shown, self._shown = self._shown, ""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)

    def rest(self) -> str:
        """What an ended process still had to say."""
        while select.select([self._terminal], [], [], 0)[0]:
            try:
                self._shown += os.read(self._terminal, 65536).decode("utf-8", "replace")
            except OSError:  # how Linux says that nobody has the other end any more
                break
        return self._shown

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._terminal)


@pytest.fixture
def terminal(tmp_path: Path, store_url: str) -> Iterator[Terminal]:
    opened = Terminal(["top", "--interval", "0.2"], tmp_path, store_url)
    yield opened
    opened.close()


def test_live_screen_follows_the_queue_and_obeys_keys(queue: SyncQueue, terminal: Terminal) -> None:
    shown = terminal.read_until(lambda text: "q quit" in text)
    assert ">  mail" in shown
    lease = queue.claim(["mail"])
    lease.complete(lease.jobs[0])
    terminal.read_until(lambda text: "completed" in text and "jobs/s" in text)
    terminal.press("j")
    terminal.read_until(lambda text: ">  web" in text)
    terminal.press("p")
    terminal.read_until(lambda text: "paused" in text)
    assert {info.name for info in queue.queues() if info.is_paused} == {"web"}
    terminal.press("q")
    assert terminal.process.wait(SECONDS) == 0


def test_interrupting_it_is_no_accident(queue: SyncQueue, terminal: Terminal) -> None:
    terminal.read_until(lambda text: "q quit" in text)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.process.wait(SECONDS) == 0
    assert "Traceback" not in terminal.rest()


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((0, "0"), (9_999, "9999"), (12_345, "12.3k"), (123_456, "123k"), (999_400, "999k")),
        *((1_234_567, "1.2M"), (12_345_678, "12.3M"), (123_456_789, "123M"), (7 * 10**9, "7.0G")),
    ],
)
def test_large_numbers_are_short(count: int, text: str) -> None:
    assert short(count) == text
