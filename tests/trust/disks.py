"""A disk that is small enough to be filled: a file system in memory, where one may be mounted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.postgres_server import make_reachable_folder, unprivileged_account

PIECE = 64 * 1024
MISSING = "a file system to fill up cannot be mounted here: not root, so its tests are not there"


class Disk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """Leave not a byte."""
        with self._ballast.open("ab", buffering=0) as file:
            size = PIECE
            while size:
                try:
                    file.write(b"\0" * size)
                except OSError:
                    size //= 2

    def free(self) -> None:
        self._ballast.unlink()


@contextmanager
def small_disk(megabytes: int) -> Iterator[Disk]:
    path = make_reachable_folder("windrow-disk-", unprivileged_account())
    path.chmod(0o755)
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], check=False).returncode != 0:
        path.rmdir()
        pytest.skip(MISSING)
    try:
        yield Disk(path)
    finally:
        # Lazily: somebody may still be on his way out of it.
        subprocess.run(["umount", "-l", str(path)], check=True)
        path.rmdir()
