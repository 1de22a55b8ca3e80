"""What `windrow worker` and its like write to stderr, as a new user reads it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from windrow import Queue

Windrow = Callable[..., subprocess.CompletedProcess[str]]
SHOP = """
import windrow

@windrow.handler("thumbnail", queue="images", max_attempts=1)
async def thumbnail(job):
    if job.payload == "gone":
        raise ValueError("no such file")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP, "utf-8")
    return tmp_path


@pytest.fixture
def windrow(folder: Path) -> Windrow:
    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        known = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        data = {"WINDROW_DATA_DIR": str(folder / "data")}
        return processes.run(*words, cwd=folder, environment={**known, **data, **variables})

    return run


def enqueue(folder: Path, kind: str, payload: Any = None, queue: str = "images") -> str:
    with Queue.sync(f"sqlite:///{folder}/windrow.db") as opened:
        return opened.enqueue(kind, payload, queue=queue, max_attempts=1).id


def messages(printed: subprocess.CompletedProcess[str]) -> list[str]:
    """Level and message of each line."""
    return [line.split(" ", 2)[2] for line in printed.stderr.splitlines()]


def test_the_first_lines_say_what_a_worker_serves(windrow: Windrow, folder: Path) -> None:
    enqueue(folder, "thumbnial")
    printed = windrow("worker", "shop", "--until-idle", "--name", "me")
    started, handlers, *_ = messages(printed)
    assert started == (
        f"INFO worker me started: database sqlite:///{folder}/windrow.db, queues: all, 10 at once"
    )
    assert handlers == "INFO handlers: thumbnail (shop.thumbnail)"
    [unserved] = [line for line in messages(printed) if "no registered worker runs" in line]
    assert unserved.startswith(
        "WARNING no registered worker runs kind 'thumbnial' from queue 'images'"
    )
    assert unserved.endswith("did you mean 'thumbnail'?")
    assert messages(printed)[-1] == "INFO worker me stopped"


def test_a_failed_run_is_one_line_and_completed_ones_are_shown_with_v(
    windrow: Windrow, folder: Path
) -> None:
    gone = enqueue(folder, "thumbnail", "gone")
    fine = enqueue(folder, "thumbnail")
    quiet = messages(windrow("worker", "shop", "--until-idle"))
    told = [line for line in quiet if gone in line or fine in line]
    assert len(told) == 1, quiet
    [line] = told
    assert line == (
        f"ERROR job {gone} thumbnail failed, attempt 1 of 1: ValueError: no such file; "
        "no attempt is left"
    )
    fine = enqueue(folder, "thumbnail")
    said = windrow("worker", "shop", "--until-idle", "-v")
    assert f"DEBUG job {fine} thumbnail completed in " in said.stderr


def test_the_log_can_be_json_by_option_and_by_setting(windrow: Windrow, folder: Path) -> None:
    for words, variables in (
        (["--log-format", "json"], {}),
        ([], {"WINDROW_LOG_FORMAT": "json", "WINDROW_LOG_LEVEL": "info"}),
    ):
        gone = enqueue(folder, "thumbnail", "gone")
        printed = windrow("worker", "shop", "--until-idle", *words, **variables)
        records = [json.loads(line) for line in printed.stderr.splitlines()]
        [failed] = [record for record in records if record.get("event") == "job.failed"]
        assert (failed["level"], failed["job_id"], failed["kind"]) == ("ERROR", gone, "thumbnail")
        assert (failed["error_type"], failed["error"]) == ("ValueError", "no such file")


LOUD = """
import sys, threading, warnings
from logging import getLogger
import windrow

@windrow.handler("thread", max_attempts=1)
def thread(job):
    made = threading.Thread(target=lambda: 1 / 0)
    made.start()
    made.join()

@windrow.handler("process", run="process", max_attempts=1)
def process(job):
    getLogger("shop").warning("in the process")
    warnings.warn("a warning there")

@windrow.handler("circular", max_attempts=1)
def circular(job):
    made = {}
    made["made"] = made
    getLogger("shop").info("%d", "no number", extra={"made": made, "nan": float("nan")})
"""


def test_every_line_is_json_whatever_handlers_do(windrow: Windrow, folder: Path) -> None:
    (folder / "loud.py").write_text(LOUD, "utf-8")
    for kind in ("thread", "process", "circular"):
        enqueue(folder, kind)

    printed = windrow("worker", "loud", "--until-idle", "--log-format", "json", "-v")

    lines = [json.loads(line) for line in printed.stderr.splitlines()]
    assert sum(line.get("event") == "job.completed" for line in lines) == 3
    said = " ".join(line["message"] for line in lines)
    for text in ("uncaught exception in thread", "in the process", "a warning there", "%d (its "):
        assert text in said


