"""N8: whoever sleeps on a file learns that its log was written to, by the system or by looking."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from windrow.queue.sqlite import log as logs
from windrow.queue.sqlite.log import Log, ToldLog, WatchedLog, open_log

LONG = 20.0  # seconds; only a failing test waits for it
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.db-wal"
    path.write_bytes(b"a")
    return path


@pytest.fixture(params=[pytest.param(ToldLog, marks=on_linux), WatchedLog])
def log(request: pytest.FixtureRequest, path: Path) -> Iterator[Log]:
    with closing(request.param(str(path))) as log:
        yield log


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"b")


def test_a_write_is_noticed_once(log: Log, path: Path) -> None:
    assert not log.wait_for_write(0)
    append(path)
    assert log.wait_for_write(LONG)
    assert not log.wait_for_write(0)


def test_a_write_ends_the_wait_for_it(log: Log, path: Path) -> None:
    writing = threading.Timer(0.02, append, [path])
    writing.start()
    assert log.wait_for_write(LONG)
    writing.join()


def test_many_writes_are_one_notice(log: Log, path: Path) -> None:
    for _ in range(10_000):
        append(path)
    while log.wait_for_write(0):
        pass
    append(path)
    assert log.wait_for_write(LONG)


@on_linux
def test_a_log_is_looked_at_where_the_system_will_not_tell(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_log(str(path))) as told:
        assert isinstance(told, ToldLog)

    def refuse(name: str, *arguments: int | bytes) -> int:
        if name == "inotify_add_watch":
            raise OSError(28, "no more watches")
        returned: int = getattr(ctypes.CDLL(None), name)(*arguments)
        return returned

    monkeypatch.setattr(logs, "_call", refuse)
    with closing(open_log(str(path))) as watched:
        assert isinstance(watched, WatchedLog)


def test_a_log_that_is_not_there_yet_is_noticed_when_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "late.db-wal"
    with closing(open_log(str(path))) as log:
        append(path)
        assert log.wait_for_write(LONG)
