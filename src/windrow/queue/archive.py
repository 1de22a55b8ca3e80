"""Finished jobs written away as JSON lines before they are removed.

One file for each day on which jobs finished, in UTC, only ever appended to. What is written is on
the disk before the jobs are removed: a crash in between leaves a line that will be there twice, and
never a job that is nowhere.
"""

from __future__ import annotations

import fcntl
import os
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import msgspec

from windrow.errors import ArchiveFailed
from windrow.queue.job import Job

# Of the run that a finished job no longer has, and what is written as `payload` and `result`.
_LEFT_OUT: Final = frozenset(
    {
        "worker",
        "lease_token",
        "lease_expires_at",
        "stop_as",
        "payload_json",
        "result_json",
    }
)
_NAMES: Final = tuple(
    name for name in Job.__struct_fields__ if name not in _LEFT_OUT and not name.startswith("_")
)


class JsonlArchive:
    """A folder of `jobs-2026-01-31.jsonl` files. Several processes may write to it."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def __call__(self, jobs: Sequence[Job]) -> None:
        """Write jobs; on return they are on the disk. Raises ArchiveFailed."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, lines in _by_day(jobs).items():
                _append(self.folder / name, b"".join(lines))
        except OSError as error:
            raise ArchiveFailed(f"the archive {str(self.folder)!r}: {error}") from error


def to_record(job: Job) -> dict[str, Any]:
    """A job as its line has it: everything, payload and result as they were stored."""
    record = {name: getattr(job, name) for name in _NAMES}
    record["payload"] = msgspec.Raw(_as_bytes(job.payload_json))
    record["result"] = None if job.result_json is None else msgspec.Raw(_as_bytes(job.result_json))
    return record


def _as_bytes(json: str | bytes) -> bytes:
    return json.encode() if isinstance(json, str) else json


def _by_day(jobs: Sequence[Job]) -> dict[str, list[bytes]]:
    files: defaultdict[str, list[bytes]] = defaultdict(list)
    for job in jobs:
        ended = job.finished_at or job.created_at
        name = f"jobs-{ended.astimezone(UTC).date()}.jsonl"
        # Stored JSON may have line breaks between its parts, as it came.
        files[name].append(msgspec.json.format(msgspec.json.encode(to_record(job)), indent=-1))
        files[name].append(b"\n")
    return files


def _append(path: Path, lines: bytes) -> None:
    is_new = not path.exists()
    with path.open("ab+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _write(file.fileno(), _end_of_torn_line(file) + lines)
        os.fsync(file.fileno())
    if is_new:
        _sync_folder(path.parent)


def _end_of_torn_line(file: Any) -> bytes:
    """A line break, if a crash left the last line without one."""
    if file.seek(0, os.SEEK_END) == 0:
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(folder: Path) -> None:
    """The name of a new file is durable only when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