def test_a_command_that_cannot_start_says_so_in_json(windrow: Windrow, folder: Path) -> None:
    (folder / "broken.py").write_text("import nowhere_at_all", "utf-8")

    printed = windrow("worker", "broken", "--log-format", "json", "--processes", "2")

    [line] = [json.loads(line) for line in printed.stderr.splitlines()]
    assert printed.returncode == 2
    assert (line["event"], line["exit_code"]) == ("command.failed", 2)
    assert "No module named 'nowhere_at_all' (broken.py, line 1)" in line["message"]


def test_the_level_is_chosen_by_option(windrow: Windrow, folder: Path) -> None:
    enqueue(folder, "thumbnail")
    printed = windrow("worker", "shop", "--until-idle", "--log-level", "warning")
    assert printed.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--log-format", "yaml"], "error: log_format must be one of text, json, not 'yaml'"),
        (["--log-level", "loud"], "error: log_level must be one of debug, info, warning"),
    ],
)
def test_a_format_or_level_that_there_is_not_is_refused(
    windrow: Windrow, words: list[str], said: str
) -> None:
    printed = windrow("worker", "shop", "--until-idle", *words)
    assert (printed.returncode, printed.stderr.startswith(said)) == (2, True), printed.stderr


def test_what_looks_like_a_mistake_is_said_once_however_many_processes_there_are(
    windrow: Windrow, folder: Path
) -> None:
    words = ["worker", "shop", "--until-idle", "--queues", "imagse", "--processes", "2"]
    printed = windrow(*words, WINDROW_DATABSE_URL="x", WINDROW_DATABASE_URL="sqlite:///new.db")
    lines = messages(printed)
    for line in (
        f"INFO made the database sqlite:///{folder}/new.db",
        "WARNING WINDROW_DATABSE_URL is not a setting; did you mean WINDROW_DATABASE_URL?",
        "WARNING queue 'imagse' has never had a job; did you mean 'images'?",
        "INFO handlers: thumbnail (shop.thumbnail)",
        "INFO starting 2 worker processes",
    ):
        assert lines.count(line) == 1, printed.stderr


@pytest.mark.parametrize("count", ["1", "3"])
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import windrow\n\nwindrw.handler", "NameError: name 'windrw' is not defined"),
        ("x = 1\n\ndef broken(:\n", "SyntaxError: invalid syntax"),
        (
            "import windrow\n\nimport no_such_package",
            "ModuleNotFoundError: No module named 'no_such",
        ),
        (
            "import windrow\n\n@windrow.handler('x', run='thread')\nasync def x(job): ...",
            "ConfigError: an async function runs in the event loop",
        ),
    ],
)
def test_a_mistake_in_a_module_is_one_line_with_file_line_and_module(
    windrow: Windrow, folder: Path, code: str, said: str, count: str
) -> None:
    (folder / "broken.py").write_text(code, "utf-8")
    printed = windrow("worker", "shop", "broken", "--processes", count, "--until-idle")
    assert printed.returncode == 2
    [line] = printed.stderr.splitlines()
    assert line.startswith(f"error: module 'broken' cannot be imported: {said}")
    assert line.endswith("(broken.py, line 3)")
    assert line.count("broken.py") == 1
    assert line.count("line 3") == 1


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("os", "has no @handler: decorate a function with @handler('kind')"),
        ("shpo", "there is no module 'shpo' to take handlers from; did you mean 'shop'?"),
        ("shop.py", "there is no module 'shop.py' to take handlers from: name it as in an import"),
        ("shop.more", "there is no module 'shop.more' to take handlers from"),
    ],
)
def test_a_module_without_handlers_or_that_there_is_not_is_named(
    windrow: Windrow, module: str, said: str
) -> None:
    printed = windrow("worker", module, "--until-idle")
    assert printed.returncode == 2
    [line] = printed.stderr.splitlines()
    assert said in line


def test_two_handlers_of_one_kind_are_named_with_their_lines(
    windrow: Windrow, folder: Path
) -> None:
    (folder / "again.py").write_text(SHOP, "utf-8")
    printed = windrow("worker", "shop", "again", "--processes", "2")
    [line] = printed.stderr.splitlines()
    assert "two handlers for the kind 'thumbnail': shop.thumbnail (" in line
    assert "shop.py, line 4) and again.thumbnail (" in line


def test_a_wrong_url_is_one_line_however_many_processes_there_are(windrow: Windrow) -> None:
    printed = windrow(
        "worker", "shop", "--processes", "3", WINDROW_DATABASE_URL="postgre://ann:secret@db/x"
    )
    assert printed.returncode == 2
    [line] = printed.stderr.splitlines()
    assert line.startswith("error: cannot open a database at ")
    assert "secret" not in line


def test_serve_and_mcp_take_the_same_options(windrow: Windrow) -> None:
    for command in ("serve", "mcp"):
        printed = windrow(command, "--log-format", "yaml")
        assert printed.returncode == 2
        assert "log_format must be one of text, json" in printed.stderr
