"""The jobs that tell a webhook something, and the group they are in.

Only the ids of what is told are in them: the address, its secrets and the document are read when
the job runs.
"""

from __future__ import annotations

import uuid
from typing import Final, Literal

import msgspec

from windrow.queue.job import NewJob, Priority
from windrow.queue.queue import Queue

KIND: Final = "webhook.deliver"
QUEUE: Final = "webhooks"
ATTEMPTS: Final = 7
# Seconds between them; all in all about an hour and a half.
WAITS: Final = (5.0, 30.0, 120.0, 600.0, 1800.0, 3000.0)
# To one receiver at once, so that one who hangs does not occupy a worker.
AT_ONCE: Final = 4
# What has not had its turn by then is given up: the end of the run shall be told, too.
MOST_HOLD: Final = 6 * 3600.0

_PLACE: Final = uuid.UUID("0f6c2d5b-4a5f-5c2e-8c77-7b8f7d0e9a12")

What = Literal["started", "page", "end"]


class Delivery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to be told of a run, which is known by the id of its crawl or batch."""

    run_id: str
    what: What
    page_id: str | None = None


async def open_deliveries(queue: Queue, run_id: str, tenant: str | None) -> None:
    """Make the group of a run's deliveries; it is held open until the run has ended. Asked for
    twice it is the same."""
    await queue.set_limit(limit_key(run_id), active=AT_ONCE)
    await queue.create_group(
        id=deliveries_id(run_id), hold=True, tenant=tenant, then=tell_end(run_id, tenant)
    )


def tell_start(run_id: str, tenant: str | None) -> NewJob:
    return _job(
        Delivery(run_id=run_id, what="started"),
        tenant,
        id=_id(run_id, "started"),
        priority=Priority.COMMAND,
    )


def tell_page(run_id: str, page_id: str, tenant: str | None, *, id: str | None = None) -> NewJob:
    return _job(Delivery(run_id=run_id, what="page", page_id=page_id), tenant, id=id)


def tell_lost_page(run_id: str, page_id: str, tenant: str | None) -> NewJob:
    """Of a page that nobody could tell of when it ended; the same job if it is made twice."""
    return tell_page(run_id, page_id, tenant, id=_id(run_id, page_id))


def tell_end(run_id: str, tenant: str | None) -> NewJob:
    """How the run ended is looked up then. Of its own: the others are waited for."""
    return NewJob(
        KIND,
        msgspec.to_builtins(Delivery(run_id=run_id, what="end")),
        queue=QUEUE,
        tenant=tenant,
        max_attempts=ATTEMPTS,
        id=_id(run_id, "end"),
    )


def deliveries_id(run_id: str) -> str:
    """The group of a run's deliveries."""
    return _id(run_id, "deliveries")


def limit_key(run_id: str) -> str:
    return f"webhook:{run_id}"


def _job(
    delivery: Delivery,
    tenant: str | None,
    *,
    id: str | None = None,
    priority: int = Priority.NORMAL,
) -> NewJob:
    return NewJob(
        KIND,
        msgspec.to_builtins(delivery),
        queue=QUEUE,
        priority=priority,
        tenant=tenant,
        group=deliveries_id(delivery.run_id),
        limits=[limit_key(delivery.run_id)],
        max_attempts=ATTEMPTS,
        max_hold=MOST_HOLD,
        id=id,
    )


def _id(run_id: str, what: str) -> str:
    return str(uuid.uuid5(_PLACE, f"{run_id}\n{what}"))
