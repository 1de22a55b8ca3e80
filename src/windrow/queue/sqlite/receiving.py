"""Taking in jobs of another database: see `queue/copying.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from windrow.queue.admitting import Admission, admit, blob_hash, confirm, groups_named
from windrow.queue.copying import (
    CopiedGroup,
    CopiedJob,
    CopiedSchedule,
    Parcel,
    QueueRow,
    Receipt,
    unpack_keys,
)
from windrow.queue.job import FINAL
from windrow.queue.sqlite.keys import pack_id
from windrow.queue.sqlite.looking import get_jobs
from windrow.queue.sqlite.rows import to_json, to_micros
from windrow.queue.sqlite.work import Work, statement

_TIMES = ("created_at", "run_at", "started_at", "finished_at", "expires_at")


def receive_parcel(work: Work, parcel: Parcel) -> Receipt:
    if former := work.rows("find_receipt", {"parcel": parcel.id}):
        return msgspec.json.decode(former[0][0], type=Receipt)
    receipt = take_in(work, parcel)
    values = {"parcel": parcel.id, "receipt": to_json(receipt), "now": work.now}
    work.run("add_receipt", values)
    return receipt


def has_received(work: Work, number: str) -> bool:
    return bool(work.rows("find_receipt", {"parcel": number}))


def add_queues(work: Work, rows: Sequence[QueueRow]) -> None:
    work.run_many("add_queues", [msgspec.structs.asdict(row) for row in rows])


def take_in(work: Work, parcel: Parcel) -> Receipt:
    admission = _admit(work, parcel)
    work.run_many("import_groups", [_group_values(group) for group in admission.groups])
    for keys in admission.keys:
        values = {"group_id": pack_id(keys.group)}
        lines = [values | {"key": key, "job_id": job_id} for key, job_id in unpack_keys(keys)]
        work.run_many("add_group_keys", lines)
    work.run_many("import_schedules", [_schedule_values(item) for item in admission.schedules])
    _write_jobs(work, admission.jobs)
    found = get_jobs(work, [job.id for job in admission.jobs])
    return confirm(parcel, admission, found.values())


def _admit(work: Work, parcel: Parcel) -> Admission:
    keys = {(job.tenant, job.unique) for job in parcel.jobs if job.unique is not None}
    holders: defaultdict[tuple[str | None, str], dict[bool, str]] = defaultdict(dict)
    for row in work.named_rows(statement("find_holders"), {"keys": to_json(list(keys))}):
        holders[row["tenant"], row["unique_key"]][bool(row["is_follower"])] = row["id"]
    jobs = {"ids": to_json([job.id for job in parcel.jobs])}
    groups = {"ids": to_json(groups_named(parcel))}
    return admit(
        parcel,
        known={row[0] for row in work.rows("find_known", jobs)},
        groups={row[0] for row in work.rows("find_groups", groups)},
        schedules={row["name"] for row in work.named_rows(statement("list_schedules"), {})},
        holders=holders,
    )


def _write_jobs(work: Work, jobs: Sequence[CopiedJob]) -> None:
    if not jobs:
        return
    work.run("add_sequence", {})
    [(last,)] = work.rows("find_last_seq", {})
    numbered = list(enumerate(jobs, last + 1))
    for table, is_final in (("windrow_job_live", False), ("windrow_job_finished", True)):
        text = statement("import_jobs").format(table=table)
        for seq, job in numbered:
            if (job.state in FINAL) is is_final:
                work.run_given(text, _job_values(seq, job))
    work.run_many("insert_payloads", [_payload_values(seq, job) for seq, job in numbered])
    _write_results(work, [(seq, job.result) for seq, job in numbered if job.result is not None])
    work.run_many(
        "add_errors",
        [work.error_line(seq, error) for seq, job in numbered for error in job.errors],
    )
    work.run_many("add_steps", [line for seq, job in numbered for line in _step_lines(seq, job)])
    work.run_many("report_progress", list(_progress_values(numbered)))
    for job in jobs:
        work.counts[job.queue, job.state.value] += 1
    highest = max(last + len(jobs), *(job.place for job in jobs))
    work.run("raise_sequence", {"seq": highest})


def _write_results(work: Work, results: Sequence[tuple[int, str]]) -> None:
    for seq, text in results:
        values: dict[str, Any] = {"seq": seq, "result": text, "blob_hash": None, "is_cleaned": 0}
        if name := blob_hash(text):
            values |= {"result": None, "blob_hash": name.hex()}
            work.run("add_blobs", {"hash": name.hex(), "body": text.encode()})
        work.run("add_results", values)


def _job_values(seq: int, job: CopiedJob) -> dict[str, Any]:
    values = {name: getattr(job, name) for name in job.__struct_fields__}
    values |= {name: _micros(getattr(job, name)) for name in _TIMES}
    if job.group is not None:
        values["expires_at"] = None  # it goes with its group
    values |= {
        "seq": seq,
        "state": job.state.value,
        "group_id": job.group,
        "unique_key": job.unique,
        "limit_keys": to_json(job.limits) if job.limits else None,
        "fair_key": job.limits[0] if job.limits else None,
    }
    unbound = (
        "errors",
        "steps",
        "progress",
        "tags",
        "limits",
        "group",
        "unique",
        "payload",
        "headers",
    )
    return {name: value for name, value in values.items() if name not in unbound}


def _payload_values(seq: int, job: CopiedJob) -> dict[str, Any]:
    return {
        "seq": seq,
        "payload": job.payload,
        "headers": job.headers,
        "tags": to_json(job.tags) if job.tags else None,
        "is_cleaned": job.is_cleaned,
    }


def _step_lines(seq: int, job: CopiedJob) -> list[dict[str, Any]]:
    return [
        {"seq": seq, "name": step.name, "at": to_micros(step.at), "result": step.result_json}
        for step in job.steps
    ]


def _progress_values(numbered: Iterable[tuple[int, CopiedJob]]) -> Iterable[Mapping[str, Any]]:
    for seq, job in numbered:
        if job.progress is not None:
            yield {
                "seq": seq,
                "percent": job.progress.percent,
                "message": job.progress.message,
                "counters": to_json(job.progress.counters),
                "now": _micros(job.progress.updated_at),
            }


def _group_values(group: CopiedGroup) -> dict[str, Any]:
    times = ("created_at", "ended_at", "expires_at")
    return msgspec.structs.asdict(group) | {name: _micros(getattr(group, name)) for name in times}


def _schedule_values(item: CopiedSchedule) -> dict[str, Any]:
    times = ("created_at", "next_at", "last_at")
    return msgspec.structs.asdict(item) | {name: _micros(getattr(item, name)) for name in times}


def _micros(moment: Any) -> int | None:
    return None if moment is None else to_micros(moment)
