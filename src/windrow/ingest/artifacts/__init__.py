"""Artifact storage: files that one job hands to another, in a folder or an S3 bucket.

A key is made of what a file belongs to, so a second run of the same job finds the file there. A
file appears whole or not at all, and the first one stays.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import uuid
from pathlib import Path
from typing import Final, Protocol

from windrow.errors import ConfigError, FileGone
from windrow.settings import Settings, data_folder

_PART: Final = re.compile(r"[A-Za-z0-9@_=+-][A-Za-z0-9.@_=+-]{0,199}")
FOLDER: Final = "artifacts"
S3: Final = "s3://"


class Artifacts(Protocol):
    async def put(self, key: str, path: Path) -> bool:
        """Keep the content of a file under a key; False: there was one already, which stays."""
        ...

    async def get(self, key: str, path: Path) -> None:
        """Write what is kept to a file. Raises FileGone."""
        ...

    async def size(self, key: str) -> int | None:
        """How large it is; None: it is not there."""
        ...

    async def remove(self, key: str) -> None:
        """What is not there is removed already."""
        ...

    def address(self, key: str) -> str | None:
        """Where others can fetch it who may; None: nobody can."""
        ...

    async def close(self) -> None: ...


def open_artifacts(settings: Settings) -> Artifacts:
    """The bucket of the settings, else a folder. Raises MissingExtra and ConfigError."""
    url = settings.artifacts_url
    if not url:
        return FolderArtifacts(data_folder(settings) / FOLDER)
    if not url.startswith(S3):
        raise ConfigError("artifacts_url must begin with s3://, or be empty for a folder")
    from windrow.ingest.artifacts.bucket import BucketArtifacts

    return BucketArtifacts.from_settings(settings)


class FolderArtifacts:
    """A folder, for the workers of one machine or of a shared disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, key: str, path: Path) -> bool:
        return await asyncio.to_thread(self._put, self._path(key), path)

    async def get(self, key: str, path: Path) -> None:
        try:
            await asyncio.to_thread(shutil.copyfile, self._path(key), path)
        except FileNotFoundError as error:
            raise FileGone(key) from error

    async def size(self, key: str) -> int | None:
        try:
            return (await asyncio.to_thread(self._path(key).stat)).st_size
        except FileNotFoundError:
            return None

    async def remove(self, key: str) -> None:
        await asyncio.to_thread(self._path(key).unlink, missing_ok=True)

    def address(self, key: str) -> str | None:
        return None

    async def close(self) -> None:
        return None

    def _path(self, key: str) -> Path:
        return self._folder / check_key(key)

    def _put(self, target: Path, source: Path) -> bool:
        if target.exists():
            return False
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with source.open("rb") as read, part.open("xb") as written:
                shutil.copyfileobj(read, written, 1024 * 1024)
                written.flush()
                os.fsync(written.fileno())
            # A link, not a rename: of two that put at once the first stays.
            os.link(part, target)
        except FileExistsError:
            return False
        finally:
            part.unlink(missing_ok=True)
        _sync_folder(target.parent)
        return True


def check_key(key: str) -> str:
    """A key is a path of plain names: it cannot lead out of where it belongs."""
    if not all(_PART.fullmatch(part) for part in key.split("/")) or len(key) > 500:
        raise ValueError(f"{key!r} is not the key of an artifact")
    return key


def _sync_folder(folder: Path) -> None:
    """The name is on the disk too, before anybody is told."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
