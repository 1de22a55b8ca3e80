"""`windrow mcp` over stdin and stdout, alone: it works on what is added by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters
from typer.main import get_command

from tests.mcp.session import Session
from windrow import __version__
from windrow.cli.main import app
from windrow.mcp.tools import TOOLS

COMMAND = ("-m", "windrow", "mcp")


def variables(folder: Path) -> dict[str, str]:
    return {
        "WINDROW_DATABASE_URL": f"sqlite:///{folder / 'jobs.db'}",
        "WINDROW_DATA_DIR": str(folder / "data"),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    server = StdioServerParameters(
        command=sys.executable, args=[*COMMAND], env=variables(folder), cwd=folder
    )
    with Session(server) as session:
        yield session


@pytest.fixture(scope="module")
def note(session: Session) -> dict[str, Any]:
    text = "# Rivers\n\nThe Danube begins at Donaueschingen.\n\n" + "Water flows. " * 40
    return session.call("add_source", text=text, title="Rivers", tags=["geo"], wait_seconds=60)


def test_every_tool_says_what_it_does_takes_and_gives(session: Session) -> None:
    tools = session.list_tools()
    assert set(tools) == {
        "search",
        "read_document",
        "list_sources",
        "add_source",
        "queue_status",
        "job_status",
    }
    for tool in tools.values():
        assert len(tool.description) > 50
        assert tool.output_schema["type"] == "object"
        assert tool.annotations.read_only_hint == (tool.name != "add_source")
        assert "ctx" not in tool.input_schema["properties"]
    described = tools["search"].input_schema["properties"]
    assert described["mode"]["enum"] == ["hybrid", "semantic", "keyword", "exact"]
    assert tools["search"].input_schema["required"] == ["query"]
    assert (described["limit"]["minimum"], described["limit"]["maximum"]) == (1, 50)


def test_text_that_was_added_is_found_and_read_in_parts(
    session: Session, note: dict[str, Any]
) -> None:
    assert note["is_searchable"]
    assert note["state"] == "completed"

    found = session.call("search", query="where does the Danube begin")
    [hit] = [one for one in found["results"] if "Danube" in one["text"]]
    assert hit["title"] == "Rivers"

    first = session.call("read_document", document=hit["document"], length=30)
    assert first["text"].startswith("# Rivers")
    rest = session.call("read_document", document=hit["document"], start=first["next_start"])
    assert rest["next_start"] is None
    assert len(first["text"] + rest["text"]) == first["characters"]


def test_folder_that_was_added_is_found_by_its_paths(session: Session, folder: Path) -> None:
    tree = folder / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / "src" / "tide.py").write_text("def high_tide(port):\n    return moon(port) * 2\n")
    (tree / "readme.md").write_text("# Tides\n\nHow ports are flooded.\n")

    added = session.call("add_source", what=str(tree), title="Tides", wait_seconds=60)

    assert added["is_searchable"]
    assert added["source"]["documents"] == 2
    found = session.call("search", query="high tide of a port", source="Tides", path="src/*.py")
    assert [one["uri"] for one in found["results"]] == ["src/tide.py"]
    read = session.call("read_document", document="src/tide.py")
    assert read["language"] == "python"
    listed = session.call("list_sources")
    assert (added["source"]["id"], 2) in [(s["id"], s["documents"]) for s in listed["sources"]]


def test_jobs_and_queues_are_shown(session: Session, note: dict[str, Any]) -> None:
    job = session.call("job_status", job=note["job"])
    assert job["state"] == "completed"
    assert job["kind"] == "content.ingest"
    assert job["reasons"][0]["what"] == "it has completed"

    status = session.call("queue_status")
    assert status["workers"] == 1
    queues = {one["name"]: one["jobs"] for one in status["queues"]}
    assert queues["unified_queue"]["completed"] >= 1


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("read_document", {"document": "nowhere.md"}, "no document 'nowhere.md': there is none"),
        ("job_status", {"job": "00000000-0000-7000-8000-000000000000"}, "00000000-0000-7000"),
        ("job_status", {"job": "first"}, "first"),
        ("search", {"query": "  "}, "the query is empty"),
        ("search", {"query": "a", "mode": "odd"}, "'hybrid', 'semantic', 'keyword' or 'exact'"),
        ("search", {"query": "a", "source": "nobody's"}, 'no source "nobody\'s"'),
        ("add_source", {}, "either `what` or `text`"),
        ("add_source", {"what": "/nowhere/at/all"}, "/nowhere/at/all"),
        ("add_source", {"what": "http://"}, "no address of the web"),
    ],
)
def test_what_cannot_be_done_is_said(
    session: Session, tool: str, arguments: dict[str, Any], said: str
) -> None:
    assert said in session.fail(tool, **arguments)


def test_signal_ends_it_although_stdin_is_open_and_stdout_has_only_messages(
    tmp_path: Path,
) -> None:
    process = subprocess.Popen(
        [sys.executable, *COMMAND, "--verbose", "--no-worker"],
        env={**os.environ, **variables(tmp_path)},
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    process.stdin.write(json.dumps(hello).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert answer["result"]["serverInfo"]["version"] == __version__

    process.send_signal(signal.SIGTERM)

    assert process.wait(30) == 0
    assert process.stdout.read() == b""
    assert b"DEBUG" in process.stderr.read()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def test_guide_tells_of_every_tool_and_option() -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/mcp.md").read_text("utf-8")
    assert [name for name in TOOLS if f"| `{name}` |" not in guide] == []
    options = [name for one in get_command(app).commands["mcp"].params for name in one.opts]  # type: ignore[attr-defined]
    assert [name for name in options if name != "--help" and f"`{name}" not in guide] == []
