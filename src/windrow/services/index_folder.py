"""Which folder holds the embedded index of a database, so that no second machine fills another one.

A folder has a random id, in a file that is written once. The database has that of the folder which
holds the index. A folder with another id is the same place only if it lies where that one lay (it
was deleted, or restored), or if the database is a file that was moved to another machine. Whatever
such a folder has is not trusted: it is emptied, and its owner builds the index again. Machines are
told apart by the host name and, as images of machines may share one, by the machine id of Linux.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from windrow.catalog import Catalog
from windrow.errors import ConfigError, IndexElsewhere, IndexLost, IndexUnavailable
from windrow.pipelines.index.payloads import QUEUE, WRITE
from windrow.queue.queue import Queue
from windrow.queue.store import Store
from windrow.services.indexing import (
    find_home,
    index_folder,
    is_postgres,
    open_index,
    owning,
    spaces_folder,
)
from windrow.services.jobs import open_queue
from windrow.settings import Settings

NAME: Final = "folder.json"
MACHINE_ID: Final = Path("/etc/machine-id")


class FolderIdentity(msgspec.Struct, frozen=True):
    """A folder as it was made; on which host is known then, and may be called otherwise later."""

    id: str
    host: str
    path: str
    machine: str = ""  # empty where it is unknown, as in most containers


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """Where the index of a database is."""

    home: str
    recorded: FolderIdentity | None  # of an embedded one
    is_here: bool


async def claim_folder(settings: Settings, store: Store) -> None:
    """Record that the index is in this machine's folder, whose lock the caller holds. Raises
    IndexElsewhere if it is in another one."""
    folder = index_folder(settings)
    own = await asyncio.to_thread(_read_or_make, folder)
    catalog = Catalog(store.database)
    while (recorded := await catalog.collections.get_index_folder()) != _text(own):
        if (other := _elsewhere(settings, recorded)) is not None:
            raise _error(other)
        if (before := _parsed(recorded)) is not None:
            await _check_is_left(before, store)
            await _empty(settings)
        if await catalog.collections.set_index_folder(_text(own), recorded):
            return


async def check_folder(settings: Settings, store: Store) -> None:
    """Raise IndexElsewhere if the embedded index is in a folder of another machine, and IndexLost
    if its folder was deleted: a search there would find nothing."""
    recorded = await Catalog(store.database).collections.get_index_folder()
    if (other := _elsewhere(settings, recorded)) is not None:
        raise _error(other)
    lost = _parsed(recorded)
    if lost is not None and _read(index_folder(settings)) is None:
        raise IndexLost(lost.path)


async def find_elsewhere(settings: Settings, store: Store) -> IndexElsewhere | None:
    """What keeps this machine from the index: the folder of another one has it."""
    if not store.capabilities.documents:
        return None
    other = _elsewhere(settings, await Catalog(store.database).collections.get_index_folder())
    if other is None or await find_home(settings) != "edge":
        return None
    return _error(other)


async def find_unreachable(settings: Settings, store: Store) -> IndexUnavailable | None:
    """What keeps everybody from the index: the Qdrant server that is to hold it does not answer, or
    its folder was deleted."""
    if not settings.qdrant_url:
        return await _find_lost(settings, store)
    index = open_index(settings, "qdrant")
    try:
        await index.spaces()
    except IndexUnavailable as error:
        return error
    finally:
        await index.close()
    return None


async def _find_lost(settings: Settings, store: Store) -> IndexLost | None:
    if not store.capabilities.documents or await find_home(settings) != "edge":
        return None
    try:
        await check_folder(settings, store)
    except IndexLost as error:
        return error
    except IndexElsewhere:
        return None  # see `find_elsewhere`
    return None


async def show_place(settings: Settings) -> IndexPlace:
    async with open_queue(settings, migrate=None) as queue:
        home = await find_home(settings)
        recorded = (
            await Catalog(queue.database).collections.get_index_folder() if home == "edge" else None
        )
        return IndexPlace(home, _parsed(recorded), _elsewhere(settings, recorded) is None)


async def move_here(settings: Settings) -> None:
    """Make this machine's folder the one that holds the index; its next owner builds it from the
    documents. Raises ConfigError while a worker still writes to another one."""
    if await find_home(settings) != "edge":
        raise ConfigError(
            "the index is in a server that all machines share: nothing is to be moved"
        )
    async with open_queue(settings, migrate=None) as queue:
        await _check_nobody_writes(queue)
        folder = index_folder(settings)
        catalog = Catalog(queue.database)
        with owning(folder) as is_owner:
            if not is_owner:
                raise IndexUnavailable("a process of this machine owns the index: it is here")
            recorded = await catalog.collections.get_index_folder()
            own = await asyncio.to_thread(_read_or_make, folder)
            await _empty(settings)
            if not await catalog.collections.set_index_folder(_text(own), recorded):
                raise IndexUnavailable("another machine has taken the index meanwhile")


async def _check_is_left(folder: FolderIdentity, store: Store) -> None:
    """Raise IndexElsewhere while a worker of another machine writes to the index: the file of the
    database was not moved here, both machines have it."""
    for worker in await Queue(store).workers():
        if worker.host != socket.gethostname() and worker.takes(QUEUE, WRITE):
            raise _error(folder)


async def _check_nobody_writes(queue: Queue) -> None:
    for worker in await queue.workers():
        if worker.takes(QUEUE, WRITE):
            raise ConfigError(f"worker {worker.name} still writes to the index: stop it first")


def _elsewhere(settings: Settings, recorded: str | None) -> FolderIdentity | None:
    other = _parsed(recorded)
    if other is None:
        return None
    folder = index_folder(settings)
    own = _read(folder)
    if own is not None and own.id == other.id:
        return None
    is_this_host = _is_this_host(other)
    if is_this_host and other.path == os.fspath(folder):
        return None
    if not is_this_host and not is_postgres(settings):
        return None
    return other


def _is_this_host(folder: FolderIdentity) -> bool:
    return (folder.host, folder.machine) == (socket.gethostname(), _machine())


def _error(other: FolderIdentity) -> IndexElsewhere:
    data_dir = os.fspath(Path(other.path).parents[1]) if _is_this_host(other) else ""
    return IndexElsewhere(other.host, other.path, data_dir)


async def _empty(settings: Settings) -> None:
    await asyncio.to_thread(shutil.rmtree, spaces_folder(settings), ignore_errors=True)


def _read_or_make(folder: Path) -> FolderIdentity:
    found = _read(folder)
    if found is None:
        place = socket.gethostname(), os.fspath(folder), _machine()
        found = FolderIdentity(os.urandom(16).hex(), *place)
        made = folder / f"{NAME}.making"
        made.write_text(_text(found))
        made.replace(folder / NAME)
    return found


def _read(folder: Path) -> FolderIdentity | None:
    try:
        return _parsed((folder / NAME).read_text())
    except (FileNotFoundError, msgspec.DecodeError):
        return None  # of a file that a power cut left empty, too


def _machine() -> str:
    """The machine id, hashed: it is not to be shown to others."""
    try:
        named = MACHINE_ID.read_text().strip()
    except OSError:
        return ""
    return hashlib.sha256(f"windrow {named}".encode()).hexdigest()[:16] if named else ""


def _parsed(text: str | None) -> FolderIdentity | None:
    return None if text is None else msgspec.json.decode(text, type=FolderIdentity)


def _text(identity: FolderIdentity) -> str:
    return msgspec.json.encode(identity).decode()
