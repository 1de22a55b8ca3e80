"""The programs of docs/guides/queue-over-http.md run as they are printed (A6)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.server import Server
from tests.test_docs import ROOT, fenced

GUIDE = ROOT / "docs" / "guides" / "queue-over-http.md"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("served"), "--no-worker") as server:
        yield server


def run(server: Server, *command: str) -> str:
    """What a program prints, which must end well."""
    environment = {**os.environ, "WINDROW_URL": server.url}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_queue_is_used_with_curl(server: Server) -> None:
    require("curl")
    [example] = fenced(GUIDE, "sh")

    printed = run(server, "sh", "-euc", example)

    assert printed.splitlines()[-1] == "completed"
    assert printed.count('"success":true') == 3


def test_a_worker_in_node_runs_jobs(server: Server, tmp_path: Path) -> None:
    require("node")
    [example] = fenced(GUIDE, "js")
    (tmp_path / "worker.mjs").write_text(example)

    printed = run(server, "node", str(tmp_path / "worker.mjs"))

    assert printed.splitlines() == [
        "greet completed Hello, Ada!",
        "fail failed Error: no luck",
    ]


def require(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"THE GUIDE IS NOT TESTED: there is no {program} here")
