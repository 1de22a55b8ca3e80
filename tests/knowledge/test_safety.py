"""What must not happen to files: stale rows, links and paths that lead elsewhere, and files that
are made to hurt."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.knowledge.desk import COLLECTION, Desk
from windrow import Job
from windrow.catalog import Catalog
from windrow.errors import InvalidOptions
from windrow.index.chunk import chunk
from windrow.ingest.files.content import read_file
from windrow.pipelines.knowledge.context import Knowledge, source_id
from windrow.pipelines.knowledge.files import ingest_files
from windrow.pipelines.knowledge.items import QUEUE, FilePayload
from windrow.queue.job import JobState
from windrow.queue.outcome import Snooze
from windrow.queue.store import Store
from windrow.services.exporting import export_folder, import_lines
from windrow.services.knowledge import AddOptions, add


async def _claim_file(desk: Desk, name: str) -> tuple[list[Job], list[FilePayload]]:
    """A worker's claim on a file of the tree, whose lease runs out."""
    path = str(desk.tree / name)
    await desk.enqueue("file", "ingest", {"file_path": path})
    jobs = (await desk.queue.claim([QUEUE], seconds=1)).jobs
    payloads = [msgspec.convert(job.payload, FilePayload) for job in jobs]
    return list(jobs), payloads


async def _let_run_out(jobs: list[Job], store: Store) -> None:
    await store.extend_leases([job.lease_token or "" for job in jobs], 0)
    assert len(await store.rescue_jobs()) == len(jobs)


async def test_run_that_dies_before_its_completion_is_run_again_and_doubles_nothing(
    desk: Desk, store: Store
) -> None:
    desk.write("a.md", "words")
    jobs, payloads = await _claim_file(desk, "a.md")
    await ingest_files(Knowledge(desk.queue), jobs, payloads)  # and its worker is gone

    [written] = await desk.documents()
    assert not written.is_searchable
    await _let_run_out(jobs, store)
    await desk.work()

    [document] = await desk.documents()
    assert (document.id, document.is_searchable) == (written.id, True)
    assert desk.written == [document.content]


