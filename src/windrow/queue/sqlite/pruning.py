"""Retention: removing what is past its time.

Everything is done in small steps of one transaction each, so that other writers need not wait long.
Freed pages are used again by new jobs; the file does not shrink.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from windrow.queue.records import Archive, DiskUsage, Pruned, Retention
from windrow.queue.sqlite.changing import KEPT_OF_A_JOB, delete_results
from windrow.queue.sqlite.keys import pack_id
from windrow.queue.sqlite.looking import get_jobs
from windrow.queue.sqlite.rows import to_json
from windrow.queue.sqlite.work import Work, statement

MOST_PER_STEP: Final = 500
KEYS_PER_STEP: Final = 10_000


def set_retention(work: Work, queue: str, seconds: Mapping[str, int | None]) -> None:
    values: dict[str, Any] = {"name": queue}
    for state in ("completed", "failed", "cancelled"):
        values |= {state: seconds.get(state), f"has_{state}": state in seconds}
    work.run("set_retention", values)


def list_retention(work: Work) -> dict[str, Retention]:
    return {name: Retention(*seconds) for name, *seconds in work.rows("list_retention", {})}


def prune_jobs(work: Work, limit: int, archive: Archive | None) -> Pruned:
    """One step: expired jobs first, then those of an expired group, then the group itself."""
    ended = work.rows("find_expired_jobs", {"now": work.now, "limit": limit})
    if ended:
        return Pruned(_remove(work, ended, archive), is_done=False)
    groups = work.rows("find_expired_groups", {"now": work.now, "limit": 1})
    if not groups:
        return Pruned()
    [[group_id]] = groups
    members = work.rows("find_expired_members", {"group_id": group_id, "limit": limit})
    removed = _remove(work, members, archive)
    is_gone = len(members) < limit and _remove_group(work, group_id)
    return Pruned(removed, int(is_gone), is_done=False)


def measure_disk(work: Work) -> DiskUsage:
    [found] = work.rows("measure_disk", {})
    return DiskUsage(*map(int, found))


def _remove_group(work: Work, group_id: str) -> bool:
    """Whether it is gone: of a group with very many keys the first ones are, for now."""
    keys = {"group_id": pack_id(group_id), "limit": KEYS_PER_STEP}
    if work.run("delete_group_keys", keys) == KEYS_PER_STEP:
        return False
    gone = {"ids": to_json([group_id])}
    for table in ("windrow_job_live", "windrow_job_finished"):
        work.run_given(statement("unset_roots").format(table=table), gone)
    work.run("delete_group_notes", gone)
    work.run("delete_groups", gone)
    return True


def _remove(work: Work, ended: Sequence[Any], archive: Archive | None) -> int:
    """Remove finished jobs with all that is kept of them. The archive is written before, and if
    that fails nothing is removed."""
    if not ended:
        return 0
    if archive is not None:
        archive(list(get_jobs(work, [job_id for _, job_id, *_ in ended]).values()))
    gone = to_json([seq for seq, *_ in ended])
    for name in ("remove_finished", *KEPT_OF_A_JOB):
        work.run(name, {"seqs": gone})
    delete_results(work, gone)
    for _, _, queue, state in ended:
        work.counts[queue, state] -= 1
    return len(ended)
