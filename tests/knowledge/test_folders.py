"""Folders: one look enqueues what differs, and nothing more."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.knowledge.desk import COLLECTION, Desk
from windrow import Queue
from windrow.catalog import Catalog
from windrow.pipelines.knowledge.items import QUEUE
from windrow.queue.job import JobState

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


async def test_u8_folder_becomes_documents(desk: Desk) -> None:
    desk.write("README.md", "# Title\n\nwords")
    desk.write("src/app.py", "def main(): pass\n")
    desk.write("src/logo.png", b"\x89PNG")
    desk.write("node_modules/x/index.js", "x")

    result = await desk.scan()

    assert result["new"] == 2
    assert (result["left_out"], result["skipped"]) == ({"ignored": 1}, 1)
    assert await desk.uris() == ["README.md", "src/app.py"]
    readme, app, logo = await desk.documents()
    assert logo.skipped == "binary file"
    assert (readme.title, readme.language, readme.branch) == ("Title", "markdown", "")
    assert (app.title, app.language, app.metadata["file_type"]) == ("app.py", "python", "code")
    assert await desk.text("src/app.py") == "def main(): pass\n"


async def test_u8_second_scan_of_an_unchanged_folder_enqueues_nothing(desk: Desk) -> None:
    for number in range(30):
        desk.write(f"d{number % 3}/f{number}.md", f"text {number}")
    desk.write("empty.md", "")
    desk.write("blob.txt", b"\x00\x01\x02" * 50)
    desk.write("broken.ipynb", "{")
    desk.write("large.map", "generated")
    first = await desk.scan()
    assert (first["new"], first["skipped"]) == (33, 1)

    second = await desk.scan()

    assert {key: second[key] for key in ("new", "changed", "gone", "moved")} == {
        "new": 0,
        "changed": 0,
        "gone": 0,
        "moved": 0,
    }
    assert second["unchanged"] == 33
    assert len(desk.written) == 30
    reasons = {one.uri: one.skipped for one in await desk.documents() if one.skipped}
    assert reasons["empty.md"] == "empty"
    assert "no text" in (reasons["blob.txt"] or "")
    assert "cannot be read" in (reasons["broken.ipynb"] or "")
    assert "too large" in (reasons["large.map"] or "")


async def test_u8_scan_enqueues_only_what_is_new_changed_or_gone(desk: Desk) -> None:
    for name in ("a.md", "b.md", "c.md"):
        desk.write(name, f"first {name}")
    await desk.scan()
    desk.write("b.md", "second b.md", age=5)
    (desk.tree / "c.md").unlink()
    desk.write("d.md", "first d.md", age=9)

    result = await desk.scan()

    assert (result["new"], result["changed"], result["gone"], result["unchanged"]) == (1, 1, 1, 1)
    assert await desk.uris() == ["a.md", "b.md", "d.md"]
    assert await desk.text("b.md") == "second b.md"
    assert len(desk.written) == 5


async def test_touched_file_is_read_but_not_indexed_again(desk: Desk) -> None:
    desk.write("a.md", "same")
    await desk.scan()
    desk.write("a.md", "same", age=60)

    assert (await desk.scan())["changed"] == 1

    assert len(desk.written) == 1
    assert (await desk.scan())["changed"] == 0


async def test_moved_file_is_renamed_and_nothing_is_indexed_again(desk: Desk) -> None:
    path = desk.write("old/name.md", "the same words")
    await desk.scan()
    [before] = await desk.documents()
    (desk.tree / "new").mkdir()
    path.rename(desk.tree / "new" / "other.md")

    result = await desk.scan()

    assert (result["moved"], result["new"], result["gone"]) == (1, 0, 0)
    [after] = await desk.documents()
    assert (after.id, after.content) == (before.id, before.content)
    assert (after.uri, after.title) == ("new/other.md", "other.md")
    assert (await desk.scan())["unchanged"] == 1


async def test_folder_inside_a_source_is_scanned_as_a_part_of_it(desk: Desk) -> None:
    desk.write("docs/a.md", "a")
    desk.write("src/b.md", "b")
    desk.write(".windrowignore", "docs/secret.md\n")
    await desk.scan()
    desk.write("docs/new.md", "new")
    desk.write("docs/secret.md", "secret")
    desk.write("src/new.md", "not looked at")
    (desk.tree / "docs" / "a.md").unlink()

    result = await desk.scan(desk.tree / "docs")

    assert (result["new"], result["gone"]) == (1, 1)
    assert await desk.uris() == ["docs/new.md", "src/b.md"]
    assert len(await Catalog(desk.queue.database).sources.page()) == 1


async def test_options_of_a_folder_are_remembered(desk: Desk) -> None:
    desk.write("a.py", "a")
    desk.write("b.md", "b")
    desk.write("deep/er/c.py", "c")

    await desk.scan(patterns=["*.py"], recursive_depth=1)
    result = await desk.scan()

    assert await desk.uris() == ["a.py"]
    assert (result["left_out"], result["skipped"]) == ({"ignored": 1}, 1)


async def test_file_that_is_ignored_meanwhile_is_dropped_when_it_is_its_turn(desk: Desk) -> None:
    desk.write("a.md", "a")
    await desk.enqueue("folder", "scan", {"folder_path": str(desk.tree)})
    lease = await desk.queue.claim(QUEUE)
    assert lease.jobs
    await lease.release(lease.jobs[0])
    await desk.scan()
    desk.write("b.md", "b")
    id = await desk.enqueue("file", "ingest", {"file_path": str(desk.tree / "b.md")})
    desk.write(".gitignore", "b.md\n")

    await desk.work()

    assert (await desk.queue.get(id)).result == {"dropped": "ignored by the rules of its folder"}
    assert await desk.uris() == ["a.md"]


async def test_names_that_are_no_text_are_ingested_scanned_and_removed(desk: Desk) -> None:
    odd = os.fsencode(desk.tree) + b"/caf\xe9.md"
    with open(odd, "wb") as file:
        file.write(b"words")
    os.utime(odd, (1, 1))

    assert (await desk.scan())["new"] == 1
    assert await desk.uris() == ["file:caf%E9.md"]
    assert (await desk.scan())["unchanged"] == 1
    os.unlink(odd)
    assert (await desk.scan())["gone"] == 1
    assert await desk.documents() == []


async def test_vanished_root_keeps_what_is_known_and_notes_the_error(desk: Desk) -> None:
    desk.write("a.md", "a")
    await desk.scan()
    shutil.rmtree(desk.tree)

    job = await desk.run("folder", "scan", {"folder_path": str(desk.tree)})

    assert job.state == JobState.COMPLETED
    assert "is not there" in job.result["dropped"]
    assert await desk.uris() == ["a.md"]
    [source] = await Catalog(desk.queue.database).sources.page()
    assert "is not there" in (source.error or "")


async def test_folder_is_deleted_whole_or_in_part(desk: Desk) -> None:
    for name in ("a.md", "sub/b.md", "sub/c.md"):
        desk.write(name, name)
    await desk.scan()

    job = await desk.run("folder", "delete", {"folder_path": str(desk.tree / "sub")})
    assert job.result == {"deleted": 2}
    assert await desk.uris() == ["a.md"]

    await desk.run("folder", "delete", {"folder_path": str(desk.tree)})
    assert await desk.documents() == []
    assert await Catalog(desk.queue.database).sources.page() == []
    job = await desk.run("folder", "delete", {"folder_path": str(desk.tree)})
    assert "is in no source" in job.result["dropped"]


async def test_scan_whose_run_dies_has_done_nothing(desk: Desk, queue: Queue) -> None:
    desk.write("a.md", "a")
    await desk.enqueue("folder", "scan", {"folder_path": str(desk.tree)})
    lease = await queue.claim(QUEUE)
    [job] = lease.jobs
    from windrow.pipelines.knowledge.context import Knowledge
    from windrow.pipelines.knowledge.folders import scan_folder
    from windrow.pipelines.knowledge.items import FolderPayload

    await scan_folder(Knowledge(queue), job, FolderPayload(folder_path=str(desk.tree)))
    await job.tx.rollback()
    await lease.release(job)

    assert await Catalog(queue.database).sources.page() == []
    assert len(await desk.live()) == 1
    await desk.work()
    assert await desk.uris() == ["a.md"]


@needs_git
async def test_u9_branches_have_documents_of_their_own_and_share_contents(desk: Desk) -> None:
    desk.git("init", "-q", "-b", "main")
    desk.write("same.md", "on both")
    desk.write("other.md", "on main")
    desk.git("add", ".")
    desk.git("commit", "-q", "-mx")
    project = {"project_root": str(desk.tree), "git_remote": "https://u:s@h.example/x.git"}
    await desk.run("project", "ingest", project)
    desk.git("checkout", "-q", "-b", "feature")
    desk.write("other.md", "on feature", age=7)

    await desk.run("project", "scan", project)

    places = {(one.uri, one.branch): one for one in await desk.documents()}
    assert set(places) == {
        ("other.md", "feature"),
        ("other.md", "main"),
        ("same.md", "feature"),
        ("same.md", "main"),
    }
    assert all(one.is_searchable for one in places.values())
    shared = {places["same.md", branch].content for branch in ("main", "feature")}
    assert len(shared) == 1
    assert await desk.text("other.md", branch="main") == "on main"
    assert len(set(desk.written)) == 3  # the same words were not written twice
    catalog = Catalog(desk.queue.database)
    [source] = await catalog.sources.page()
    assert source.options["git_remote"] == "https://h.example/x.git"

    desk.git("commit", "-q", "-amy")
    desk.git("checkout", "-q", "main")
    desk.git("branch", "-q", "-D", "feature")
    await desk.run("project", "scan", project)
    assert {one.branch for one in await desk.documents()} == {"main"}
    [source] = await catalog.sources.page()
    assert source.kind == "project"
    assert source.collection == COLLECTION


@pytest.mark.parametrize("files", [2_000, pytest.param(20_000, marks=pytest.mark.chaos)])
async def test_u8_large_tree_is_scanned_twice_and_the_second_time_nothing_is_read(
    desk: Desk, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if desk.queue.store.capabilities.many_machines:
        files //= 10  # the same statements: once is enough for the time it takes
    for number in range(files):
        desk.write(f"d{number % 50}/f{number}.md", f"text {number}")
    await desk.enqueue("folder", "ingest", {"folder_path": str(desk.tree)})
    await desk.work()
    [counts] = await Catalog(desk.queue.database).documents.count()
    assert counts.searchable == files

    def refuse(path: Path, most: int) -> None:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr("windrow.pipelines.knowledge.files.read_file", refuse)
    second = await desk.scan()

    assert second["unchanged"] == files
    assert await desk.live() == []
