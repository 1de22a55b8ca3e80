"""Commands are kind: shells complete them, wrong uses are one sentence that says what helps, and
Ctrl-C ends them without a word of Python's."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.conftest import Windrow
from windrow import Queue
from windrow.__main__ import INTERRUPTED, main
from windrow.cli.lazy import load
from windrow.cli.main import COMMANDS, arranged
from windrow.queue.job import JobState

UNKNOWN = "0190a0b0-0000-7000-8000-000000000000"
BIN = Path(sys.executable).parent


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    """Also those of commands that are loaded only when they are called."""
    script = """
        eval "$(windrow --show-completion bash)"
        try() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            _windrow_completion windrow
            echo "${COMPREPLY[*]}"
        }
        try windrow jobs li
        try windrow db dialect install --dat
    """
    printed = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"},
    )
    assert printed.stdout.split() == ["list", "--database"]
    assert list(tmp_path.iterdir()) == []  # a completion begins nothing


@pytest.mark.usefixtures("only_sqlite")
@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ("bash", "complete -o default -F _windrow_completion windrow"),
        ("zsh", "#compdef windrow"),
        ("fish", "complete --command windrow"),
    ],
)
def test_completion_is_shown_for_the_shell_that_is_named(
    process: Windrow, shell: str, said: str
) -> None:
    assert said in process("--show-completion", shell).stdout


@pytest.mark.usefixtures("only_sqlite")
@pytest.mark.parametrize(
    "words", ["--debug jobs show x", "jobs --debug show x", "jobs show x --debug"]
)
def test_debug_counts_wherever_it_stands(process: Windrow, words: str) -> None:
    assert "Traceback" in process(*words.split()).stderr
    assert "Traceback" not in process(*(word for word in words.split() if "-" not in word)).stderr


def test_what_stands_behind_two_dashes_is_left_as_it_is() -> None:
    assert arranged(["search", "--", "--debug"]) == ["search", "--", "--debug"]
    assert arranged(["search", "x", "--debug", "--", "y"]) == [
        *("--debug", "search", "x", "--", "y"),
    ]


@pytest.mark.usefixtures("only_sqlite")
def test_help_gives_no_type_to_flags_and_names_arguments_plainly(windrow: Windrow) -> None:
    for words in (["--help"], ["search", "--help"], ["jobs", "retry", "--help"]):
        assert "<bool>" not in windrow(*words).stdout
    assert re.search(r"search \[OPTIONS\] QUERY…$", windrow("search", "--help").stdout, re.M)
    assert "retry [OPTIONS] [JOB_IDS…]" in windrow("jobs", "retry", "--help").stdout
    assert "park [OPTIONS] KEY [TIME]" in windrow("limits", "park", "--help").stdout


@pytest.mark.usefixtures("only_sqlite")
@pytest.mark.parametrize("command", ["scrape", "add", "crawl", "map"])
def test_private_address_is_refused_with_what_allows_it(windrow: Windrow, command: str) -> None:
    printed = windrow(command, "http://127.0.0.1:9/")
    assert printed.returncode == 1
    assert "a private network, which is not allowed" in printed.stderr
    assert "WINDROW_ALLOW_PRIVATE_NETWORKS" in printed.stderr.splitlines()[-1]
    assert "WINDROW_ALLOW_HOSTS" in printed.stderr.splitlines()[-1]


@pytest.mark.usefixtures("only_sqlite")
@pytest.mark.parametrize("command", ["scrape", "crawl", "map"])
def test_word_that_is_no_address_is_refused_before_anything_begins(
    windrow: Windrow, command: str
) -> None:
    printed = windrow(command, "notaurl")
    assert printed.returncode == 2
    assert printed.stderr.startswith("error: 'notaurl' is no address of the web: ")
    assert windrow("jobs", "list", "--json").stdout.strip() == "[]"


WRONG = [
    ("frobnicate", 2, "No such command 'frobnicate'"),
    ("jobs list --stat failed", 2, "Possible options: --state"),
    ("jobs show", 2, "Missing argument 'ID'"),
    ("queues set q --max-depth no", 2, "is not a valid int"),
    ("jobs list -d mysql://x", 2, "use sqlite:///path/to/jobs.db, postgresql://"),
    ("jobs list -d postgresql://127.0.0.1:1/x", 1, "hint: see whether the database runs"),
    ("db migrate -d sqlite:///no/where/x.db", 2, "the folder 'no/where' does not exist"),
    ("worker no_such_module --until-idle", 2, "there is no module 'no_such_module'"),
    ("add nowhere", 1, "hint: see whether the path is right"),
    ("search --mode sideways x", 2, "--mode must be one of hybrid"),
    ("crawl ftp://example.org", 2, "only http and https are fetched"),
    ("serve --host 0.0.0.0", 2, "run `windrow keys create`, or serve on 127.0.0.1"),
    ("schedules add x y --cron bad", 1, "must have five fields: minute, hour"),
    ("schedules pause nobody", 1, "hint: `windrow schedules list` shows"),
    ("sources show nobody", 1, "hint: `windrow sources list` shows"),
    ("calls show nobody", 1, "hint: `windrow calls list` shows"),
    ("keys revoke nobody", 1, "hint: `windrow keys list` shows"),
    ("credentials remove nobody", 1, "hint: `windrow credentials list` shows"),
    (f"groups show {UNKNOWN}", 1, "hint: `windrow groups list` shows"),
    (f"jobs wait {UNKNOWN}", 1, "hint: `windrow jobs list` shows"),
    ("jobs retry", 2, "or say which by options, or --all"),
    ("limits set k --active -1", 1, "active must be an integer from 0"),
    ("events --after zzz", 1, "hint: a cursor is what an event came with"),
    ("db copy --to nowhere", 2, "use sqlite:///path/to/jobs.db"),
    ("db dialect install klingon", 2, "there is no dialect 'klingon'"),
    ("migrate legacy --from nowhere.db", 1, "there is no file"),
    ("init nowhere", 2, "there is no folder nowhere"),
    ("batch", 2, "give a URL, or --resume ID"),
]


@pytest.mark.usefixtures("only_sqlite")
def test_wrong_uses_are_explained(windrow: Windrow, tmp_path: Path) -> None:
    for line, code, said in WRONG:
        printed = windrow(*line.split(), WINDROW_DATA_DIR=str(tmp_path / "data"))
        words = " ".join(printed.stderr.split())
        assert (printed.returncode, said in words) == (code, True), f"{line}: {printed.stderr}"
        assert "Traceback" not in printed.stderr
        if "Usage:" not in printed.stderr:  # else it is Typer's, with how to get help
            sentence, *hint = printed.stderr.splitlines()
            assert sentence.startswith("error: "), line
            assert all(one.startswith("hint: ") for one in hint), line


@pytest.fixture
def only_sqlite(store_name: str) -> None:
    """What is wrong here is wrong before a database is asked, or on any."""
    if store_name != "sqlite":
        pytest.skip("said in the same way on every store")


def test_ctrl_c_while_it_starts_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "windrow.cli.main", SimpleNamespace(main=interrupt))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == INTERRUPTED


HANDLERS = """
from windrow import handler

