"""`windrow add` and `windrow sources`, as a person types them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest

from tests.cli.conftest import Read, Windrow
from tests.web.conftest import own_kinds, site, site_server  # noqa: F401
from tests.web.site import Site
from windrow import Queue
from windrow.ids import new_id
from windrow.pipelines.web.payloads import SCRAPE, SCRAPE_ROW
from windrow.queue.records import WorkerRow

ALLOWED = {"WINDROW_ALLOW_HOSTS": "127.0.0.0/8"}


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WINDROW_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for name, text in {"a.md": "# Apples\n\nred", "sub/b.md": "# Pears", "c.py": "x = 1"}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return folder


def test_folder_is_added_listed_shown_refreshed_and_removed(
    windrow: Windrow, read: Read, docs: Path
) -> None:
    added = read("add", str(docs), "--pattern", "*.md", "--tag", "fruit", "--title", "Fruit")
    assert (added["kind"], added["documents"], added["result"]["new"]) == ("folder", 2, 2)
    assert (added["tags"], added["jobs"], added["searchable"]) == (["fruit"], 0, 2)
    assert "Apples" in windrow("search", "red apples").stdout

    [listed] = read("sources", "list")
    assert listed["id"] == added["id"]
    assert read("sources", "show", str(docs))["options"] == {"patterns": ["*.md"]}
    assert "Fruit" in windrow("sources", "list").stdout

    (docs / "a.md").unlink()
    (docs / "new.md").write_text("# New")
    refreshed = read("sources", "refresh", "Fruit")
    assert refreshed["documents"] == 2

    kept = windrow("sources", "remove", added["id"])
    assert "add --yes" in kept.stdout
    assert read("sources", "remove", added["id"], "--yes")["is_removed"]
    assert read("sources", "list") == []


def test_folder_is_added_beside_a_worker_that_takes_other_jobs(
    windrow: Windrow, store_url: str, docs: Path
) -> None:
    """The command works itself then, and leaves rows that others insert to workers."""

    async def prepare() -> str:
        async with Queue.open(store_url) as queue:
            other = WorkerRow(
                new_id(), "other", socket.gethostname(), os.getpid(), None, (SCRAPE,), 1
            )
            await queue.store.register_worker(other, 600)
            row = await queue.enqueue(SCRAPE_ROW, {"url": "http://127.0.0.1/"}, queue=SCRAPE_ROW)
            return row.id

    row_id = asyncio.run(prepare())
    added = windrow("add", str(docs))
    assert (added.returncode, added.stderr) == (0, "")
    assert "Pears" in windrow("search", "pears").stdout
    assert '"ready"' in windrow("jobs", "show", row_id, "--json").stdout


def test_skipped_and_redacted_files_are_listed_with_the_reason(
    windrow: Windrow, read: Read, docs: Path
) -> None:
    value = "q7RtZ2mK" + "9xLw4VbN"
    (docs / "prod.env").write_text(f"TOKEN={value}")
    (docs / "app.yaml").write_text(f"token: {value}")
    added = read("add", str(docs), "--title", "Fruit")

    shown = windrow("sources", "show", "Fruit", "--limit", "1")
    assert "prod.env" not in shown.stdout
    assert "app.yaml" in shown.stdout
    assert "--after app.yaml" in shown.stderr
    rest = read("sources", "show", "Fruit", "--after", "app.yaml")
    assert [one["uri"] for one in rest["skipped_files"]] == ["prod.env"]
    assert rest["skipped_by_reason"] == {"redacted": 1, "secret": 1}
    assert value not in str([shown.stdout, rest, read("search", value)])

    again = read("add", str(docs), "--include-secrets")
    assert again["documents"] == added["documents"] + 1
    assert read("sources", "show", "Fruit")["skipped_files"] == []
    assert value in windrow("search", value).stdout


def test_file_note_and_library_are_added(windrow: Windrow, read: Read, docs: Path) -> None:
    assert read("add", str(docs / "a.md"))["kind"] == "file"
    assert read("add", "-", input="# Remember\n\nthe milk")["kind"] == "note"
    library = read("add", "library:msgspec")
    assert library["kind"] == "library"
    assert library["documents"] > 3
    printed = windrow("add", str(docs / "c.py"), "--quiet")
    assert printed.stdout.endswith("c.py  1 documents\n")


def test_what_cannot_be_added_is_said(windrow: Windrow, read: Read, docs: Path) -> None:
    for words, complaint in (
        (["add", str(docs / "nowhere")], "nowhere is not there"),
        (["add", "http://"], "no address of the web"),
        (["add", "library:no-such-thing"], "no-such-thing is not there"),
        (["add", "-"], "nothing in this note"),
        (["watch", str(docs / "a.md")], "not to be watched"),
        (["watch", str(docs), str(docs / "a.md")], "not to be watched"),
        (["sources", "show", "nothing"], "no source 'nothing'"),
        (["sources", "import", str(docs / "nowhere")], "nowhere"),
        (["sources", "import", str(docs / "a.md")], "line 1"),
    ):
        printed = windrow(*words)
        assert printed.returncode != 0, words
        assert complaint in printed.stderr, printed.stderr
        assert "Traceback" not in printed.stderr
    assert read("sources", "list") == [], "and nothing is left of it"


def test_site_is_added_and_its_pages_are_documents(
    windrow: Windrow,
    read: Read,
    site: Site,  # noqa: F811
) -> None:
    site.page("/", links=["/a", "/b"])
    site.page("/a")
    site.page("/b")

    added = read("add", site.url, "--every", "7d", **ALLOWED)

    assert (added["kind"], added["documents"]) == ("site", 3)
    assert added["refresh_seconds"] == 7 * 86_400
    [schedule] = read("schedules", "list")
    assert schedule["kind"] == "source.refresh"
    assert read("add", f"{site.url}/a", "--page", **ALLOWED)["documents"] == 1

    site.page("/", links=["/a"])
    refreshed = read("sources", "refresh", added["id"], **ALLOWED)
    assert refreshed["documents"] == 2
    read("sources", "remove", added["id"], "--yes")
    assert read("schedules", "list") == []


def test_source_is_exported_and_imported(
    windrow: Windrow, read: Read, docs: Path, tmp_path: Path
) -> None:
    id = read("add", str(docs))["id"]
    lines = windrow("sources", "export", id).stdout.splitlines()
    first = json.loads(lines[0])
    assert first["source"]["uri"] == str(docs)
    assert len(lines) == 4
    file = tmp_path / "docs.jsonl"
    file.write_text("\n".join(lines))

    assert windrow("sources", "export", id, "--out", str(tmp_path / "md")).returncode == 0
    assert "# Pears" in (tmp_path / "md" / "sub" / "b.md").read_text()
    read("sources", "remove", id, "--yes")
    taken = read("sources", "import", str(file))

    assert taken == {"sources": 1, "documents": len(lines) - 1}
    assert read("sources", "show", id)["documents"] == len(lines) - 1
    again = windrow("sources", "import", str(file))
    assert "A worker (`windrow worker` or `windrow serve`) makes them searchable." in again.stdout
    assert windrow("worker", "--until-idle").returncode == 0
    assert sorted(windrow("sources", "export", id).stdout.splitlines()) == sorted(lines)
    assert {json.loads(line)["document"]["dated_at"] for line in lines[1:]} == {
        "2023-11-14T22:13:20Z"
    }
    dated = windrow("search", "apples", "--since", "2023-11-14", "--until", "2023-11-15")
    assert "Apples" in dated.stdout


def test_search_takes_a_source_by_any_of_its_names(
    windrow: Windrow, read: Read, docs: Path, tmp_path: Path
) -> None:
    id = read("add", str(docs), "--title", "Fruit")["id"]
    (tmp_path / "other.md").write_text("# Apples of others")
    read("add", str(tmp_path / "other.md"))

    for name in (id, id[:6], "Fruit", str(docs)):
        found = read("search", "apples", "--source", name)["results"]
        assert {one["source"] for one in found} == {id}, name
    unknown = windrow("search", "apples", "--source", "Vegetables")
    assert unknown.returncode != 0
    assert "no source 'Vegetables'" in unknown.stderr
    assert "windrow sources list" in unknown.stderr


def test_one_note_is_removed_and_the_others_stay(windrow: Windrow, read: Read) -> None:
    for text in ("# Milk\n\nbuy some", "# Hay\n\nturn it"):
        note = read("add", "-", input=text)
    [id] = {one["document"] for one in read("search", "milk")["results"] if "Milk" in one["title"]}

    kept = windrow("sources", "remove", note["id"], "--document", id)
    assert "would remove Milk; add --yes" in kept.stdout
    removed = read("sources", "remove", note["id"], "--document", id, "--yes")
    assert (removed["id"], removed["is_removed"]) == (id, True)

    assert read("sources", "show", note["id"])["documents"] == 1
    assert "Milk" not in windrow("search", "milk").stdout
    again = windrow("sources", "remove", note["id"], "--document", id, "--yes")
    assert again.returncode != 0
    assert "Traceback" not in again.stderr
