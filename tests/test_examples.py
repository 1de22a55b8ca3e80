"""The programs in examples/ run as they are, on every store, and print what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

EXPECTED = {
    "hello.py": """\
completed: Hello, Ada!
completed: Hello, Grace!
completed: Hello, Edsger!
""",
    "pipeline.py": """\
fetched https://example.org/hay (attempt 1)
fetched https://example.org/baler (attempt 2)
indexed https://example.org/hay: Hay Grass that was cut and dried.
indexed https://example.org/baler: Baler It picks the windrow up.
words in the index: 13
""",
    "fan_out.py": """\
completed /
completed /about
completed /blog
completed /blog/one
completed /blog/two
completed /docs
completed /docs/reference
completed /docs/start
failed    /gone  404 Not Found
100 %: {'cancelled': 0, 'completed': 8, 'failed': 1, 'total': 9}
""",
    "cron.py": """\
nightly: 30 2 * * * in Europe/Berlin, next at HH:MM UTC
tick for the slot TIME, every second
tick for the slot TIME, every second
tick for the slot TIME, every second
every slot once: True
""",
    "transactional.py": """\
rolled back: Bob ordered nothing
jobs before the worker ran: 2
orders: 2
invoice: Ada owes 12.00
invoice: Grace owes 3.50
""",
    "fastapi_app.py": """\
202 {'state': 'completed', 'result': 'yah'}
202 {'state': 'completed', 'result': 'wordniw'}
404 no such job: 00000000-0000-7000-8000-000000000000
""",
    "django_shop/demo.py": """\
Ada: 201
Bob: 400 nothing was ordered
Grace: 201
2 orders
invoice: Ada owes 12.00
invoice: Grace owes 3.50
""",
}
# Stages of different pages run beside each other.
IN_ANY_ORDER = {"pipeline.py"}


def test_every_example_is_expected_to_print_something() -> None:
    programs = [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*/demo.py")]
    assert {path.relative_to(EXAMPLES).as_posix() for path in programs} == set(EXPECTED)
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    assert [name for name in EXPECTED if f"]({name})" not in listed] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_prints_what_it_promises(name: str, store_url: str) -> None:
    printed = steady(run(name, store_url))
    if name in IN_ANY_ORDER:
        assert sorted(printed.splitlines()) == sorted(EXPECTED[name].splitlines())
    else:
        assert printed == EXPECTED[name]


def test_an_example_needs_no_database_to_be_named(tmp_path: Path) -> None:
    assert run("hello.py", cwd=tmp_path) == EXPECTED["hello.py"]
    assert list(tmp_path.iterdir()) == []


def run(name: str, *arguments: str, cwd: Path | None = None) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def steady(printed: str) -> str:
    """Without the times of this run. On a slow machine one more slot comes before the worker is
    told to stop."""
    printed = re.sub(r"next at \d\d:\d\d", "next at HH:MM", printed)
    printed = re.sub(r"slot \d{4}-\d\d-\d\dT[\d:+]+", "slot TIME", printed)
    return re.sub(r"((tick for .*\n){3})(tick for .*\n)+", r"\1", printed)
