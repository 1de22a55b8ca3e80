"""ways.toml lists every way to insert, finish and claim jobs that the SQL of the stores shows."""

from __future__ import annotations

import re
import tomllib
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

from tests.size.figures import WAYS
from tests.size.source import SOURCE
from windrow.db.statements import load_sources, load_statement

# What a statement of a hot verb does to the tables of jobs.
WRITES = {
    "insert": re.compile(r"INSERT INTO windrow[._]job(_live)?\b"),
    "finish": re.compile(r"INSERT INTO windrow[._]job_finished\b"),
    "claim": re.compile(r"\bSET\s+state = 'active'"),
}
COPY = "copy_records_to_table"
LISTED = tomllib.loads(WAYS.read_text("utf-8"))
STORES = ("sqlite", "postgres")


@pytest.mark.parametrize("store", STORES)
def test_each_way_begins_at_a_function_that_is_there(store: str) -> None:
    for function, *_ in _ways(store):
        module, _, name = function.partition(":")
        found = import_module(f"windrow.queue.{store}.{module}")
        assert callable(reduce(getattr, name.split("."), found)), function


@pytest.mark.parametrize("store", STORES)
def test_each_statement_that_writes_jobs_belongs_to_a_way(store: str) -> None:
    listed = {statement for _, *statements in _ways(store) for statement in statements}

    assert _writing(store) - LISTED["none"].keys() == listed - {"COPY"}


@pytest.mark.parametrize("store", STORES)
def test_each_copy_belongs_to_a_way(store: str) -> None:
    listed = {way.partition(":")[0] for way, *statements in _ways(store) if "COPY" in statements}
    modules = _folder(store).glob("*.py")

    assert {path.stem for path in modules if COPY in path.read_text("utf-8")} == listed


def test_no_exception_is_left_over() -> None:
    assert LISTED["none"].keys() <= set().union(*map(_writing, STORES))


def _ways(store: str) -> list[list[str]]:
    return [way for verb in WRITES for way in LISTED[store][verb].values()]


def _writing(store: str) -> set[str]:
    return {
        name
        for name in load_sources(f"windrow.queue.{store}")
        if any(
            pattern.search(load_statement(f"windrow.queue.{store}", name).text)
            for pattern in WRITES.values()
        )
    }


def _folder(store: str) -> Path:
    return SOURCE / "queue" / store
