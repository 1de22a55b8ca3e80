"""The files that a job runs through on a real database are no more than their ratchets."""

from __future__ import annotations

import pytest

from tests.size import ratchet
from tests.size.figures import TRACED

TRACES = 3


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("name", [name for name in TRACED if TRACED[name].store == "sqlite"])
async def test_files_traced_on_sqlite_are_within_the_ratchet(name: str, store_url: str) -> None:
    await _check(name, store_url)


@pytest.mark.only_on("postgres")
@pytest.mark.parametrize("name", [name for name in TRACED if TRACED[name].store == "postgres"])
async def test_files_traced_on_postgres_are_within_the_ratchet(name: str, store_url: str) -> None:
    await _check(name, store_url)


async def _check(name: str, url: str) -> None:
    """Hold the smallest of a few traces: one that meets a retry or a stall shows more files."""
    traces = []
    for _ in range(TRACES):
        traces.append(set(await TRACED[name].trace(url)))
        complaint = ratchet.complaint(name, len(traces[-1]), ratchet.load().get(name))
        if complaint is None:
            return
    always = set.intersection(*traces)
    sometimes = set.union(*traces) - always
    pytest.fail(f"{complaint}\nalways: {sorted(always)}\nsometimes: {sorted(sometimes)}")
