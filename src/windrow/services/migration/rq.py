"""Jobs of RQ: the function is the kind, its arguments are the payload `{"args", "kwargs"}`.

RQ pickles arguments, and whoever reads a pickle runs what is in it. So only plain values are taken
out of one; a job with objects in it comes as a failed one, to be enqueued anew by hand.
"""

from __future__ import annotations

import io
import pickle
import zlib
from contextlib import suppress
from typing import Any, Final

import msgspec

from windrow.queue.copying import CopiedJob
from windrow.queue.job import JobState, NewJob
from windrow.services.migration.arriving import (
    Context,
    Left,
    Past,
    Reading,
    make_job,
    read_json,
    read_time,
    spoilt,
)
from windrow.services.migration.origins import Row
from windrow.services.migration.redis_origin import RQ

_PLAIN: Final = {
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("builtins", "bytearray"),
    ("builtins", "complex"),
    ("collections", "OrderedDict"),
    ("datetime", "date"),
    ("datetime", "datetime"),
    ("datetime", "time"),
    ("datetime", "timedelta"),
    ("datetime", "timezone"),
    ("decimal", "Decimal"),
    ("uuid", "UUID"),
}
_STATES: Final = {"failed": JobState.FAILED, "deferred": JobState.PAUSED}


def reading_of(table: str) -> Reading | None:
    if table.startswith(RQ):
        return Reading(table, ("id",), (), from_job, is_list=True)
    return None


def from_job(row: Row, id: str, context: Context) -> CopiedJob | Left:
    kind = context.table.removeprefix(RQ).partition("/")[0]
    if "data" not in row:
        return Left("its job is not there any more")
    past = Past(
        state=_STATES.get(kind, JobState.READY),
        created_at=read_time(_text(row.get("created_at"))),
        run_at=read_time(row.get("due")),
        finished_at=read_time(_text(row.get("ended_at"))),
        errors=[text] if (text := _failure(row)) and kind == "failed" else [],
    )
    try:
        name, instance, args, kwargs = _call(row["data"])
        if instance is not None:
            raise ValueError("it is a method of an object")
        payload = msgspec.to_builtins({"args": list(args), "kwargs": dict(kwargs)})
    except Exception as error:  # a pickle can fail in any way
        kept = {
            "id": row["id"],
            "queue": row["queue"],
            "description": _text(row.get("description")),
        }
        return spoilt(context, id, "unknown", kept, f"its arguments cannot be read: {error}", past)
    headers: dict[str, Any] = {"rq_id": row["id"]}
    if needs := read_json(_text(row.get("dependency_ids"))):
        headers["rq_depends_on"] = needs  # it is paused until somebody lets it go on
    return make_job(context, id, NewJob(name, payload, queue=row["queue"], headers=headers), past)


def _call(data: bytes) -> tuple[str, Any, Any, Any]:
    with suppress(zlib.error):  # older versions do not compress
        data = zlib.decompress(data)
    if data[:1] in (b"[", b"{"):
        name, instance, args, kwargs = msgspec.json.decode(data)
    else:
        name, instance, args, kwargs = _Plain(io.BytesIO(data)).load()
    return str(name), instance, args, kwargs


class _Plain(pickle.Unpickler):
    """Takes out plain values and nothing that can run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PLAIN:
            raise pickle.UnpicklingError(f"{module}.{name} is no plain value")
        return super().find_class(module, name)


def _failure(row: Row) -> str | None:
    found = row.get("exc_info")
    if not isinstance(found, bytes):
        return None
    try:
        return zlib.decompress(found).decode(errors="replace")
    except zlib.error:
        return found.decode(errors="replace")


def _text(value: Any) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
