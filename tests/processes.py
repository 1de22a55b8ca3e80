"""Processes of the tests, forked from one that has imported everything and opened nothing.

To import Windrow is most of what a short process costs: a server took 1.7 s of CPU before it did
anything. The forking process is started with the first of the others, and there is one for each
process of pytest: what it imports in advance is listed here, because the last list counts.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import chdir
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).parents[1]
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "tests.integration.racing",
        "tests.trust.programs",
        "uvloop",
        "windrow.cli.serve",
        "windrow.cli.worker",
        "windrow.queue.postgres.store",
        "windrow.queue.sqlite.store",
        "windrow.services.serving",
        "windrow.services.working",
        "windrow.web.site",
        "tests.freezing",
    ]
)


def fork(target: Callable[..., Any], *arguments: Any) -> BaseProcess:
    process = PROCESSES.Process(target=target, args=arguments)
    with chdir(ROOT):  # where the forking process finds the tests
        process.start()
    return process


class Command:
    """`windrow` with these words, in a session of its own, that can be treated like a `Popen`.
    `stdout` is what it prints; what it logs is added to a file, or goes nowhere."""

    def __init__(
        self,
        *words: str,
        cwd: Path,
        environment: Mapping[str, str],
        log: Path | None = None,
    ) -> None:
        hears, says = PROCESSES.Pipe(duplex=False)
        given = (words, str(cwd), dict(environment), says, str(log or os.devnull))
        self._process = fork(_run_command, *given)
        says.close()
        self.stdout: TextIO = os.fdopen(os.dup(hears.fileno()))
        hears.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def communicate(self, timeout: float | None = None) -> str:
        """All that it prints until it ends."""
        printed = self.stdout.read()
        self.wait(timeout)
        return printed

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, which: signal.Signals) -> None:
        os.kill(self.pid, which)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        """The code that it ended with."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("windrow", timeout or 0.0)
        self.stdout.close()
        return self._process.exitcode


def run(
    *words: str, cwd: Path, environment: Mapping[str, str], timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Like `subprocess.run`: until the command has ended."""
    with tempfile.NamedTemporaryFile() as log:
        command = Command(*words, cwd=cwd, environment=environment, log=Path(log.name))
        printed = command.communicate(timeout)
        logged = Path(log.name).read_text("utf-8")
    return subprocess.CompletedProcess(words, command.wait(), printed, logged)


def _run_command(
    words: tuple[str, ...], cwd: str, environment: dict[str, str], says: Connection, log: str
) -> None:
    from windrow.__main__ import main

    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(says.fileno(), sys.stdout.fileno())
    says.close()
    with Path(log).open("ab") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
    sys.argv = ["windrow", *words]
    sys.path.insert(0, cwd)  # as `python -m` does
    main()
