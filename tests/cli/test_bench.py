"""`windrow bench` finds the benchmarks of a checkout, and says so where there are none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def windrow_bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "windrow", "bench", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_bench_hands_its_arguments_on() -> None:
    told = windrow_bench(ROOT, "--help")
    assert told.returncode == 0
    assert "--rounds" in told.stdout


def test_outside_of_a_checkout_bench_says_where_the_benchmarks_are(tmp_path: Path) -> None:
    told = windrow_bench(tmp_path)
    assert told.returncode == 1
    assert "checkout" in told.stderr