async def test_worker_whose_lease_ran_out_writes_nothing_over_what_another_found(
    desk: Desk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk.write("a.md", "old words")
    old = read_file(path, 1000)
    jobs, payloads = await _claim_file(desk, "a.md")
    await _let_run_out(jobs, store)
    desk.write("a.md", "new words", age=60)
    await desk.work()

    with monkeypatch.context() as late:
        late.setattr("windrow.pipelines.knowledge.files.read_file", lambda path, most: old)
        outcomes = await ingest_files(Knowledge(desk.queue), jobs, payloads)

    assert outcomes == [Snooze(0)]
    [document] = await desk.documents()
    assert document.is_searchable
    assert await desk.text(document.uri) == "new words"


async def test_links_out_of_a_folder_are_not_followed_unless_that_is_wanted(
    desk: Desk, tmp_path: Path
) -> None:
    outside = tmp_path / "private"
    outside.mkdir()
    (outside / "secret.md").write_text("the secret")
    desk.write("a.md", "words")
    (desk.tree / "link.md").symlink_to(outside / "secret.md")
    (desk.tree / "linked").symlink_to(outside)
    assert (await desk.scan())["new"] == 1

    source = source_id(str(desk.tree))
    for name in ("link.md", "linked/secret.md"):
        path = f"{desk.tree}/{name}"
        job = await desk.run("file", "update", {"file_path": path, "source": source})
        assert "not followed" in job.result["dropped"], name
        assert await desk.uris() == ["a.md"], name

    options = AddOptions(collection=COLLECTION, walk={"follow_symlinks": True})
    await add(desk.queue, str(desk.tree), options)
    await desk.work()
    assert await desk.uris() == ["a.md", "link.md", "linked/secret.md"]


async def test_path_that_leads_out_of_its_source_fails_at_once(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("the secret")
    desk.write("a.md", "words")
    await desk.scan()

    path = f"{desk.tree}/sub/../../secret.md"
    source = source_id(str(desk.tree))
    job = await desk.run("file", "update", {"file_path": path, "source": source})

    assert (job.state, job.attempts) == (JobState.FAILED, 1)
    assert "is not in" in (job.error or "")
    assert await desk.uris() == ["a.md"]


NAMES = [
    "中文/说明书.md",
    "русский файл.md",
    "עברית‏.md",
    "nai\u0308ve.md",  # of two characters
    "na\u00efve.md",  # of one
    "emoji 🐑.md",
    "line\nbreak.md",
    "-rf *.md",
    "%2e%2e.md",
    "file:odd.md",
    f"{'長' * 80}.md",
]


async def test_names_in_any_script_are_kept_apart_and_found_again(desk: Desk) -> None:
    for number, name in enumerate(NAMES):
        desk.write(name, f"words of {number}")

    assert (await desk.scan())["new"] == len(NAMES)

    assert len(await desk.uris()) == len(NAMES)
    assert await desk.text("中文/说明书.md") == "words of 0"
    again = await desk.scan()
    assert (again["unchanged"], again["new"], again["gone"]) == (len(NAMES), 0, 0)
    for name in NAMES:
        (desk.tree / name).unlink()
    assert (await desk.scan())["gone"] == len(NAMES)
    assert await desk.documents() == []


async def test_text_with_nul_bytes_and_lines_without_end_does_no_harm(desk: Desk) -> None:
    desk.write("nul.md", b"before\x00after")
    desk.write("zeros.txt", b"\x00" * 5000)
    desk.write("line.txt", "x" * 300_000)
    note = await desk.run("content", "ingest", {"content": "a\x00b \ud800"})

    await desk.scan()

    assert note.state == JobState.COMPLETED
    skipped = {one.uri: one.skipped for one in await desk.documents() if one.skipped}
    assert skipped.keys() == {"nul.md", "zeros.txt"}
    pieces = chunk(await desk.text("line.txt"), language="")
    assert max(len(one.text) for one in pieces) <= 1000
    assert (await desk.scan())["unchanged"] == 3


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"document": {"uri": "a"}}', "line 2: .*text"),
        ('{"document": {"uri": "a", "text": 5}}', r"line 2: .*\$.text"),
        ('{"document": {"uri": "", "text": "a"}}', r"line 2: .*\$.uri"),
        ('{"document": {"uri": "a", "text": "a", "tags": "abc"}}', r"line 2: .*\$.tags"),
        ('{"document": {"uri": "a", "text": "a", "size": -1}}', r"line 2: .*\$.size"),
        (
            '{"source": {"id": "s", "collection": "c", "kind": "disk", "uri": "/"}}',
            "line 2: .*kind",
        ),
        ('{"other": {}}', "line 2: neither"),
        ("[" * 5000, "line 2: "),
        ('{"document": ' * 3, "line 2: "),
    ],
)
async def test_line_that_is_no_document_is_refused_by_its_number(
    desk: Desk, line: str, said: str
) -> None:
    source = '{"source": {"id": "s", "collection": "notes", "kind": "upload", "uri": "upload:s"}}'
    with pytest.raises(InvalidOptions, match=said):
        await import_lines(desk.queue, [source, line])
    assert await desk.documents() == []


async def test_text_that_is_imported_again_before_it_is_indexed_is_not_lost(desk: Desk) -> None:
    source = {"id": "s", "collection": COLLECTION, "kind": "upload", "uri": "upload:s"}

    async def import_text(text: str) -> None:
        document = {"uri": "a.md", "text": text}
        lines = [{"source": source}, {"document": document}]
        await import_lines(desk.queue, [msgspec.json.encode(line) for line in lines])

    await import_text("one")
    await desk.work()
    await import_text("two")
    await import_text("two")
    await desk.work()

    [found] = await desk.documents()
    [content] = await Catalog(desk.queue.database).contents.get([found.content or ""])
    assert (content.text, found.pending) == ("two", None)


async def test_imported_documents_stay_below_the_folder_they_are_exported_to(
    desk: Desk, tmp_path: Path
) -> None:
    uris = ["../../up.md", "/etc/passwd", "a/../../b.md", "C:\\x.md", "nul\x00.md", "..", "."]
    source = {"id": "s", "collection": COLLECTION, "kind": "upload", "uri": "upload:s"}
    lines = [msgspec.json.encode({"source": source})]
    lines += [msgspec.json.encode({"document": {"uri": uri, "text": uri}}) for uri in uris]
    assert await import_lines(desk.queue, lines) == (1, len(uris))
    await desk.work()

    [kept] = await Catalog(desk.queue.database).sources.page()
    out = tmp_path / "a" / "b" / "out"
    assert await export_folder(desk.queue, kept, out) == len(uris)

    assert sorted(one for one in tmp_path.rglob("*.md") if out not in one.parents) == []
    assert len([one for one in out.rglob("*") if one.is_file()]) == len(uris)
