"""How the database itself is: its log, its disk, and whether the file may lie where it lies."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from windrow.queue.records import Vitals
from windrow.queue.sqlite.rows import to_time
from windrow.queue.sqlite.work import Work

MOUNTS: Final = Path("/proc/self/mountinfo")  # only Linux has it
# Their locks do not hold between machines, and the log's index needs memory that processes share.
NETWORK_FILE_SYSTEMS: Final = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "9p", "afs", "ceph", "ncpfs", "lustre"),
        *("gfs2", "ocfs2", "beegfs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone"),
    }
)


def check_health(work: Work, path: str) -> Vitals:
    [(journal_mode,)] = work.rows("check_health", {})
    log = Path(path + "-wal")
    return Vitals(
        now=to_time(work.now),
        log_bytes=log.stat().st_size if log.exists() else 0,
        journal_mode=journal_mode,
        network_file_system=_network_file_system(Path(path)),
        free_bytes=shutil.disk_usage(Path(path).resolve().parent).free,
    )


def _network_file_system(path: Path) -> str | None:
    """The kind of the file system the file lies on, if other machines may write to it too."""
    if not MOUNTS.exists():
        return None
    kind = file_system(str(path.resolve()), MOUNTS.read_text("utf-8", "replace"))
    return kind if kind in NETWORK_FILE_SYSTEMS else None


def file_system(path: str, mounts: str) -> str | None:
    """The kind of the file system a path lies on: that of the deepest, latest mount above it."""
    found: tuple[int, str | None] = (0, None)
    for line in mounts.splitlines():
        fields, _, described = line.partition(" - ")
        point = fields.split(" ")[4].replace("\\040", " ")
        if path == point or path.startswith(point.rstrip("/") + "/"):
            found = max((len(point), described.split(" ")[0]), found, key=lambda one: one[0])
    return found[1]
