"""`FolderArtifacts`: files in a folder, for the workers of one machine or of a shared disk."""

from __future__ import annotations

import asyncio
import os
import shutil
import uuid
from pathlib import Path

from windrow.errors import FileGone
from windrow.ingest.artifacts.store import check_key


class FolderArtifacts:
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


def _sync_folder(folder: Path) -> None:
    """The name is on the disk too, before anybody is told."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
