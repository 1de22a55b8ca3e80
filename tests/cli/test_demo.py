"""`windrow demo`: everything once, as a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_kindness import wait_until

DEMO = (sys.executable, "-m", "windrow", "demo")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What the person's own Windrow is set to is not for the demo."""
    own = {"WINDROW_DATABASE_URL": "postgresql://127.0.0.1:1/nothing", "WINDROW_API_KEYS": "wk"}
    return {**os.environ, **own, "TMPDIR": str(tmp_path)}


def test_the_demo_crawls_reads_searches_and_survives_a_killed_worker(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run([*DEMO, "--json"], env=environment, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)

    documents = {source["kind"]: source["documents"] for source in seen["sources"]}
    assert documents == {"site": 11, "folder": 5, "note": 1}  # not the page robots.txt forbids
    firsts = [hits[0]["title"] for hits in seen["searches"].values()]
    assert firsts == ["Leases", "Kaffeemaschine entkalken", "The spare baler"]
    assert seen["killed"]["before"]["active"] > 0
    assert seen["killed"]["after"] == {"completed": 24}
    assert seen["killed"]["crashes"] == seen["killed"]["before"]["active"]
    assert [*tmp_path.iterdir()] == []  # it leaves nothing behind


def test_ctrl_c_in_the_middle_of_the_crawl_ends_the_demo(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with subprocess.Popen(DEMO, env=environment, stdout=-1, stderr=-1, text=True) as demo:
        for line in demo.stdout or ():
            if line.startswith("2. Crawl"):
                break
        wait_until(lambda: has_work(tmp_path), demo)
        demo.send_signal(signal.SIGINT)
        rest, said = demo.communicate(timeout=30)

    assert demo.returncode == 130, said
    assert "3. " not in rest
    assert "Traceback" not in said
    assert [*tmp_path.iterdir()] == []


def has_work(folder: Path) -> bool:
    """Whether the demo in this folder has jobs: from then on it waits for them."""
    [database] = folder.glob("windrow-demo-*/windrow.db")
    with closing(sqlite3.connect(database)) as connection:
        [(count,)] = connection.execute("SELECT count(*) FROM windrow_job_live")
    return bool(count)


@pytest.fixture
def kept(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*DEMO, "--keep"], env=environment, stdout=-1, stderr=-1, text=True
    ) as it:
        try:
            yield it
        finally:
            it.kill()


@pytest.mark.chaos
def test_a_demo_that_is_kept_serves_its_dashboard_until_ctrl_c(
    kept: subprocess.Popen[str], tmp_path: Path
) -> None:
    lines = []
    for line in kept.stdout or ():
        lines.append(line)
        if line.startswith("  windrow serve"):
            break
    [address] = re.findall(r"The dashboard is at (\S+) until", "".join(lines))
    with urllib.request.urlopen(address) as page:
        assert "demo" in page.read().decode()  # the queue of the worker that was killed

    kept.send_signal(signal.SIGINT)
    _, said = kept.communicate(timeout=30)
    assert kept.returncode == 0
    assert "Traceback" not in said
    assert [*tmp_path.iterdir()] == []
