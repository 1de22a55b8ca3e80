"""Which file system a database lies on."""

from __future__ import annotations

import pytest

from windrow.queue.sqlite.examining import NETWORK_FILE_SYSTEMS, file_system

MOUNTS = """\
22 1 0:21 / / rw,relatime shared:1 - overlay overlay rw
25 22 0:24 / /home rw,relatime - ext4 /dev/sda1 rw
30 25 0:40 / /home/ana/team\\040files rw,relatime - nfs4 server:/export rw,vers=4.2
31 25 0:41 / /home/ana/over rw - ext4 /dev/sdb1 rw
32 25 0:42 / /home/ana/over rw - cifs //server/share rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/jobs.db", "overlay"),
        ("/home/jobs.db", "ext4"),
        ("/homely/jobs.db", "overlay"),
        ("/home/ana/team files/jobs.db", "nfs4"),
        ("/home/ana/over/jobs.db", "cifs"),
    ],
)
def test_deepest_and_latest_mount_counts(path: str, kind: str) -> None:
    assert file_system(path, MOUNTS) == kind
    assert (kind in NETWORK_FILE_SYSTEMS) == (kind in ("nfs4", "cifs"))
