"""Programs as deployment files run them: an unprivileged user, a root that is read-only, and the
folders that are declared to be writable. Made of mount namespaces, so it needs root on Linux."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

USER = 1000
PROGRAM = Path(sys.executable).with_name("windrow")
# The checkout and the environment that it runs in, in case they are below /tmp.
READ = sorted({str(Path(__file__).resolve().parents[1]), sys.prefix})

# $1: an empty folder for the new root; $2: its working folder; $3: how many of the arguments that
# follow are pairs "place=folder"; then the command. $READ: folders to keep when /tmp is left out.
_ENTER = r"""
set -eu
root=$1; work=$2; count=$3; shift 3
mount -t tmpfs tmpfs "$root"
for entry in /*; do
    if [ -L "$entry" ]; then cp -P "$entry" "$root$entry"
    elif [ "$entry" = /tmp ]; then mkdir "$root/tmp"
    elif [ -d "$entry" ]; then mkdir "$root$entry"; mount --rbind "$entry" "$root$entry"
    fi
done
cut -d' ' -f5 /proc/self/mountinfo | grep "^$root/" | grep -Ev "^$root/(proc|sys|dev)(/|\$)" |
    while read -r place; do mount -o remount,bind,ro "$place"; done
mount -t tmpfs tmpfs "$root/var/lib"
while [ "$count" -gt 0 ]; do
    place=${1%%=*}; folder=${1#*=}; shift; count=$((count - 1))
    mkdir -p "$root$place"; mount --bind "$folder" "$root$place"
done
# Behind the writable ones: /tmp may be one of them.
for place in $READ; do
    if ! [ "$root$place" -ef "$place" ]; then
        mkdir -p "$root$place"
        mount --rbind "$place" "$root$place"
        mount -o remount,bind,ro "$root$place"
    fi
done
mount -o remount,ro "$root/var/lib"
mount -o remount,ro "$root"
# The program of the tests may lie where only root can read; it may write no more for that.
exec chroot "$root" setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs \
    --inh-caps=-all,+dac_read_search --ambient-caps=+dac_read_search \
    --bounding-set=-all,+dac_read_search \
    /bin/sh -c 'cd "$0" && exec "$@"' "$work" "$@"
"""


def why_not() -> str:
    """Why there can be no sandbox here; empty if there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "mount namespaces need root on Linux"
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        return "unshare and setpriv of util-linux are not installed"
    tried = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "none", "/mnt"],
        capture_output=True,
        text=True,
    )
    return tried.stderr.strip()


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    writable: Sequence[str],
    folder: Path,
    *,
    work: str = "/",
    log: Path,
) -> subprocess.Popen[bytes]:
    """A command of Windrow in a sandbox of its own. Its writable places are folders in `folder`,
    which others may have too."""
    root = folder / f"root-{os.urandom(4).hex()}"
    root.mkdir(parents=True)
    pairs = []
    for place in writable:
        kept = folder / "kept" / place.strip("/").replace("/", "-")
        kept.mkdir(parents=True, exist_ok=True)
        os.chown(kept, USER, USER)
        pairs.append(f"{place}={kept}")
    with log.open("ab") as told:
        return subprocess.Popen(
            [
                *("unshare", "--mount", "--propagation", "private"),
                *("/bin/sh", "-c", _ENTER, "sh", str(root), work, str(len(pairs)), *pairs),
                *(str(PROGRAM), *command),
            ],
            env={
                "PATH": os.environ["PATH"],
                "LANG": "C.UTF-8",
                "READ": " ".join(READ),
                **environment,
            },
            stdout=told,
            stderr=told,
        )
