"""What a process and its children have used so far, read from /proc."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """The process and all below it."""
    found, new = [], [pid]
    while new:
        found += new
        new = [child for parent in new for child in children(parent)]
    return found


def children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(one) for task in tasks for one in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def cpu_seconds(pid: int) -> float:
    """Of the process, of those below it, and of children that have ended."""
    return sum(_cpu_seconds(one) for one in tree(pid))


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(field) for field in fields[11:15]) / TICKS


def peak_bytes(pid: int) -> int:
    """The most memory that the process and those below it ever held, added up."""
    return sum(_peak_bytes(one) for one in tree(pid))


def _peak_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
    return sum(found)
