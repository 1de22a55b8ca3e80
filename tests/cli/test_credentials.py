"""`windrow credentials`, run as a person or a script runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import Read, Windrow
from windrow import Queue
from windrow.errors import ConfigError
from windrow.ingest.fetch.target import parse_url
from windrow.pipelines.web.credentials import Vault
from windrow.settings import Settings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_url: str) -> str:
    monkeypatch.setenv("WINDROW_DATA_DIR", str(tmp_path / "data"))
    with Queue.sync(store_url):  # makes the tables
        return str(tmp_path / "data")


def add(windrow: Windrow, name: str, *words: str, values: str) -> str:
    printed = windrow(
        "credentials", "add", name, "--origin", "https://docs.example/x", *words, input=values
    )
    assert printed.returncode == 0, printed.stderr
    assert "hush" not in printed.stdout + printed.stderr
    return printed.stdout


def test_what_was_added_is_listed_without_values_and_opened_for_fetches(
    windrow: Windrow, read: Read, folder: str, store_url: str
) -> None:
    words = ("--header", "X-Api-Key", "--cookie", "session", "--user", "me")
    said = add(windrow, "docs", *words, values="hush-1\nhush-2\nhush-3\n")
    assert (
        said == "added docs for https://docs.example: header X-Api-Key, cookie session, password\n"
    )
    [listed] = read("credentials", "list")
    assert listed.pop("changed_at")
    assert listed == {
        "name": "docs",
        "tenant": None,
        "origin": "https://docs.example",
        "holds": ["header X-Api-Key", "cookie session", "password"],
    }
    assert "hush" not in windrow("credentials", "list").stdout
    headers = sent_to("https://docs.example/page", store_url, Settings(data_dir=folder))
    assert headers == {
        "X-Api-Key": "hush-1",
        "Cookie": "session=hush-2",
        "Authorization": "Basic bWU6aHVzaC0z",
    }
    other = Settings(secret_key="something else entirely")
    with pytest.raises(ConfigError, match="another key"):
        sent_to("https://docs.example/", store_url, other)
    assert sent_to("https://other.example/", store_url, other) == {}


def test_a_credential_is_replaced_and_removed(windrow: Windrow, read: Read, folder: str) -> None:
    add(windrow, "docs", "--header", "X-Old", values="hush\n")
    add(windrow, "docs", "--header", "X-New", values="hush\n")
    [listed] = read("credentials", "list")
    assert listed["holds"] == ["header X-New"]
    assert windrow("credentials", "remove", "docs").stdout == "would remove docs: add --yes\n"
    assert windrow("credentials", "remove", "docs", "--yes").stdout == "removed docs\n"
    for words in ([], ["--yes"]):
        again = windrow("credentials", "remove", "docs", *words)
        assert again.returncode == 1
        assert again.stderr.splitlines()[0] == "error: there is no credential docs"
    assert read("credentials", "list") == []


@pytest.mark.parametrize(
    ("words", "values", "why"),
    [
        ((), "", "say what is in it"),
        (("--header", "X"), "", "0 lines; one is needed for each of: header X"),
        (("--header", "X"), "a\nb\n", "2 lines"),
        (("--header", "Host"), "hush\n", "header Host is not one to be set"),
        (("--cookie", "a"), "hush; b=c\n", "cookie a has characters"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_kept(
    windrow: Windrow, read: Read, folder: str, words: tuple[str, ...], values: str, why: str
) -> None:
    origin = ("--origin", "https://docs.example")
    printed = windrow("credentials", "add", "docs", *origin, *words, input=values)
    assert printed.returncode == 2
    assert why in printed.stderr
    assert "hush" not in printed.stderr
    assert read("credentials", "list") == []


def sent_to(url: str, store_url: str, settings: Settings) -> Mapping[str, str]:
    async def work() -> Mapping[str, str]:
        async with Queue.open(store_url) as queue:
            return (await Vault(queue, settings).of(None)).headers_for(parse_url(url))

    return asyncio.run(work())
