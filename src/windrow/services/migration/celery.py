"""Messages of Celery: the task is the kind, its arguments are the payload `{"args", "kwargs"}`."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from windrow.queue.copying import CopiedJob
from windrow.queue.job import DEFAULT_PRIORITY, NewJob
from windrow.services.migration.arriving import (
    Context,
    Left,
    Past,
    Reading,
    as_count,
    as_text,
    make_job,
    read_time,
    spoilt,
)
from windrow.services.migration.origins import Row
from windrow.services.migration.redis_origin import CELERY

_LATER = ("callbacks", "errbacks", "chain", "chord")


def reading_of(table: str) -> Reading | None:
    if table.startswith(CELERY):
        return Reading(table, ("id",), (), from_message, is_list=True)
    return None


def from_message(row: Row, id: str, context: Context) -> CopiedJob | Left:
    message = row.get("message")
    if message is None:
        return spoilt(context, id, "unknown", row, "it is no message of Celery")
    headers = message.get("headers") or {}
    task = as_text(headers.get("task")) or "unknown"
    body = _body(message)
    if isinstance(body, str):
        return spoilt(context, id, task, message, body)
    if isinstance(body, dict):  # the first version of the protocol: all of it is in the body
        headers = {**headers, **body}
        task = as_text(body.get("task")) or task
        args, kwargs, later = body.get("args"), body.get("kwargs"), body
    else:
        args, kwargs, later = (*body, None, None, None)[:3]
    expires = read_time(headers.get("expires"))
    if expires is not None and expires <= context.now:
        return Left("expired there")
    payload: dict[str, Any] = {"args": list(args or []), "kwargs": dict(kwargs or {})}
    then = {name: later[name] for name in _LATER if later and later.get(name)}
    if then:
        payload["then"] = then  # Celery would have run these next: the handler's to do now
    new = NewJob(
        task,
        payload,
        queue=row["queue"],
        priority=_priority(message),
        headers={"celery_id": str(headers.get("id"))},
    )
    past = Past(run_at=read_time(headers.get("eta")), attempts=as_count(headers.get("retries")))
    return make_job(context, id, new, past)


def _body(message: Row) -> Any:
    """What was sent, or why it cannot be read. What was pickled is not: reading it runs code."""
    kind = message.get("content-type")
    if kind != "application/json":
        return f"its arguments are {kind}, and only JSON is read: send it again from Celery"
    body = message.get("body") or ""
    try:
        if (message.get("properties") or {}).get("body_encoding") == "base64":
            body = base64.b64decode(body, validate=True)
        return msgspec.json.decode(body)
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"its arguments cannot be read: {error}"


def _priority(message: Row) -> int:
    """Of Celery on Redis 0 is first and usual, 9 last."""
    given = (message.get("properties") or {}).get("priority")
    return DEFAULT_PRIORITY - (min(as_count(given), 9) + 1) // 2
