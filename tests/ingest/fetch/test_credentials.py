"""Credentials go to their own origin, and stay unread everywhere else."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.ingest.fetch.hostile import HostileServer, page, redirect
from windrow.errors import ConfigError
from windrow.ingest.fetch.credentials import Credential, Credentials, origin_of
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.sealer import Sealer
from windrow.settings import Settings

SECRETS = ("hush-header", "hush-cookie", "hush-user", "hush-password")


def whole(origin: str = "https://docs.example") -> Credential:
    return Credential(
        origin,
        headers={"X-Api-Key": "hush-header"},
        cookies={"session": "hush-cookie"},
        user="hush-user",
        password="hush-password",
    )


async def test_a_credential_is_sent_to_its_origin_and_to_no_other(
    server: HostileServer, fetcher: Fetcher
) -> None:
    with HostileServer() as other:
        back = server.serves(page(), "/back")
        away = other.serves(redirect(back), "/away")
        start = server.serves(redirect(away), "/start")
        bound = Credentials([whole(server.origin)])
        await fetcher.fetch(start, credentials=bound)
        for seen in (server.seen(start)[0], server.seen(back)[0]):
            assert seen["x-api-key"] == "hush-header"
            assert seen["cookie"] == "session=hush-cookie"
            assert seen["authorization"] == "Basic aHVzaC11c2VyOmh1c2gtcGFzc3dvcmQ="
        assert not [value for value in other.seen(away)[0].values() if "hush" in value]
        assert "authorization" not in other.seen(away)[0]
        # One that is bound to where a redirect leads is sent there, and only there.
        start = server.serves(redirect(other.serves(page(), "/end")), "/start2")
        await fetcher.fetch(start, credentials=Credentials([whole(other.origin)]))
        assert "authorization" not in server.seen(start)[0]
        assert other.visits["/end"][0]["x-api-key"] == "hush-header"


async def test_cookies_of_all_kinds_are_sent_together(
    server: HostileServer, fetcher: Fetcher
) -> None:
    end = server.serves(page(), "/cookies-end")
    start = server.serves(redirect(end, "Set-Cookie: set=1; Path=/"), "/cookies")
    own = Credentials([Credential(server.origin, cookies={"bound": "2"})])
    await fetcher.fetch(start, cookies={"given": "3"}, credentials=own)
    assert server.seen(start)[0]["cookie"] == "bound=2; given=3"
    assert server.seen(end)[0]["cookie"] == "bound=2; given=3; set=1"


async def test_what_the_caller_says_goes_before_a_credential(
    server: HostileServer, fetcher: Fetcher
) -> None:
    url = server.serves(page())
    headers = {"authorization": "Bearer other"}
    await fetcher.fetch(url, headers=headers, credentials=Credentials([whole(server.origin)]))
    assert server.seen(url)[0]["authorization"] == "Bearer other"


def test_an_origin_is_a_scheme_a_host_and_a_port() -> None:
    assert origin_of("HTTPS://Docs.Example:443/path?q#f") == "https://docs.example"
    assert origin_of("http://docs.example:8080") == "http://docs.example:8080"
    assert origin_of("http://münchen.example/") == "http://xn--mnchen-3ya.example"
    for bad in ("docs.example", "ftp://docs.example", "https://", "https://u:p@docs.example"):
        with pytest.raises(ConfigError, match="origin"):
            origin_of(bad)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"headers": {"X Y": "a"}},
        {"headers": {"X": "a\r\nY: b"}},
        {"headers": {"X": ""}},
        {"headers": {"Host": "evil"}},
        {"headers": {"Cookie": "a=b"}},
        {"cookies": {"a": "b; c=d"}},
        {"cookies": {"a=b": "c"}},
        {"user": "a:b"},
        {"user": "a\n"},
    ],
)
def test_what_cannot_be_sent_is_refused_and_not_repeated(parts: dict) -> None:
    with pytest.raises(ConfigError):
        Credential("https://docs.example", **parts)


def test_a_credential_is_shown_without_its_values(tmp_path: Path) -> None:
    one = whole()
    sealer = Sealer(Settings(data_dir=str(tmp_path)))
    sealed = sealer.seal("docs", None, one)
    shown = f"{one!r} {one} {Credentials([one])!r} {one.holds} {sealed!r}"
    assert [secret for secret in SECRETS if secret in shown] == []
    assert one.holds == ("header X-Api-Key", "cookie session", "password")
    assert "very-secret" not in repr(Settings(secret_key="very-secret-very-secret"))


def test_what_was_sealed_is_opened_again_by_the_same_key(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path / "new"))
    sealed = Sealer(settings).seal("docs", "acme", whole())
    opened = Sealer(settings).open("docs", "acme", "https://docs.example", sealed)
    assert opened == whole()
    assert pickle.loads(pickle.dumps(opened)) == opened
    path = tmp_path / "new" / "secret.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["secret.key"]
    with pytest.raises(ConfigError, match="another key"):
        Sealer(Settings(data_dir=str(tmp_path))).open(
            "docs", "acme", "https://docs.example", sealed
        )


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "other"},
        {"tenant": None},
        {"origin": "https://evil.example"},
    ],
)
def test_a_row_that_was_changed_opens_nothing(tmp_path: Path, changed: dict) -> None:
    sealer = Sealer(Settings(data_dir=str(tmp_path)))
    row = {"name": "docs", "tenant": "acme", "origin": "https://docs.example"}
    sealed = sealer.seal("docs", "acme", whole())
    with pytest.raises(ConfigError, match="changed in the database"):
        sealer.open(**(row | changed), sealed=sealed)
    with pytest.raises(ConfigError, match="another key"):
        sealer.open(**row, sealed=sealed[:20] + b"changed_" + sealed[28:])


def test_a_key_is_replaced_by_putting_the_new_one_in_front(tmp_path: Path) -> None:
    old, new = "an old passphrase of ours", Fernet.generate_key().decode()
    where = ("docs", None, "https://docs.example")
    before = Settings(secret_key=old, data_dir=str(tmp_path))
    sealed = Sealer(before).seal("docs", None, whole())
    both = replace(before, secret_key=f"{new}, {old}")
    assert Sealer(both).open(*where, sealed) == whole()
    again = Sealer(both).seal("docs", None, whole())
    assert Sealer(replace(before, secret_key=new)).open(*where, again) == whole()
    with pytest.raises(ConfigError, match="another key"):
        Sealer(before).open(*where, again)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="at least 16 characters"):
        Sealer(Settings(secret_key="short"))


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path))
    Sealer(settings)
    os.chmod(tmp_path / "secret.key", 0o644)
    with pytest.raises(ConfigError, match="others may read"):
        Sealer(settings)


def test_many_that_make_the_first_key_at_once_share_it(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path / "new"))

    def seal(_: int) -> bytes:
        return Sealer(settings).seal("docs", None, whole())

    with ThreadPoolExecutor(8) as threads:
        sealed = list(threads.map(seal, range(32)))
    sealer = Sealer(settings)
    assert all(sealer.open("docs", None, "https://docs.example", one) for one in sealed)
