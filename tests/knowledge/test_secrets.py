"""Secrets in folders: left out or hidden, listed with the reason, and indexed only on demand."""

from __future__ import annotations

from msgspec.structs import replace

from tests.knowledge.desk import Desk
from windrow.catalog import Catalog
from windrow.catalog.documents import DocumentRow
from windrow.ingest.files.walk import SECRET_NAME
from windrow.pipelines.knowledge.context import SECRETS_MARK
from windrow.pipelines.knowledge.files import SECRET_CONTENT
from windrow.services.knowledge import find_source, list_notes, reason_of

VALUE = "q7RtZ2mK" + "9xLw4VbN" + "c8Yd"
KEY = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG9w0BAQEF" * 4
    + "\n-----END PRIVATE KEY-----\n"
)


async def notes(desk: Desk) -> dict[str, str]:
    [source] = await Catalog(desk.queue.database).sources.page()
    found = await list_notes(desk.queue, source, limit=100)
    assert sum(found.by_reason.values()) == len(found.page)
    return {document.uri: reason_of(document) for document in found.page}


async def test_secrets_of_a_folder_are_left_out_or_hidden_and_listed(desk: Desk) -> None:
    desk.write("prod.env", f"PASSWORD={VALUE}\n")
    desk.write("terraform.tfstate", f'{{"value": "{VALUE}"}}')
    desk.write("backup/old", KEY)
    desk.write("app.yaml", f"db:\n  password: {VALUE}\n  host: db\n")
    desk.write("wide.ini", f"[a]\r\npassword = {VALUE}\r\n".encode("utf-16"))
    desk.write("README.md", "# Words")

    await desk.scan()

    assert await desk.uris() == ["README.md", "app.yaml", "wide.ini"]
    assert await desk.text("app.yaml") == "db:\n  password: ***\n  host: db\n"
    assert VALUE not in await desk.text("wide.ini")
    assert await notes(desk) == {
        "app.yaml": "redacted: 1 × value of a secret name",
        "backup/old": SECRET_CONTENT,
        "prod.env": SECRET_NAME,
        "terraform.tfstate": SECRET_NAME,
        "wide.ini": "redacted: 1 × value of a secret name",
    }
    before = await desk.documents()
    again = await desk.scan()
    assert (again["new"], again["changed"], again["gone"]) == (0, 0, 0)
    assert await desk.documents() == before


async def test_secrets_are_indexed_when_they_are_asked_for_and_removed_when_not(desk: Desk) -> None:
    desk.write("prod.env", f"PASSWORD={VALUE}\n")
    desk.write("app.yaml", f"password: {VALUE}\n")
    await desk.scan()
    catalog = Catalog(desk.queue.database)
    [source] = await catalog.sources.page()
    row = (await find_source(desk.queue, source.id)).source
    for included in (True, False):
        await catalog.sources.put(
            [replace(row, options={**row.options, "include_secrets": included})]
        )
        await desk.scan()
        texts = [await desk.text(uri) for uri in await desk.uris()]
        assert len(texts) == (2 if included else 1)
        assert all((VALUE in text) == included for text in texts)


async def test_files_that_were_read_before_there_were_rules_are_read_again(desk: Desk) -> None:
    desk.write("app.yaml", f"password: {VALUE}\n")
    desk.write("b.md", "words")
    await desk.scan()
    for document in await desk.documents():
        metadata = {
            name: value for name, value in document.metadata.items() if name != SECRETS_MARK
        }
        names = DocumentRow.__struct_fields__
        row = DocumentRow(**{name: getattr(document, name) for name in names})
        pending = document.content
        await Catalog(desk.queue.database).documents.put(
            [replace(row, metadata=metadata, pending=pending)]
        )
    written = len(desk.written)

    result = await desk.scan()

    assert (result["changed"], result["unchanged"]) == (2, 0)
    assert len(desk.written) == written  # read, and found to be the same
    assert (await desk.scan())["unchanged"] == 2


async def test_every_skipped_file_is_listed_page_by_page(desk: Desk) -> None:
    for number in range(25):
        desk.write(f"{number:02}.png", b"\x89PNG")
    desk.write("deep/er/a.md", "words")
    await desk.scan(recursive_depth=1)
    [source] = await Catalog(desk.queue.database).sources.page()

    first = await list_notes(desk.queue, source, limit=20)
    rest = await list_notes(desk.queue, source, limit=20, after=first.page[-1].uri)

    assert first.by_reason == {"binary file": 25, "folder too deep": 1}
    assert (first.has_more, rest.has_more) == (True, False)
    assert [one.uri for one in [*first.page, *rest.page]] == [
        *(f"{number:02}.png" for number in range(25)),
        "deep/er",
    ]
