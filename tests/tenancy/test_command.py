"""`windrow db rls`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from tests.tenancy.conftest import Tenancy
from windrow.cli.main import app


def windrow(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


def test_command_switches_on_and_off_and_tells(tenancy: Tenancy) -> None:
    database = ("--database", tenancy.url)
    assert "add --yes" in windrow("db", "rls", "disable", *database)[1]
    assert "is on for" in windrow("db", "rls", "status", *database)[1]
    assert windrow("db", "rls", "disable", "--yes", *database)[0] == 0
    code, text = windrow("db", "rls", "status", *database)
    assert (code, "is off" in text) == (0, True)
    assert windrow("db", "rls", "enable", *database)[0] == 0
    code, text = windrow("db", "rls", "status", *database)
    assert (code, "is on for" in text, "acme" in text) == (0, True, True)


def test_status_fails_when_something_is_open(tenancy: Tenancy) -> None:
    with psycopg.connect(tenancy.url, autocommit=True) as owner:
        owner.execute("CREATE VIEW public.all_jobs AS SELECT * FROM windrow.job")
    code, text = windrow("db", "rls", "status", "--database", tenancy.url, "--json")
    assert code == 1
    assert json.loads(text)["problems"] == ["view all_jobs is not security_invoker"]


@pytest.mark.parametrize("verb", ["enable", "disable", "status"])
def test_command_says_why_it_is_not_for_sqlite(tmp_path: Path, verb: str) -> None:
    code, text = windrow("db", "rls", verb, "--database", f"sqlite:///{tmp_path / 'jobs.db'}")
    assert code != 0
    assert "SQLite has no roles" in text
