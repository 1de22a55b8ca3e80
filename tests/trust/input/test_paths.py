"""Names of files that others choose lead nowhere but below the folder they belong to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.trust.scorecard import record_input
from windrow import Queue
from windrow.catalog import Catalog
from windrow.catalog.contents import Written
from windrow.catalog.sources import SourceRow
from windrow.ingest.artifacts import FolderArtifacts
from windrow.ingest.document import Document, Metadata
from windrow.services.exporting import export_folder, import_lines
from windrow.services.handing_in import TextOptions, Upload, take_files
from windrow.services.saving import Folder
from windrow.settings import Settings
from windrow.web.pages import STATIC
from windrow.web.site import create_site

# fmt: off
NAMES = [
    "../../escaped.md", "..\\..\\escaped.md", "/etc/escaped.md", "//etc/escaped.md", "~/escaped.md",
    "C:\\escaped.md", "\\\\host\\share\\escaped.md", "a/../../escaped.md", "%2e%2e%2fescaped.md",
    "%252e%252e%252fescaped.md", "..%c0%afescaped.md", "..%ef%bc%8fescaped.md", "....//escaped.md",
    "．．／escaped.md", "..\u2215escaped.md", ". ./escaped.md", ".. /escaped.md", "../", "..", ".",
    "con", "nul.md", "aux:stream.md", "a\x00.md", "a\nb.md", "\u202eescaped.md", ".ssh/escaped",
    "-rf", "$(id).md", "`id`.md", "a;b.md", "a" * 300 + ".md", "a/" * 300 + "b.md", "file:///etc/x",
    "é.md", "e\u0301.md", "index.jsonl", "../out/escaped.md",
]
# fmt: on


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[Queue]:
    (tmp_path / "database").mkdir()
    async with Queue.open(f"sqlite:///{tmp_path / 'database' / 'jobs.db'}") as queue:
        yield queue


def outside(root: Path, folder: Path) -> list[Path]:
    """Files that are anywhere but in the folder, or the database's own."""
    apart = (folder, root / "database")
    return [
        one
        for one in root.rglob("*")
        if not one.is_dir() and not any(place in one.parents for place in apart)
    ]


def test_pages_are_saved_below_their_folder(tmp_path: Path) -> None:
    out = tmp_path / "a" / "out"
    folder = Folder(out)
    for number, name in enumerate(NAMES):
        for url in (f"https://h.example/{number}/{name}", f"https://h.example/{name}?{number}"):
            path = folder.save(
                url, Document(metadata=Metadata(status_code=200), url=url, markdown="x")
            )
            assert path.resolve().is_relative_to(out.resolve()), name
            assert not path.is_symlink()
    folder.close()
    assert outside(tmp_path, out) == []


async def test_artifacts_are_kept_below_their_folder(tmp_path: Path) -> None:
    root = tmp_path / "a" / "kept"
    given = tmp_path / "database" / "given"
    given.parent.mkdir()
    given.write_bytes(b"x")
    artifacts = FolderArtifacts(root)
    for number, name in enumerate(NAMES):
        for key in (f"{number}/{name}", f"calls/{number}/{name}/x", name):
            try:
                await artifacts.put(key, given)
            except ValueError as refused:
                assert "key of an artifact" in str(refused)  # noqa: PT017 - it may also be taken
    assert outside(tmp_path, root) == []


async def test_uploads_and_imports_are_exported_below_their_folder(
    queue: Queue, tmp_path: Path
) -> None:
    out = tmp_path / "a" / "b" / "out"
    receipt = await take_files(
        queue, [Upload(name, f"text of {name!r}".encode()) for name in NAMES], TextOptions()
    )
    assert [one for one in receipt.taken if one.error and "text" not in one.error] == []
    source = {"id": "s", "collection": "default", "kind": "upload", "uri": "upload:s"}
    await import_lines(queue, [json({"source": source})] + [document(name) for name in NAMES])
    count = 0
    for one in await Catalog(queue.database).sources.page():
        await make_searchable(queue, one)
        count += await export_folder(queue, one, out / str(count))
    assert count >= len(NAMES)
    assert outside(tmp_path, out) == []
    record_input(
        "names of files that lead elsewhere",
        given=2 * len(NAMES),
        taken=count,
        store="sqlite",
        note="uploaded and imported, then written below their folder",
    )


def document(uri: str) -> str:
    return json({"document": {"uri": uri, "text": f"text of {uri!r}"}})


def json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


async def make_searchable(queue: Queue, source: SourceRow) -> None:
    catalog = Catalog(queue.database)
    documents = await catalog.documents.page(source.tenant, source.collection, source.id)
    written = [Written(one.pending, 1, "space") for one in documents if one.pending]
    await catalog.contents.switch(written)


async def test_the_dashboard_serves_its_own_files_only(queue: Queue) -> None:
    app = create_site(queue, Settings(api_keys="boss"))
    assert await status_of(app, "/ui/static/live.js") == 200
    up = "../" * len(STATIC.parts)
    for name in [*NAMES, f"{up}etc/passwd", "../pages.py", "..%2fpages.py", "//etc/passwd", ""]:
        assert await status_of(app, f"/ui/static/{name}") in (400, 404, 405), name


async def status_of(app: Any, path: str) -> int:
    """Asked for as it is written: a client would put it right."""
    told: list[dict[str, Any]] = []

    asked = iter([{"type": "http.request", "body": b""}])

    async def receive() -> dict[str, Any]:
        for message in asked:
            return message
        await asyncio.Event().wait()  # nobody hangs up
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        told.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(errors="replace"),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
    }
    await app(scope, receive, send)
    return int(told[0]["status"])
