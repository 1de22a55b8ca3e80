"""`windrow calls`, as it is typed: real speech in, a transcript and what is made of it out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests import recordings
from windrow.cli.main import app
from windrow.queue import kinds


@pytest.fixture
def environment(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    url = f"sqlite:///{tmp_path}/jobs.db"
    if getattr(request, "param", None) == "beside":
        url = f"{request.getfixturevalue('make_bullmq_url')()}&rows={url}"
    monkeypatch.setenv("WINDROW_DATABASE_URL", url)
    monkeypatch.setenv("WINDROW_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(kinds, "_declared", {})  # what handlers declare stays in this test
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize(
    "environment", ["sqlite", pytest.param("beside", marks=pytest.mark.chaos)], indirect=True
)
def test_j4_a_call_is_heard_analysed_and_found(environment: Path) -> None:
    path = recordings.recorded_speech(environment)
    added = json.loads(ask("calls", "add", str(path), "--org", "acme", "--json"))
    assert (added["status"], added["org"], added["error"]) == ("done", "acme", None)
    assert {stage["state"] for stage in added["stages"]} == {"done"}
    assert [one["name"] for one in added["artifacts"]] == ["audio", "transcript"]
    assert "best of times" in added["summary"]

    shown = ask("calls", "show", added["id"], "--transcript")
    assert "transcribe_poll done" in shown
    assert "worst of times" in shown
    listed = json.loads(ask("calls", "list", "--org", "acme", "--json"))
    assert [call["id"] for call in listed] == [added["id"]]
    assert json.loads(ask("calls", "list", "--org", "somebody else", "--json")) == []
    found = ask("search", "best of times", "--tenant", "acme")
    assert f"call:{added['id']}" in found


def test_a_call_that_fails_says_why(environment: Path) -> None:
    path = recordings.not_audio(environment)
    said = ask("calls", "add", str(path), code=1)
    assert "neither audio nor video" in said
    [call] = json.loads(ask("calls", "list", "--status", "failed", "--json"))
    shown = json.loads(ask("calls", "show", call["id"], "--json"))
    assert shown["stages"][0]["state"] == "failed"
    assert "neither audio nor video" in shown["stages"][0]["message"]
    assert [stage["state"] for stage in shown["stages"][1:]] == ["waiting"] * 3


def test_a_call_can_be_left_to_a_worker(environment: Path) -> None:
    path = recordings.silence(environment, 2)
    added = json.loads(ask("calls", "add", str(path), "--no-wait", "--json"))
    assert added["status"] in ("pending", "extract_audio")
    assert "no such call" in ask("calls", "show", "nothing", code=1)
    assert "is not there" in ask("calls", "add", "nowhere.wav", code=1)
