"""What can happen to a file that jobs are in: others lock it, and its disk is full."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.trust.disks import small_disk
from tests.trust.harness import Crew, Verdict
from tests.trust.test_kills import check_file
from windrow.db.sqlite.location import parse_url

pytestmark = pytest.mark.chaos


async def weather(
    url: str, folder: Path, fault: Callable[[], Awaitable[None]], strikes: int, **options: Any
) -> tuple[list[float], Verdict]:
    """Enqueue and work on jobs while the file suffers. `options` are those of all processes."""
    recovery = []
    with Crew(url, folder) as crew:
        crew.make_rows()
        producer = crew.start("produce", kinds=("work", "write"), pause=0.05, **options)
        for _ in range(2):
            crew.start(lease=2, **options)
        for _ in range(strikes):
            before = crew.done
            await crew.until(lambda before=before: crew.done >= before + 200)  # type: ignore[misc]
            struck_at = time.monotonic()
            await fault()
            over_at = time.monotonic()
            recovery.append(over_at - struck_at + await crew.next_done(over_at))
        await crew.dismiss(producer)
        await crew.until_drained()
        await crew.stop()
        verdict = await crew.conclude()
    check_file(url)
    return recovery, verdict


@pytest.mark.parametrize(
    ("fault", "patience"),
    [
        ("file locked by another program", {}),
        ("file locked for longer than writers wait", {"busy_seconds": 0.2}),
    ],
    ids=["for less than writers wait", "for longer"],
)
async def test_another_program_locks_the_file(
    sqlite_template: Path, tmp_path: Path, fault: str, patience: dict[str, float]
) -> None:
    path = tmp_path / "jobs.db"
    shutil.copyfile(sqlite_template, path)

    async def lock() -> None:
        with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await asyncio.sleep(1)
            other.execute("ROLLBACK")

    recovery, verdict = await weather(f"sqlite:///{path}", tmp_path, lock, strikes=5, **patience)
    verdict.keep(
        "at_least_once",
        fault,
        store="sqlite",
        faults=5,
        recovery=recovery,
        note="; ".join(["for 1 s each", *(f"writers wait {s} s" for s in patience.values())]),
    )


async def test_its_disk_is_full_for_a_while(sqlite_template: Path, tmp_path: Path) -> None:
    with small_disk(megabytes=48) as disk:
        path = disk.path / "jobs.db"
        shutil.copyfile(sqlite_template, path)

        async def fill() -> None:
            disk.fill()
            await asyncio.sleep(1.5)
            disk.free()

        url = f"sqlite:///{path}"
        assert parse_url(url).path == str(path)
        recovery, verdict = await weather(url, tmp_path, fill, strikes=4)
    verdict.keep(
        "durable",
        "disk full",
        store="sqlite",
        faults=4,
        recovery=recovery,
        note="for 1.5 s each; `PRAGMA integrity_check` after it",
    )
