"""Groups: made, looked at, paused, closed and cancelled as one."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.errors import GroupNotFound, JobNotFound
from windrow.queue.records import Group, GroupFilter, GroupRow
from windrow.queue.sqlite.keys import key_values, pack_keys, unpack_id
from windrow.queue.sqlite.rows import GroupRecord, LiveJob, read_group, to_json, to_state
from windrow.queue.sqlite.settling import cancel_members, end_if_done, settle
from windrow.queue.sqlite.work import Work, statement


def create_group(work: Work, row: GroupRow) -> Group:
    """A new group, or the one its root has already."""
    root = None if row.root is None else _find_root(work, row.root)
    if root is not None and root.root_of is not None:
        return _read(work, root.root_of)
    is_new = work.run(
        "create_group",
        {
            "id": row.id,
            "is_open": row.is_open,
            "root": row.root,
            "tenant": row.tenant,
            "finish_job": None if row.then is None else to_json(row.then),
            "retention_seconds": row.retention_seconds,
            "max_jobs": row.max_jobs,
            "now": work.now,
        },
    )
    if is_new and root is not None:
        work.run("set_root", {"id": root.id, "group_id": row.id})
        if root.stop_as == "cancelled":
            cancel_members(work, row.id, root.error or "its root job was cancelled")
            settle(work)
    return _read(work, row.id)


def keep_group_keys(work: Work, group_id: str, keys: Sequence[str], job_id: str) -> frozenset[str]:
    _find(work, group_id)
    found = work.rows("find_group_keys", {"keys": pack_keys((group_id, key) for key in keys)})
    holders = {key.hex(): unpack_id(holder) for _, key, holder in found}
    new = [key for key in keys if key not in holders]
    work.run_many("add_group_keys", [key_values(group_id, key, job_id) for key in new])
    return frozenset(key for key in keys if holders.get(key, job_id) == job_id)


def get_group(work: Work, group_id: str) -> Group | None:
    record = work.group_record("get_group", {"id": group_id})
    return None if record is None else _count(work, record)


def list_groups(work: Work, wanted: GroupFilter, after: str | None, limit: int) -> list[Group]:
    """A page of groups; the state is written out, as the condition of a partial index must be."""
    conditions = ["id < :after"] if after is not None else []
    if wanted.state is not None:
        conditions.append(f"state = '{wanted.state}'")
    if wanted.is_paused is not None:
        conditions.append("is_paused = 1")
    if wanted.tenant is not None:
        conditions.append("tenant = :tenant")
    text = statement("list_groups").format(conditions=" AND ".join(conditions) or "true")
    values = {"after": after, "tenant": wanted.tenant, "limit": limit}
    return [read_group(GroupRecord._make(row), {}) for row in work.named_rows(text, values)]


def close_group(work: Work, group_id: str) -> Group:
    """No more held open; one that never had a member ends too."""
    work.run("close_group", {"id": group_id})
    end_if_done(work, _find(work, group_id))
    settle(work)
    return _read(work, group_id)


def end_empty_groups(work: Work, seconds: float, held_seconds: float, limit: int) -> int:
    values = {"now": work.now, "seconds": seconds, "held_seconds": held_seconds, "limit": limit}
    found = [group_id for (group_id,) in work.rows("find_empty_groups", values)]
    for group_id in found:
        close_group(work, group_id)
    return len(found)


def pause_group(work: Work, group_id: str) -> Group:
    work.run("pause_group", {"id": group_id})
    return _read(work, group_id)


def resume_group(work: Work, group_id: str) -> Group:
    work.run("resume_group", {"id": group_id})
    # Its jobs may lie in any queue.
    work.ready_queues.update(queue for (queue,) in work.rows("list_ready_queues", {}))
    return _read(work, group_id)


def cancel_group(work: Work, group_id: str, reason: str) -> Group:
    cancel_members(work, group_id, reason)
    settle(work)
    return _read(work, group_id)


def _find_root(work: Work, job_id: str) -> LiveJob:
    """Raises JobNotFound if it is not live."""
    for root in work.live_jobs("find_live", {"ids": to_json([job_id])}):
        return root
    raise JobNotFound(job_id)


def _find(work: Work, group_id: str) -> GroupRecord:
    record = work.group_record("get_group", {"id": group_id})
    if record is None:
        raise GroupNotFound(group_id)
    return record


def _read(work: Work, group_id: str) -> Group:
    return _count(work, _find(work, group_id))


def _count(work: Work, record: GroupRecord) -> Group:
    counts = work.rows("count_members", {"group_id": record.id})
    return read_group(record, {to_state(state): count for state, count in counts})
