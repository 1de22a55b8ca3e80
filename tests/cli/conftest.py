"""Commands are run as a person runs them: in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Windrow = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def windrow(store_url: str, tmp_path: Path) -> Windrow:
    """Run a command on the test's database, in an empty folder, on a narrow terminal."""

    def run(*words: str, columns: int = 100) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"WINDROW_DATABASE_URL": store_url, "COLUMNS": str(columns)}
        return subprocess.run(
            [sys.executable, "-m", "windrow", *words],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run