@handler("long")
async def long(job):
    import asyncio
    print("it runs", flush=True)
    await asyncio.sleep(600)
"""


def test_ctrl_c_hands_back_what_a_worker_runs(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(HANDLERS, "utf-8")
    url = f"sqlite:///{tmp_path}/jobs.db"
    with Queue.sync(url) as queue:
        job = queue.enqueue("long")
        with started(tmp_path, "worker", "slow", "--grace", "0s") as worker:
            wait_for(worker, "it runs")
            worker.send_signal(signal.SIGINT)
            err = ends_quietly(worker)
        found = queue.get(job.id)
    assert (found.state, found.crashes, found.attempts) == (JobState.READY, 0, 0), err


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--port", "0"], "Windrow is served at"),
        (["serve", "--port", "0", "--workers", "2"], "Windrow is served at"),
        (["watch", "folder"], "looked at"),
        (["events", "--follow", "--after", "0"], "job.created"),
        (["worker", "web", "--processes", "2"], "started"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_ctrl_c_is_clean_in_what_runs_for_ever(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "note.md").write_text("# Note\n\nsome words\n", "utf-8")
    with Queue.sync(f"sqlite:///{tmp_path}/jobs.db") as queue:
        queue.enqueue("nobody.runs.this")
    with started(tmp_path, *words) as process:
        wait_for(process, said)
        process.send_signal(signal.SIGINT)
        ends_quietly(process)


@pytest.mark.chaos
def test_ctrl_c_leaves_an_add_that_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for number in range(300):
        page = tmp_path / "folder" / f"{number}.md"
        page.write_text(f"# Page {number}\n\n{'words of it ' * 200}\n", "utf-8")
    database = Queue.sync(f"sqlite:///{tmp_path}/jobs.db")
    with database as queue, started(tmp_path, "add", "folder") as process:
        wait_until(lambda: len(queue.list(kind="file.ingest", state="completed")) > 5, process)
        process.send_signal(signal.SIGINT)
        ends_quietly(process)
    with started(tmp_path, "add", "folder") as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, "300 documents" in out) == (0, True), err


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own; ended at the end, whatever came of it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "windrow", *words],
        cwd=folder,
        env=os.environ
        | {
            "WINDROW_DATABASE_URL": f"sqlite:///{folder}/jobs.db",
            "WINDROW_DATA_DIR": str(folder / "data"),
            "PYTHONUNBUFFERED": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if words[0] in ("worker", "serve") else subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[str], said: str) -> None:
    assert process.stdout is not None
    told = []
    for line in process.stdout:
        told.append(line)
        if said in line:
            return
    pytest.fail(f"it ended before it said {said!r}: {''.join(told)}")


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not is_so():
        try:
            pytest.fail(f"it ended with {process.wait(0.05)}")
        except subprocess.TimeoutExpired:
            continue


def ends_quietly(process: subprocess.Popen[str]) -> str:
    """What it still says, which is nothing of Python's."""
    out, err = process.communicate(timeout=60)
    said = f"{out}{err or ''}"
    assert process.returncode in (0, INTERRUPTED), said
    assert "Traceback" not in said
    return said


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
        return
    for word, one in below.items():
        yield from _commands(one, f"{name} {word}")


# It writes a new file, and refuses to write over one that is there.
WITHOUT_YES = {"db restore"}


def test_every_command_that_deletes_cancels_or_moves_waits_for_yes() -> None:
    found = [pair for name, one in COMMANDS.items() for pair in _commands(load(name, one), name)]
    assert len(found) > 60
    destructive = re.compile(
        r"\b(remove|revoke|cancel|retry|clean|disable|copy|prune|restore)$|^migrate "
    )
    waiting = {name for name, one in found if "--yes" in {o for p in one.params for o in p.opts}}
    assert {name for name, _ in found if destructive.search(name)} - WITHOUT_YES <= waiting
    assert not WITHOUT_YES & waiting


def test_a_misspelled_setting_is_named_by_any_command(windrow: Windrow) -> None:
    printed = windrow("jobs", "list", WINDROW_DATABSE_URL="sqlite:///other.db")
    assert printed.returncode == 0
    assert printed.stderr.splitlines() == [
        "warning: WINDROW_DATABSE_URL is not a setting; did you mean WINDROW_DATABASE_URL?"
    ]
