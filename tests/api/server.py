"""`windrow serve` as a process of its own, for tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.processes import Command

ADDRESS = re.compile(r"http://\S+")


class Server:
    """A server on a free port, with its database in a folder."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        self.folder = folder
        self.database = f"sqlite:///{folder / 'jobs.db'}"
        self._arguments = arguments
        self._variables = variables
        self._port = "0"
        self.url = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def start(self) -> None:
        """Also again, on the same port."""
        self.process = self._launch(
            ["serve", "--port", self._port, *self._arguments],
            {
                **os.environ,
                "WINDROW_DATABASE_URL": self.database,
                "WINDROW_ALLOW_PRIVATE_NETWORKS": "1",
                **self._variables,
            },
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = ADDRESS.search(said)
        assert found is not None, (self.folder / "serve.log").read_text()
        self.url = found[0]
        self._port = self.url.rpartition(":")[2]

    def _launch(
        self, words: list[str], environment: dict[str, str]
    ) -> Command | subprocess.Popen[str]:
        log = self.folder / "serve.log"
        return Command(*words, cwd=self.folder, environment=environment, log=log)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ask it to; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class FreshServer(Server):
    """One that is not forked: its memory is its own, and the limits on it are ours."""

    def _launch(
        self, words: list[str], environment: dict[str, str]
    ) -> Command | subprocess.Popen[str]:
        with (self.folder / "serve.log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "windrow", *words],
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
