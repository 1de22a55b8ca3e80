"""J6: files by their keys, in a folder and in a bucket: whole or not at all; the first stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.buckets import bucket_settings, run_s3
from windrow.errors import ConfigError, FileGone, ProviderError
from windrow.ingest.artifacts import Artifacts, FolderArtifacts, open_artifacts
from windrow.settings import Settings

KEY = "calls/acme/1/audio.flac"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with run_s3() as url:
        yield url


@pytest.fixture(params=["folder", "bucket"])
async def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Artifacts]:
    if request.param == "folder":
        settings = Settings(data_dir=str(tmp_path / "data"))
    else:
        settings = bucket_settings(request.getfixturevalue("endpoint"))
    opened = open_artifacts(settings)
    yield opened
    await opened.close()


def file(folder: Path, body: bytes) -> Path:
    path = folder / "given.flac"
    path.write_bytes(body)
    return path


async def test_what_is_put_comes_back_and_the_first_stays(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    assert await artifacts.size(KEY) is None
    assert await artifacts.put(KEY, file(tmp_path, b"first")) is True
    assert await artifacts.put(KEY, file(tmp_path, b"another one")) is False
    assert await artifacts.size(KEY) == 5
    await artifacts.get(KEY, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"first"


async def test_what_is_removed_is_gone_and_can_be_removed_again(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    await artifacts.put(KEY, file(tmp_path, b"first"))
    await artifacts.remove(KEY)
    await artifacts.remove(KEY)
    assert await artifacts.size(KEY) is None
    with pytest.raises(FileGone):
        await artifacts.get(KEY, tmp_path / "back")


@pytest.mark.parametrize("key", ["../out", "a/../../b", "/etc/passwd", "a//b", "", "a/.hidden"])
async def test_a_key_leads_nowhere_else(artifacts: Artifacts, tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="key of an artifact"):
        await artifacts.put(key, file(tmp_path, b"x"))


async def test_of_many_that_put_at_once_one_is_kept_whole(tmp_path: Path) -> None:
    artifacts = FolderArtifacts(tmp_path / "kept")
    paths = [tmp_path / f"{n}" for n in range(8)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 100_000)
    put = await asyncio.gather(*(artifacts.put(KEY, path) for path in paths))
    assert sum(put) == 1
    await artifacts.get(KEY, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == paths[put.index(True)].read_bytes()
    assert [one.name for one in (tmp_path / "kept/calls/acme/1").iterdir()] == ["audio.flac"]


async def test_only_a_bucket_has_addresses(endpoint: str, tmp_path: Path) -> None:
    assert FolderArtifacts(tmp_path).address(KEY) is None
    settings = bucket_settings(endpoint)
    bucket = open_artifacts(settings)
    name = settings.artifacts_url.removeprefix("s3://")
    assert bucket.address(KEY) == f"{endpoint}/{name}/{KEY}"
    await bucket.close()


async def test_a_bucket_that_is_not_there_is_named_and_one_that_does_not_answer_tried_again(
    endpoint: str, tmp_path: Path
) -> None:
    gone = replace(bucket_settings(endpoint), artifacts_url="s3://never-made")
    artifacts = open_artifacts(gone)
    with pytest.raises(ProviderError, match="NoSuchBucket") as raised:
        await artifacts.put(KEY, file(tmp_path, b"x"))
    assert not raised.value.transient
    await artifacts.close()
    deaf = open_artifacts(replace(gone, s3_endpoint="http://127.0.0.1:1"))
    with pytest.raises(ProviderError, match="does not answer") as lost:
        await deaf.size(KEY)
    assert lost.value.transient
    await deaf.close()


def test_an_address_of_another_kind_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="s3://"):
        open_artifacts(Settings(artifacts_url="ftp://files"))
    with pytest.raises(ConfigError, match="names no bucket"):
        open_artifacts(Settings(artifacts_url="s3:///prefix"))
