"""Files of pages: safe names, one for each page, the same when written again."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.errors import ConfigError
from windrow.ingest.document import Document, Metadata
from windrow.services.saving import INDEX, Folder, file_name

EVIL = [
    "https://a.org/../../etc/passwd",
    "https://a.org/%2e%2e/%2e%2e/etc/passwd",
    "https://a.org/..%2f..%2fetc%2fpasswd",
    "https://a.org/%00x",
    "https://a.org/a\\..\\b",
    "https://a.org/.bashrc",
    "https://a.org/CON",
    "https://a.org/nul.txt",
    "https://a.org/" + "x" * 3000,
    "https://a.org/" + "é" * 300,
    "https://a.org/" + "/".join("abcdefghijklmnopqrstuvwxyz"),
    "https://a.org/a:b|c?d*e",
    "https://user:secret@a.org/page",
    "https://[::1]:8080/page",
]


def document(markdown: str | None = "# Hay", **fields: object) -> Document:
    wire = {"metadata": {"statusCode": 200, "title": "Hay"}, "markdown": markdown, **fields}
    return Document.from_wire({name: value for name, value in wire.items() if value is not None})


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.org", "example.org/index.md"),
        ("https://example.org/", "example.org/index.md"),
        ("https://example.org/docs/intro", "example.org/docs/intro.md"),
        ("https://example.org/docs/", "example.org/docs/index.md"),
        ("https://example.org:8443/a.html", "example.org-8443/a.html.md"),
        ("https://example.org/README.md", "example.org/README.md"),
        ("https://example.org/caf%C3%A9", "example.org/café.md"),
    ],
)
def test_a_file_is_named_by_its_address(url: str, name: str) -> None:
    assert file_name(url) == name


@pytest.mark.parametrize("url", EVIL)
def test_no_address_leads_out_of_the_folder(tmp_path: Path, url: str) -> None:
    folder = Folder(tmp_path / "out")
    path = folder.save(url, document())
    folder.close()
    assert path.read_text() == "# Hay\n"
    assert path.resolve().is_relative_to((tmp_path / "out").resolve())
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out"]
    assert "secret" not in str(path)
    relative = path.relative_to(tmp_path / "out")
    assert all(len(part.encode()) < 200 and not part.startswith(".") for part in relative.parts)


def test_two_pages_never_share_a_file_and_keep_theirs(tmp_path: Path) -> None:
    urls = [
        *("https://a.org/x", "https://a.org/X", "https://a.org/x.md", "https://a.org/x/"),
        *("https://a.org/x?a=1", "https://a.org/x?a=2", "http://a.org/x", "https://a.org//x"),
        *("https://a.org/x.md/y", "https://a.org/x/index", "https://a.org/x%2Findex"),
    ]
    folder = Folder(tmp_path)
    first = {url: folder.save(url, document(url)) for url in urls}
    folder.close()
    assert len({str(path).casefold() for path in first.values()}) == len(urls)

    again = Folder(tmp_path)
    second = {url: again.save(url, document(url)) for url in reversed(urls)}
    again.close()
    assert second == first
    assert {url: path.read_text() for url, path in first.items()} == {u: f"{u}\n" for u in urls}
    assert len((tmp_path / INDEX).read_text().splitlines()) == len(urls)


def test_what_is_more_than_markdown_is_kept_as_json(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    path = folder.save("https://a.org/x", document(links=["https://a.org/y"]))
    assert '"links"' in path.with_suffix(".json").read_text()
    only = folder.save("https://a.org/z", document(None, html="<p>Hay</p>"))
    assert (only.name, "<p>Hay</p>" in only.read_text()) == ("z.json", True)
    assert not folder.save("https://a.org/w", document()).with_suffix(".json").exists()


def test_links_in_the_folder_lead_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret.md"
    secret.write_text("mine")
    out = tmp_path / "out"
    (out / "a.org").mkdir(parents=True)
    (out / "a.org" / "page.md").symlink_to(secret)
    (out / "b.org").symlink_to(outside)
    folder = Folder(out)
    folder.save("https://a.org/page", document())
    with pytest.raises(ConfigError, match="leads out of"):
        folder.save("https://b.org/deep/er/page", document())
    assert (secret.read_text(), sorted(outside.iterdir())) == ("mine", [secret])


def test_an_index_that_names_other_files_is_not_believed(tmp_path: Path) -> None:
    line = '{"url":"https://a.org/x","file":"../x.md","status":200}\n'
    out = tmp_path / "out"
    out.mkdir()
    (out / INDEX).write_text(line)
    Folder(out).save("https://a.org/x", document())
    assert (out / "a.org" / "x.md").exists()
    (out / INDEX).write_text("no json")
    with pytest.raises(ConfigError, match="cannot write pages"):
        Folder(out)


def test_metadata_says_what_the_index_says(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.save("https://a.org/x", Document(metadata=Metadata(status_code=404), markdown=""))
    folder.close()
    assert '"status":404' in (tmp_path / INDEX).read_text()
